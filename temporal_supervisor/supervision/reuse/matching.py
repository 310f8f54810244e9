"""Findings of earlier runs that a plan takes: with equal recipe, data and dependencies."""

from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter

from temporal_supervisor.supervision.base.prompt_marks import ASK_TOOL
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.finding import Finding, FindingRecord
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.result import Reused, SubtaskReport
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.reuse.recipes import (
    RunParts,
    ToolState,
    digest_sum,
    file_of_item,
    names_of_roles,
    sha256_of,
    why_never_of,
)

_PERSON = "person "
_A_PERSON = "a person"
_MOST_EVIDENCE = 60  # calls that a record keeps: of a longer work the first ones are not known


class EarlierOffer(Model):
    """A finding of an earlier run that another run may take.

    `digest` is the hash of its text, and `rests_on` combines the hashes of the findings that it is
    based on. `files` are the files of its run that it is based on, by hash; None if unknown. It was
    made on the `day`, on which its outputs depend if it `is_of_day`. `stood_in` is the hash of the
    role that did the work in place of the planned one.
    """

    run_id: str
    report: SubtaskReport
    recipe: str = ""
    item: str = ""
    digest: str
    rests_on: str = ""
    files: dict[str, str] | None = None
    all_files: bool = False
    day: str = ""
    is_of_day: bool = False
    stood_in: str = ""

    @property
    def reused(self) -> Reused:
        """The finding's origin, with the usage that taking it saves."""
        before = self.report.reused
        usage = before.usage if before else self.report.usage
        return Reused(run_id=self.run_id, subtask_id=self.report.id, usage=usage)


class SavedFinding(Model):
    """A finding of an earlier run, copied into this run for one subtask.

    It is taken if the findings that it is based on are the same here.
    """

    subtask_id: str
    role: str
    model: str | None = None
    finding: Finding
    reused: Reused
    rests_on: str = ""
    is_named: bool = False


class SavedWork:
    """The earlier findings for subtasks, and the subtasks that lack theirs.

    `lost` has the reason for each of the latter.
    """

    def __init__(self) -> None:
        self.findings: dict[str, SavedFinding] = {}
        self.lost: dict[str, str] = {}

    def look_up_again(self, findings: Iterable[SavedFinding], lost: Mapping[str, str]) -> None:
        """Replaces the findings by those for the current plan."""
        self.findings = {finding.subtask_id: finding for finding in findings}
        self.lost = dict(lost)

    def among(self, subtask_ids: Iterable[str]) -> list[str]:
        """Returns the subtasks for which there is a finding, or a reason for lacking it."""
        return [each for each in subtask_ids if each in self.findings or each in self.lost]

    def hand_out(self, subtask_id: str) -> tuple[SavedFinding | None, str | None]:
        """Removes and returns the finding of a subtask, or the reason for lacking it."""
        return self.findings.pop(subtask_id, None), self.lost.pop(subtask_id, None)


def offered(
    run_id: str,
    reports: Sequence[SubtaskReport],
    plan: Plan,
    found: Mapping[str, str],
    digests: Mapping[str, str],
    parts: RunParts,
) -> list[EarlierOffer]:
    """Returns the findings of a run's completed subtasks, with their basis.

    A subtask without an entry in `found` has no recipe. A finding is offered by its name alone if a
    dependency failed or has changed since, or if it was made by another role whose work is never
    taken.
    """
    subtasks = {subtask.id: subtask for subtask in plan.subtasks}
    offers: list[EarlierOffer] = []
    for report in reports:
        if report.state != "completed" or report.id not in digests or report.id not in subtasks:
            continue

        subtask = subtasks[report.id]
        before = [digests.get(dependency) for dependency in subtask.depends_on]
        is_whole = None not in before and not report.stale
        stood_in = ""
        if report.role not in names_of_roles(subtask, parts):  # its fallback, or its backup
            role = parts.roles.get(report.role)
            is_whole = is_whole and role is not None and why_never_of(role) is None
            stood_in = role_sha256(report.role, parts)

        offers.append(
            EarlierOffer(
                run_id=run_id,
                report=report,
                recipe=found.get(report.id, "") if is_whole else "",
                item=subtask.item,
                digest=digests[report.id],
                rests_on=digest_sum([each for each in before if each]),
                day=parts.day,
                stood_in=stood_in,
            )
        )
    return offers


def role_sha256(name: str, parts: RunParts) -> str:
    """Returns the hash of a role of a run; for an unknown role the hash of its name."""
    role = parts.roles.get(name)
    exclude = {"capabilities"}
    return sha256_of(name if role is None else role.model_dump(mode="json", exclude=exclude))


def chosen(
    plan: Plan,
    found: Mapping[str, str],
    offers: Sequence[EarlierOffer],
    parts: RunParts,
) -> dict[str, EarlierOffer]:
    """Returns the offer that each subtask of a plan takes, the first of several.

    `found` has the plan's recipes, and `parts` describes its run.
    """
    subtasks = {subtask.id: subtask for subtask in plan.subtasks}
    by_recipe = _by_recipe(offers)
    taken = dict[str, EarlierOffer]()
    graph = {subtask.id: subtask.depends_on for subtask in plan.subtasks}
    for subtask_id in TopologicalSorter(graph).static_order():
        subtask = subtasks.get(subtask_id)
        if subtask is None or subtask.for_each is not None:
            continue

        named = named_offer(subtask, offers)
        if named is not None:
            taken[subtask_id] = named
            continue
        if any(dependency not in taken for dependency in subtask.depends_on):
            continue

        rests_on = digest_sum([taken[dependency].digest for dependency in subtask.depends_on])
        for offer in by_recipe.get(found.get(subtask_id, ""), []):
            if offer.rests_on == rests_on and is_same_work(offer, parts):
                taken[subtask_id] = offer
                break
    return taken


def _by_recipe(offers: Iterable[EarlierOffer]) -> dict[str, list[EarlierOffer]]:
    found: dict[str, list[EarlierOffer]] = {}
    for offer in offers:
        if offer.recipe:
            found.setdefault(offer.recipe, []).append(offer)
    return found


def named_offer(subtask: Subtask, offers: Iterable[EarlierOffer]) -> EarlierOffer | None:
    """Returns the finding that a subtask takes by name; items take the same item's."""
    if subtask.taken_from is None:
        return None
    run_id, _, source = subtask.taken_from.rpartition("/")
    for offer in offers:
        report = offer.report
        is_there = report.id == source or (report.template == source and offer.item == subtask.item)
        if offer.run_id == run_id and is_there:
            return offer
    return None


def is_same_work(offer: EarlierOffer, parts: RunParts) -> bool:
    """True if a finding of equal recipe also has the data, day and role of another run."""
    if offer.is_of_day and offer.day != parts.day:
        return False
    if offer.stood_in and offer.stood_in != role_sha256(offer.report.role, parts):
        return False
    return is_same_data(offer, parts.files)


def is_same_data(offer: EarlierOffer, files: Mapping[str, str]) -> bool:
    """True if another run has the same files as those that a finding is based on."""
    if offer.files is None:
        return False
    if offer.all_files:
        return offer.files == files
    return all(files.get(name) == sha256 for name, sha256 in offer.files.items())


def with_data(
    offer: EarlierOffer,
    record: FindingRecord,
    tools: Mapping[str, ToolState],
    files: Mapping[str, str],
    described_by: str = "",
) -> EarlierOffer:
    """Returns an offer with the files behind its finding, by the sources of its outputs.

    `described_by` is the file that describes the others, such as `data.toml`. Words of people are
    not data of a run.
    """
    if _is_of_people(record) or len(record.evidence) >= _MOST_EVIDENCE:
        return offer
    offer = offer.model_copy(update={"is_of_day": any(item.of_day for item in record.evidence)})
    used = [tools[item.tool] for item in record.evidence if item.tool in tools]
    read = {tool.reads for tool in used} - {"none"}
    if not read or not files:
        return offer.model_copy(update={"files": {}})
    named = {_file_named(source, files) for source in record.sources}
    if "all" in read or "" in named:
        return offer.model_copy(update={"files": {**files}, "all_files": True})
    known = named | ({described_by} & files.keys())
    return offer.model_copy(update={"files": {name: files[name] for name in known}})


def _is_of_people(record: FindingRecord) -> bool:
    asked = any(item.tool == ASK_TOOL for item in record.evidence)
    said = any(source == _A_PERSON or source.startswith(_PERSON) for source in record.sources)
    return asked or said


def _file_named(source: str, files: Mapping[str, str]) -> str:
    """Returns the file that a source names, or of which it names a part; empty without one."""
    if source in files:
        return source
    page = source.rpartition(" p. ")[0]
    if page in files:
        return page
    for end in range(len(source)):
        if source[end] == "/" and source[:end] in files:  # a member of a zipped folder
            return source[:end]
    return file_of_item(source, files)


def saved_usage(reports: Iterable[SubtaskReport]) -> Usage | None:
    """Returns the usage that findings of earlier runs saved; None without such findings."""
    origins = [report.reused for report in reports if report.reused is not None]
    return sum((origin.usage for origin in origins), Usage()) if origins else None
