"""What the model replies to the calls of a case: a function of the case, the call, and how often it came."""

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from temporal_supervisor.standin.server.api_reply import ApiReply, ErrorReply, text_block
from tests.machine.cases import ROLES, TEAMS, Case, graph, item
from tests.scripted_model import Reply, Step

TRANSIENT = {"429": "rate_limit_error", "529": "overloaded_error", "500": "api_error"}
AS_OF = "as said in"
PATIENCE = 3
"""So often a call may meet a passing fault before it is answered."""
_LOST = re.compile(r'<\w+ id="([^"]+)" role="[^"]*" state="(?:failed|skipped)"(?![^>]*replaced_by)')


@dataclass(frozen=True)
class Served:
    """A call and what its reply costs, 0 for an error."""

    step: Step
    tokens: int


class ModelReplies:
    """The model of one case. `served` is its ledger; `counted` is called with the number of calls after each."""

    def __init__(self, case: Case, counted: Callable[[float], None]) -> None:
        self._case = case
        self._counted = counted
        self._times: Counter[str] = Counter()
        self._paid = case.unpaid_from is None
        self._routed = ""
        self.served: list[Served] = []

    def mend_account(self) -> None:
        """Lets the account be served again."""
        self._paid = True

    def reply(self, step: Step) -> Reply:
        """Returns the reply to a call: the script of the run."""
        where = step.call.partition("/")[2]
        self._times[where] += 1
        number = len(self.served) + 1
        refused = not self._paid and number >= (self._case.unpaid_from or 0)
        dice = self._case.draw("reply", where, self._times[where])
        fault = None if refused else self._fault(step, dice)
        # While a call hangs there may be no other one: whoever waits to do something does it now.
        self._counted(math.inf if fault == "hang" else number)
        latency = dice.random() * self._case.latency
        made: ApiReply | ErrorReply
        if refused:
            made = ErrorReply(401, "no", "authentication_error")
        elif fault in TRANSIENT:
            after = {"retry-after": "1"} if dice.random() < 0.2 else {}
            made = ErrorReply(int(fault or 0), "no", TRANSIENT[fault or ""], after)
        elif fault == "400":
            made = ErrorReply(400, "no", "invalid_request_error")
        else:
            content, reason = self._content(step, where, fault, dice)
            usage = {"input_tokens": self._case.tokens, "output_tokens": self._case.tokens}
            made = ApiReply(content, reason, None, usage)
        self.served.append(Served(step, 2 * self._case.tokens if isinstance(made, ApiReply) else 0))

        async def replied() -> ApiReply:
            await (asyncio.Event().wait() if fault == "hang" else asyncio.sleep(latency))
            if isinstance(made, ErrorReply):
                raise made
            return made

        return replied

    def _fault(self, step: Step, dice: Random) -> str | None:
        case = self._case
        fault = dice.choice(case.turn_faults if step.kind == "turn" else case.own_faults)
        rate = case.trouble if step.kind == "turn" else case.trouble / 2
        if dice.random() >= rate:
            return None
        passed = fault in (*TRANSIENT, "hang") and self._times[step.call.partition("/")[2]] > PATIENCE
        return None if passed else fault

    def _content(self, step: Step, where: str, fault: str | None, dice: Random) -> tuple[list[Any], str]:
        if fault == "refusal":
            return [], "refusal"
        if fault == "garbage":
            return [text_block('{"subtasks": [{"id"')], "end_turn"
        if fault in ("empty", "silent"):
            return [], "end_turn"
        if fault == "cut":
            return [text_block("so far there are three")], "max_tokens"
        if step.kind == "turn":
            return self._turn(step, where, fault, dice)
        made = getattr(self, f"_{step.kind}")(step, where, fault, dice)
        return [text_block(json.dumps(made))], "end_turn"

    # --- worker agents ----------------------------------------------------------------------------

    def _turn(self, step: Step, where: str, fault: str | None, dice: Random) -> tuple[list[Any], str]:
        told = f"finding of {where.rpartition('/')[0]}"
        if fault == "impossible":
            return _use("finish", {"outcome": "impossible", "summary": "it is locked", "finding": ""})
        if fault == "partial":
            return _use("finish", {"outcome": "partial", "summary": told, "finding": told, "limitations": ["half"]})
        if fault == "unsupported":
            return _use("finish", {"outcome": "done", "summary": told, "finding": f"{told}: 4711.5 kg of pears"})
        if fault == "no_tool":
            return _use("dig", {"depth": 1})
        if step.call.split("/")[-3].endswith("-asker") and dice.random() < 0.5:
            asked = [("ask_person", {"question": f"Which one? {step.call}"}), ("send", {"text": step.call})]
            return _uses(dice.sample(asked, dice.choice([1, 1, 2])))
        if step.number == 1 and dice.random() < 0.25:
            return _use("lookup", {"query": "pears"})
        if dice.random() < 0.5:
            done = {"outcome": "done", "summary": told, "finding": told, "confidence": 0.8}
            return _use("finish", {**done, "items": ["elm", {"tree": "oak"}]})
        return [text_block(f"{told}\n\nConfidence: 0.8\nLimitations: none")], "end_turn"

    # --- supervisors ------------------------------------------------------------------------------

    def _plan(self, step: Step, where: str, fault: str | None, dice: Random) -> dict[str, Any]:
        path = where.rpartition("/")[0]
        revision = int(step.call.rpartition("/")[2].split(".")[1])
        strategy = self._case.request["strategy"] if not path else "auto"
        team = self._team(path)
        whole = self._graph(path)
        for entry in whole:  # so that a worker agent's brief says which plan it is of
            entry["description"] += f" {AS_OF} {step.call.rpartition('/')[2]}"
        if strategy == "route":
            self._routed = self._case.draw("route").choice(ROLES[team])  # after a reset the same, too
            described = f"Weigh all the pears {AS_OF} {step.call.rpartition('/')[2]}"
            return {"role": self._routed, "secondary_role": None, "description": described}
        if strategy == "step":
            following = whole[revision - 1 : revision]
            known = {entry["id"] for entry in whole[: revision - 1]}
            for entry in following:
                entry["depends_on"] = [after for after in entry["depends_on"] if after in known]
            return {"finished": not following, "subtasks": following, "new_roles": []}
        if fault == "invalid":
            return {"subtasks": [{**entry, "depends_on": [entry["id"]]} for entry in whole], "new_roles": []}
        if revision > 1:
            return {"subtasks": self._revision(step, path, revision, team, dice), "new_roles": []}
        if strategy == "auto" and dice.random() < 0.06:
            return {"strategy": "plan", "direct_answer": "Some pears.", "subtasks": [], "new_roles": []}
        return {"strategy": "plan", "direct_answer": None, "subtasks": whole, "new_roles": []}

    def _revision(self, step: Step, path: str, revision: int, team: str, dice: Random) -> list[dict[str, Any]]:
        """Returns what replaces some of the subtasks that were lost."""
        lost = _LOST.findall(step.prompt)
        replaced = dice.sample(lost, min(len(lost), dice.choice([0, 1, 1, 2])))
        role = next(role for role in ROLES[team] if role not in TEAMS)
        return [item(f"r{revision}-{number}-{role}", role, [], replaces=[old]) for number, old in enumerate(replaced)]

    def _refine(self, step: Step, where: str, fault: str | None, dice: Random) -> dict[str, Any]:
        return {"description": f"Find it out in another way ({where})"}

    def _review(self, step: Step, where: str, fault: str | None, dice: Random) -> dict[str, Any]:
        path = where.rpartition("/")[0]
        ids = [entry["id"] for entry in self._graph(path)]
        flagged = dice.sample(ids, min(len(ids), dice.choice([0, 0, 1, 2])))
        pair = dice.sample(ids, 2) if len(ids) > 1 and dice.random() < 0.2 else []
        return {
            "verdicts": [{"subtask_id": one, "ok": False, "feedback": "name the unit"} for one in flagged],
            "conflicts": [{"subtask_ids": pair, "description": "they differ"}] if pair else [],
            "missing": ["the weight of the basket"] if dice.random() < 0.1 else [],
        }

    def _judge(self, step: Step, where: str, fault: str | None, dice: Random) -> dict[str, Any]:
        return {"choice": dice.choice([1, 2, 7]), "reason": "it is better"}

    def _synthesis(self, step: Step, where: str, fault: str | None, dice: Random) -> dict[str, Any]:
        path = where.rpartition("/")[0]
        ids = [entry["id"] for entry in self._graph(path)]
        words = f"answer of {path or 'the root'}" + (": 4711.5 kg" if fault == "invalid" else "")
        return {"answer": f"{words} [{dice.choice([*ids, 'nobody'])}]", "confidence": 0.9, "contradictions": []}

    def _graph(self, path: str) -> list[dict[str, Any]]:
        return graph(self._case.seed, self._case.shape, path, self._team(path), self._levels(path))

    def _team(self, path: str) -> str:
        if not path:
            return self._case.team
        return TEAMS[path.split("/")[-2].rpartition("-")[2] if "-" in path else self._routed]

    def _levels(self, path: str) -> int:
        return int(self._case.request["max_depth"]) - len(path.split("/")) // 2


def _use(name: str, arguments: dict[str, Any]) -> tuple[list[Any], str]:
    return _uses([(name, arguments)])


def _uses(calls: list[tuple[str, dict[str, Any]]]) -> tuple[list[Any], str]:
    blocks = [{"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": given} for name, given in calls]
    return blocks, "tool_use"
