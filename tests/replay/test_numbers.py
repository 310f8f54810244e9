"""No number that workflow code reads is other than it was at the last release."""

import json
from datetime import timedelta

import pytest

from supervision.base import limits
from tests.replay.numbers import ADVICE, RECORDED, changes, numbers
from tests.replay.record import HISTORIES


def test_no_number_that_workflow_code_reads_has_changed_since_the_last_release() -> None:
    release = max(HISTORIES.iterdir(), key=lambda folder: [int(part) for part in folder.name.split(".")])
    changed = changes(json.loads((release / RECORDED).read_text(encoding="utf-8")))
    assert not changed, ADVICE.format(release=release.name, changes="\n".join(changed))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PROVIDER_PAUSE", timedelta(seconds=1)),
        ("workflows.answer.review_rounds._JUDGED_CONFLICTS", 0),
    ],
)
def test_a_change_of_any_of_them_is_seen(name: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    at_release = numbers()
    assert changes(at_release) == []
    monkeypatch.setattr(name if "." in name else f"{limits.__name__}.{name}", value)
    assert [line.split(":")[0].strip() for line in changes(at_release)] == [name]


def test_numbers_of_workers_alone_may_change() -> None:
    read = numbers()
    assert {"ACTIVITY_SLOTS", "CACHED_WORKFLOWS", "MODEL_IDLE_TIMEOUT", "SQL_TIMEOUT"}.isdisjoint(read)
    assert not any(name.startswith(("activities.model.", "activities.tools.", "runtime.")) for name in read)


def test_a_number_that_a_version_adds_or_drops_is_no_change() -> None:
    assert changes({name: value for name, value in numbers().items() if name != "PLAN_TRIES"}) == []
    assert changes({**numbers(), "NO_LONGER_READ": 1}) == []
