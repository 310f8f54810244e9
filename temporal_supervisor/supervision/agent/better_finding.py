"""The choice between two findings of one author, the earlier one and the one after feedback."""

from temporal_supervisor.supervision.contract.finding import Finding


def better_finding(earlier: Finding, later: Finding) -> Finding:
    """Returns the later finding, unless it lost what was right in the earlier one.

    It has lost something if it has fewer supported claims, or as many and more without support.
    What the earlier one claims without support stays marked. A query that is not doubted brings
    more than figures that it proves.
    """
    if later.supported and bool(later.doubts) != bool(earlier.doubts):
        return earlier if later.doubts else later
    if later.supported != earlier.supported:
        return max(earlier, later, key=lambda finding: finding.supported)
    return earlier if len(later.unsupported) > len(earlier.unsupported) else later
