"""No number that workflow code reads is other than it was at the last release."""

import json

from tests.replay.numbers import ADVICE, RECORDED, changes
from tests.replay.record import HISTORIES


def test_no_number_that_workflow_code_reads_has_changed_since_the_last_release() -> None:
    release = max(HISTORIES.iterdir(), key=lambda folder: [int(part) for part in folder.name.split(".")])
    changed = changes(json.loads((release / RECORDED).read_text(encoding="utf-8")))
    assert not changed, ADVICE.format(release=release.name, changes="\n".join(changed))
