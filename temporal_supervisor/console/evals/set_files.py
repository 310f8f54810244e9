"""A set of questions on this machine, which is read and checked before anything is spent."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue, ValidationError

from activities.files.manifest import MANIFEST_TYPE, DataFile, FilesRefused, found_files, put_files
from activities.store.artifacts import ArtifactStore
from temporal_supervisor.console.base.command import BAD_INPUT, CommandFailed, hint
from temporal_supervisor.console.run.request_options import json_object, read_text_file
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base.text import slug
from temporal_supervisor.supervision.contract.request import RunRequest, describe_errors
from temporal_supervisor.supervision.contract.team import Team
from temporal_supervisor.supervision.scores.eval_plan import EvalSet, EvalVariant, Part
from temporal_supervisor.supervision.scores.parts import question_for_part, result_as_truth
from temporal_supervisor.supervision.scores.question_sets import (
    MOST_QUESTIONS,
    BadQuestion,
    EvalQuestion,
    Truth,
    goals_as_questions,
    read_questions,
)
from temporal_supervisor.supervision.scores.score_table import BARE

if TYPE_CHECKING:
    from activities.tools.sql.sql_tools import TableStore

QUESTIONS, GOALS = "questions.jsonl", "goals.toml"
_FILES_TEAM = "files"  # for questions with data, unless another one is named
_EACH_QUESTION = {"goal", "attachments", "answer_schema", "plan"}
_ALONE = """\
You answer a question on your own, with the tools that you have.

- Look at what data there are first, then read or query what the question needs.
- Take every number from a tool's output. Never recall or estimate one, and compute with a tool.
- If a call fails, correct it as its message says and try again.
- If the data do not answer the question, say so.

Answer the question itself, whole, with its unit and period."""


@dataclass(frozen=True)
class LocalSet:
    """The questions of a file with their line numbers; goals have the name of their `team`."""

    name: str
    file: Path
    questions: list[tuple[int, EvalQuestion]]
    team: str | None = None

    def data_path(self, name: str) -> Path:
        """Returns the path of a question's data, relative to the set or to the goals' folder."""
        beside = self.file.parent / name
        return beside if beside.exists() or self.team is None else Path(name)


def set_file(given: str) -> Path | None:
    """Returns the file of a set, given as a file or a folder; None if it does not exist."""
    path = Path(given)
    if not path.exists():
        return None
    if not path.is_dir():
        return path
    for name in (QUESTIONS, GOALS):
        if (path / name).is_file():
            return path / name
    advice = f"{hint('docs', 'evals')} shows how to write one"
    raise CommandFailed(BAD_INPUT, f"{path} has no {QUESTIONS}, and no {GOALS}: {advice}")


def read_set(file: Path, limit: int | None) -> LocalSet:
    """Returns the set in a file, or its first `limit` questions.

    Raises CommandFailed with the line of an invalid question.
    """
    content = read_text_file(file).decode("utf-8-sig")
    name = slug(file.resolve().parent.name if file.name in (QUESTIONS, GOALS) else file.stem, 30)
    try:
        if file.suffix == ".toml":
            team = file.resolve().parent.name
            found = list(enumerate(goals_as_questions(team, tomllib.loads(content)), 1))
            known = LocalSet(name, file, found[:limit], team)
        else:
            known = LocalSet(name, file, read_questions(content)[:limit])
        for line, question in known.questions:
            if question.data is not None and not known.data_path(question.data).exists():
                raise BadQuestion(line, f"there is no {known.data_path(question.data)}")
    except (BadQuestion, tomllib.TOMLDecodeError) as error:
        raise CommandFailed(BAD_INPUT, f"{file}: {error}") from None
    return known


async def with_results(known: LocalSet) -> LocalSet:
    """Returns the set with each query replaced by its result.

    Raises CommandFailed with the line.
    """
    found: list[tuple[int, EvalQuestion]] = []
    stores: dict[str, TableStore] = {}
    for line, question in known.questions:
        if question.answer.kind != "sql":
            found.append((line, question))
            continue
        name = str(question.data)
        try:
            if name not in stores:
                stores[name] = await _tables(known.data_path(name))
            answer = await _query_result(stores[name], question)
        except (ValueError, CommandFailed) as problem:
            words = problem.message if isinstance(problem, CommandFailed) else str(problem)
            raise CommandFailed(BAD_INPUT, f"{known.file}: line {line}: {words}") from None
        found.append((line, question.model_copy(update={"answer": answer})))
    return replace(known, questions=found)


async def _tables(path: Path) -> "TableStore":
    """Returns the tables of a file or folder, read as runs read them."""
    # these load the reader of tables and the checker of queries: 0.5 s, for such questions only
    from activities.files.file_reports import with_unique_tables
    from activities.tools.sql.sql_tools import TableStore
    from temporal_supervisor.console.run.described_files import reports_on

    return TableStore(with_unique_tables(await reports_on(found_files([path]))))


async def _query_result(store: "TableStore", question: EvalQuestion) -> Truth:
    """Returns the result of a question's query as its answer. Raises ValueError."""
    from activities.tools.tool import ToolMisuse

    try:
        rows = await store.query(str(question.answer.value))
    except ToolMisuse as misuse:
        raise ValueError(f"the query cannot run: {misuse}") from None
    if rows["more"]:
        raise ValueError(f"the query has more than {len(rows['rows'])} rows: ask for less")
    return result_as_truth(question.answer, rows["columns"], rows["rows"])


def for_part(known: LocalSet, part: Part) -> LocalSet:
    """Returns the set for a part of a run's work alone.

    Raises CommandFailed with the line of a question that has nothing to judge that part by.
    """
    found = []
    for line, question in known.questions:
        try:
            found.append((line, question_for_part(question, part)))
        except ValueError as problem:
            raise CommandFailed(BAD_INPUT, f"{known.file}: line {line}: {problem}") from None
    return replace(known, questions=found)


def request_fields(file: Path | None) -> dict[str, Any]:
    """Returns the fields of a request file, for all runs. Raises CommandFailed."""
    if file is None:
        return {}
    fields = json_object(read_text_file(file), str(file), '{"max_turns": 20}')
    taken = sorted(fields.keys() & _EACH_QUESTION)
    if taken:
        raise CommandFailed(BAD_INPUT, f"{file}: each question has its own {', '.join(taken)}")
    return fields


def variants_of(
    fields: Mapping[str, JsonValue],
    team: str | None,
    models: Sequence[str],
    bare: Settings | None,
    part: Part = "whole",
) -> list[EvalVariant]:
    """Returns a variant for each model and, if asked for, a `bare` one for comparison.

    Raises CommandFailed.
    """
    found = []
    for model in [*models] or [""]:
        chosen = _with_team(fields, team)
        if model:
            chosen["models"] = {"supervisor": [model], "workers": [model]}
        label = model or "as configured"
        found.append(EvalVariant(label=label, request=chosen, part=part))
        if bare is not None:
            request = RunRequest.model_validate({"goal": "-", **chosen})
            alone = {**chosen, "team": bare_team(bare, request)}
            found.append(EvalVariant(label=f"{label}{BARE}", request=alone, bare=True))
    return found


def _with_team(fields: Mapping[str, JsonValue], team: str | None) -> dict[str, Any]:
    """Returns the fields of a request with the team, if one is given."""
    return {**fields, "team": team} if team else dict(fields)


def with_agents(
    settings: Settings,
    fields: Mapping[str, JsonValue],
    team: str | None,
) -> dict[str, Any]:
    """Returns the fields of a request with the roles of its team as an inline team.

    So each role can be asked alone. Raises CommandFailed.
    """
    named = _with_team(fields, team)
    known = _team_definition(settings, RunRequest.model_validate({"goal": "-", **named}))

    roles = []
    for role in known.roles:
        if role.team or role.person:
            continue
        kept = role.model_dump(mode="json", exclude_defaults=True, exclude={"fallback", "backup"})
        roles.append({**kept, "tools": [f"{known.name}/{tool}" for tool in role.tools]})
    if not roles:
        raise CommandFailed(BAD_INPUT, f"team '{known.name}' has no worker agent to ask alone")
    inline = {"name": "alone", "generalist": roles[0]["name"], "share_tools": True, "roles": roles}
    return {**fields, "team": inline}


def _team_definition(settings: Settings, request: RunRequest) -> Team:
    """Returns the team of a request from its team file. Raises CommandFailed."""
    # these load the libraries of tools: 0.5 s, for some options only
    from activities.teams.team_files import TeamError
    from temporal_supervisor.console.commands.team_commands import team_files

    try:
        return team_files(settings).definition(request.team_name or settings.team)
    except TeamError as error:
        raise CommandFailed(BAD_INPUT, error.message) from None


def bare_team(settings: Settings, request: RunRequest) -> dict[str, Any]:
    """Returns an inline team of one role with all tools of the request's team.

    Raises CommandFailed.
    """
    team = _team_definition(settings, request)
    tools = [f"{team.name}/{tool}" for tool in team.named_tools]
    role = {
        "name": "alone",
        "description": "Does all of the work.",
        "system_prompt": _ALONE,
        "tools": tools,
    }
    return {"name": "bare", "generalist": "alone", "roles": [role]}


def default_team(known: LocalSet, given: str | None, fields: Mapping[str, JsonValue]) -> str | None:
    """Returns the given team, the goals' team or, for files, the team that reads them."""
    if given or "team" in fields:
        return given
    has_data = any(question.data for _, question in known.questions)
    return known.team or (_FILES_TEAM if has_data else None)


def check_set(known: LocalSet, variants: Sequence[EvalVariant], repeat: int) -> EvalSet:
    """Returns the set without its data, after a check of each request.

    Raises CommandFailed with the line of a question whose request is invalid.
    """
    questions = [question for _, question in known.questions]
    paths = dict.fromkeys(question.data for question in questions if question.data is not None)
    data: dict[str, dict[str, JsonValue]] = {path: {"name": "files", "text": "-"} for path in paths}
    whole = EvalSet(
        name=known.name,
        questions=questions,
        variants=list(variants),
        repeat=repeat,
        data=data,
    )
    if whole.total > MOST_QUESTIONS:
        most = f"at most {MOST_QUESTIONS:,} are taken"
        words = f"{whole.total:,} runs, {most}: pass a smaller --limit"
        raise CommandFailed(BAD_INPUT, words)
    for index in range(0, whole.total, repeat):
        line, _ = known.questions[index // (len(variants) * repeat)]
        try:
            RunRequest.model_validate(whole.case(index).request())
        except KeyError as error:
            words = f"the team has no worker agent {error}: name one as `role`"
            raise CommandFailed(BAD_INPUT, f"{known.file}: line {line}: {words}") from None
        except ValidationError as error:
            raise CommandFailed(
                BAD_INPUT,
                f"{known.file}: line {line}: {describe_errors(error)}",
            ) from None
    return whole


def data_of(known: LocalSet) -> dict[str, list[DataFile]]:
    """Returns the files of each file or folder that questions name.

    Raises CommandFailed with the line.
    """
    found: dict[str, list[DataFile]] = {}
    for line, question in known.questions:
        if question.data is None or question.data in found:
            continue
        try:
            files = found_files([known.data_path(question.data)])
        except FilesRefused as refused:
            raise CommandFailed(BAD_INPUT, f"{known.file}: line {line}: {refused}") from None
        if all(file.problem for file in files):
            words = f"no file can be read: {files[0].name}: {files[0].problem}"
            raise CommandFailed(BAD_INPUT, f"{known.file}: line {line}: {words}")
        found[question.data] = files
    return found


async def store_set(
    store: ArtifactStore,
    whole: EvalSet,
    data: Mapping[str, list[DataFile]],
) -> str:
    """Stores the data and the set, and returns the set's reference."""
    attached: dict[str, dict[str, JsonValue]] = {}
    for path, files in data.items():
        ref = await put_files(store, files)
        attached[path] = {"name": "files", "ref": ref, "media_type": MANIFEST_TYPE}
    content = whole.model_copy(update={"data": attached}).model_dump_json(exclude_defaults=True)
    return await store.put_upload(content.encode("utf-8", "replace"))


def unknown_source(given: str) -> CommandFailed:
    """Returns the failure for a source that is neither a set nor an eval."""
    helps = f"name a folder with {QUESTIONS}, or an eval as {hint('eval', 'eval-...')}"
    return CommandFailed(BAD_INPUT, f"there is no file, folder or eval '{given}': {helps}")
