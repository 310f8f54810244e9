"""Which of two findings of one author is kept."""

from typing import Any

import pytest

from temporal_supervisor.supervision.agent.better_finding import better_finding
from temporal_supervisor.supervision.contract.finding import Finding

_DOUBT = "the query has no condition on 1994, which the question names"


def finding(**known: Any) -> Finding:
    """Returns a finding with these fields."""
    return Finding(outcome="done", grounding="tools", summary="Pears.", text_ref="r", **known)


@pytest.mark.parametrize(
    ("earlier", "later", "kept"),
    [
        ({"supported": 2}, {"supported": 2}, "later"),
        ({"supported": 1}, {"supported": 2}, "later"),
        ({"supported": 3}, {"supported": 2}, "earlier"),
        ({"supported": 2}, {"supported": 2, "unsupported": ["8.5 %"]}, "earlier"),
        ({"supported": 2, "unsupported": ["8.5 %"]}, {"supported": 2}, "later"),
        # A query that is not doubted brings more than figures that it proves.
        ({"supported": 5, "doubts": [_DOUBT]}, {"supported": 1}, "later"),
        ({"supported": 1}, {"supported": 5, "doubts": [_DOUBT]}, "earlier"),
        ({"supported": 5, "doubts": [_DOUBT]}, {"supported": 1, "doubts": [_DOUBT]}, "earlier"),
        # Words that rest on no tool have no query that could be doubted.
        ({"supported": 5, "doubts": [_DOUBT]}, {"supported": 0}, "earlier"),
    ],
)
def test_the_better_one_of_two_findings_is_kept(earlier: Any, later: Any, kept: str) -> None:
    first, second = finding(**earlier), finding(**later)
    assert better_finding(first, second) is (first if kept == "earlier" else second)
