"""What a case leaves for its diagnosis: its histories, what the model was asked, what the run shows."""

import json
from pathlib import Path

from tests.machine.playing import Ending


def keep(ending: Ending, wrong: list[str], folder: Path) -> None:
    """Writes the evidence of a case into a folder of its own below `folder`."""
    own = folder / ending.run_id
    own.mkdir(parents=True, exist_ok=True)
    for number, (workflow_id, history) in enumerate(ending.histories.items()):
        (own / f"{number}-{workflow_id.replace('/', '~')}.json").write_text(history.to_json())
    ledger = [
        f"{call.at:.3f} {call.answered_at or 0:.3f} {call.aborted_at or 0:.3f} {served.tokens} {call.step.call}"
        for served, call in zip(ending.served, ending.calls(), strict=False)
    ]
    (own / "calls.txt").write_text("\n".join(["at answered aborted tokens call", *ledger]))
    (own / "wrong.txt").write_text("\n".join([repr(ending.case), str(ending.case.request), ending.kind, *wrong]))
    for name, shown in {"result": ending.result, "query": ending.shown, "status": ending.status}.items():
        (own / f"{name}.json").write_text(json.dumps(shown.model_dump(mode="json") if shown else None, indent=1))
