"""The choice between an author's finding and the one written after feedback."""

from temporal_supervisor.supervision.contract.finding import Finding


def better_finding(earlier: Finding, later: Finding) -> Finding:
    """Returns the later finding, unless it lost something that was right in the earlier one.

    It lost something if fewer of its claims are supported, or no more of them while more are
    unsupported. Unsupported claims of the earlier finding stay marked. A query without doubts
    counts more than the number of supported figures.
    """
    if later.supported and bool(later.doubts) != bool(earlier.doubts):
        return earlier if later.doubts else later
    if later.supported != earlier.supported:
        return max(earlier, later, key=lambda finding: finding.supported)
    return earlier if len(later.unsupported) > len(earlier.unsupported) else later
