"""The architecture as rules over the source: directions of imports, names, and what stays in one place.

A package is a folder of the checkout, or one below `temporal_supervisor/`, which has modules of its own, too. A room is
a sub-package, or a module that lies directly in its package. Complexity is ruff's to check.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pytest

import temporal_supervisor

ROOT = Path(__file__).resolve().parents[1]
MAINS = ("worker_main.py", "starter.py")
MODULE_LINES = 500  # of 100 columns, what one reads in one sitting: a module is rarely longer
LONG_MODULES, LONGEST_MODULE = 3, 600
FOLDER_MODULES = 13


class Package(NamedTuple):
    """What a package may import of ours, its rooms from the lowest to the highest, and its arrows at most.

    A room imports only lower ones. `arrows` are the pairs of rooms of which one imports the other.
    """

    may_import: str
    rooms: str
    arrows: int


PACKAGES = {
    "supervision": Package(
        "", "base replies contract planning reuse provider grounding agent budget results run scores", arrows=26
    ),
    "activities": Package(
        "supervision tools",
        "bounded contracts heartbeat activity_telemetry store files model tools teams reuse prompts replies run "
        "questions agent evals attempt_interceptor",
        arrows=57,
    ),
    "workflows": Package(
        "activities supervision",
        "background children run calls outbox messages tool_loop worker_agent plan subtasks answer goal_run "
        "supervisor eval_workflow",
        arrows=47,  # `goal_run` builds the parts of a run, each of which knows the few that it uses
    ),
    "runtime": Package(
        "supervision bundled",
        "process local_models sdk_patches telemetry logs encryption settings setting_checks payloads "
        "search_attributes watchdog workers "
        "server connection",
        arrows=13,
    ),
    "standin": Package("supervision bundled", "server lookup extract __main__", arrows=4),
    "console": Package(
        "activities supervision tools runtime standin client runs outcomes starting messages bundled workflows",
        "base run view report commands evals mcp_server page demo",
        arrows=28,
    ),
}
ABOVE = "temporal_supervisor"  # holds these packages, and what client programs import
BELOW = ("supervision", "runtime", "standin", "console")
FOLDERS = {name: ROOT / ABOVE / name if name in BELOW else ROOT / name for name in PACKAGES}
# the modules that lie beside them, and what they may import of ours
BESIDE = {
    "__init__": "client tools child plugin testing supervision",
    "child": "supervision",
    "plugin": "own_packages runtime standin worker_main",  # what a Worker needs, when it runs
    "testing": "tools own_packages bundled activities supervision",  # likewise
    "own_packages": "",
    "tools": "supervision",
    "client": "runs outcomes starting messages supervision runtime",
    "runs": "outcomes starting messages trees supervision",
    "trees": "messages supervision",
    "outcomes": "supervision",
    "starting": "supervision runtime",
    "messages": "supervision",
    "bundled": "",
    "notebook": "console messages outcomes supervision",
}
# what clients and process mains may know of the workflows: their types, not what they are made of
WORKFLOWS_IN_PUBLIC = (
    *("workflows.supervisor", "workflows.worker_agent", "workflows.eval_workflow"),
    "workflows.children.child_contracts",
)
CONTRIB = ("aws", "gcp", "opentelemetry", "workflow_streams")
EXPERIMENTAL = (
    *(f"temporalio.contrib.{name}" for name in CONTRIB),
    *("temporalio.converter.ExternalStorage", "temporalio.converter.Storage", "temporalio.nexus"),
    *("temporalio.testing.TimeSkipper", "temporalio.worker.CustomSlotSupplier", "temporalio.worker.ResourceBased"),
)

# What parses or searches structure of others: it runs in child processes, bounded in time, memory and answer.
LIBRARIES = (
    *("jsonschema", "referencing", "duckdb", "sqlglot", "asyncpg", "pypdfium2", "python_calamine", "lxml"),
    *("markdown_it", "mammoth", "trafilatura", "mcp", "mcp_types"),
)
STANDARD_PARSERS = (
    *("zipfile", "tarfile", "gzip", "bz2", "lzma", "zlib", "sqlite3", "csv", "xml", "html.parser", "tomllib"),
    *("pickle", "plistlib", "email.parser", "simpleeval"),
)
BEHIND_THE_DOOR = (  # what child processes import, and no module of a Worker
    "activities/replies/schema_rules.py",
    *(
        f"activities/files/{name}.py"
        for name in ("conversion", "descriptions", "document_files", "document_index", "document_tables", "table_files")
    ),
    *(f"activities/files/tables/{name}.py" for name in ("columns", "endings", "engine")),
    *(
        f"activities/tools/sql/{name}.py"
        for name in (
            "empty_result",
            "own_questions",
            "postgres_process",
            "sql_check",
            "sql_process",
            "tied_rows",
        )
    ),
    *(f"activities/tools/mcp/{name}.py" for name in ("mcp_forms", "mcp_process")),
    "activities/tools/web/web_process.py",
)
PARSERS_ELSEWHERE = {
    "activities/contracts/run_contracts.py": ("zlib", "unpacks what a workflow packed, up to a bound"),
    "activities/teams/team_files.py": ("tomllib", "the operator's team files, up to a cap, in a thread"),
    "temporal_supervisor/notebook.py": ("csv", "the table that the run itself has written, in the user's notebook"),
    "temporal_supervisor/console/run/team_goals.py": ("tomllib", "the goals beside a team file, in a command"),
    "temporal_supervisor/console/evals/set_files.py": ("tomllib", "the same goals as a set of questions"),
    "activities/tools/plain_tools.py": ("simpleeval", "a short expression of a model, measured by the corpus"),
    f"{ABOVE}/supervision/results/answer_table.py": ("csv", "writes tables"),
    f"{ABOVE}/console/view/office_files.py": ("csv markdown_it", "writes files, in a command"),
    f"{ABOVE}/console/report/report_data.py": ("csv", "a command or page of the user, no Worker"),
    f"{ABOVE}/console/report/report_page.py": ("markdown_it", "a command or page of the user, no Worker"),
    f"{ABOVE}/console/mcp_server/mcp_serving.py": ("mcp mcp_types", "a server of the user's own client, no Worker"),
    f"{ABOVE}/console/mcp_server/run_tools.py": ("mcp mcp_types", "a server of the user's own client, no Worker"),
}
READ_BY_COMMANDS = (f"{ABOVE}/console/run/described_files.py imports activities.files.descriptions",)


@dataclass(frozen=True)
class Module:
    """A source file, parsed when it is first asked for: each process of the tests collects this module."""

    path: Path
    other_source: str | None = None
    """A text in place of the file's."""

    @cached_property
    def source(self) -> str:
        """Its text."""
        if self.other_source is not None:
            return self.other_source
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.source)

    @cached_property
    def imports(self) -> tuple[str, ...]:
        """Every dotted name that it imports: `from a import b` gives `a.b`."""
        names: list[str] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                names += (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names += (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)
        return tuple(names)

    @property
    def name(self) -> str:
        """Its path in the repository."""
        return str(self.path.relative_to(ROOT))


MODULES = {name: [Module(path) for path in sorted(folder.rglob("*.py"))] for name, folder in FOLDERS.items()}
MODULES |= {name: [Module(ROOT / ABOVE / f"{name}.py")] for name in BESIDE}
MODULES["mains"] = [Module(ROOT / name) for name in MAINS]
ALL = [module for modules in MODULES.values() for module in modules]
NAMED = [module for module in ALL if module.path.name not in ("__init__.py", "__main__.py", *MAINS)]


def breaches(modules: list[Module], forbidden: tuple[str, ...]) -> list[str]:
    return [f"{module.name} imports {name}" for module in modules for name in module.imports if inside(name, forbidden)]


def others_than(package: str, allowed: tuple[str, ...]) -> list[str]:
    """The imports of a package that are neither allowed nor of the standard library."""
    lines = [f"{module.name} imports {name}" for module in MODULES[package] for name in module.imports]
    return [line for line in lines if not inside(line.split()[-1], (*sys.stdlib_module_names, *allowed))]


def inside(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def dotted(name: str) -> str:
    """The name by which a package, or a module beside them, is imported."""
    return f"{ABOVE}.{name}" if name in BELOW or name in BESIDE else name


def room_arrows(package: str) -> dict[str, set[str]]:
    """Which rooms of a package import which others."""
    arrows: dict[str, set[str]] = {}
    for module in MODULES[package]:
        room, *_ = module.path.relative_to(FOLDERS[package]).with_suffix("").parts
        if room != "__init__":
            inside_it = f"{dotted(package)}."
            inner = {
                name.removeprefix(inside_it).split(".")[0] for name in module.imports if name.startswith(inside_it)
            }
            arrows.setdefault(room, set()).update(inner - {room})
    return arrows


def forbidden_to(name: str, may_import: str) -> tuple[str, ...]:
    """What a package, or a module beside them, may not import of ours."""
    others = {*PACKAGES, *BESIDE, "worker_main", "starter", "tests", "benchmarks"} - {name, *may_import.split()}
    return tuple(sorted(map(dotted, others)))


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_one_way(package: str) -> None:
    assert breaches(MODULES[package], forbidden_to(package, PACKAGES[package].may_import)) == []


@pytest.mark.parametrize("package", [name for name in PACKAGES if name != "console"])
def test_what_lies_below_does_not_load_the_names_of_clients(package: str) -> None:
    """`from temporal_supervisor import start` would load the client; only the command line is one."""
    below = tuple(map(dotted, (*BELOW, *BESIDE)))
    ours = [name for module in MODULES[package] for name in module.imports if inside(name, (ABOVE,))]
    assert [name for name in ours if not inside(name, below)] == []


@pytest.mark.parametrize("module", BESIDE)
def test_modules_for_client_programs_import_one_way(module: str) -> None:
    assert breaches(MODULES[module], forbidden_to(module, BESIDE[module])) == []
    known = {path.stem for path in (ROOT / ABOVE).glob("*.py")}
    assert known == BESIDE.keys()


def test_the_names_of_clients_are_those_that_type_checkers_see() -> None:
    (module,) = MODULES["__init__"]
    (block,) = (node for node in module.tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    declared = {alias.name: node.module for node in imports for alias in node.names}
    assert declared == temporal_supervisor._HOMES
    assert all(getattr(temporal_supervisor, name) is not None for name in declared)


def test_importing_the_package_loads_no_client() -> None:
    script = "import sys, temporal_supervisor.supervision.base.text; print('temporalio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr


@pytest.mark.parametrize("package", PACKAGES)
def test_rooms_import_only_lower_rooms(package: str) -> None:
    arrows, ranks = room_arrows(package), {room: rank for rank, room in enumerate(PACKAGES[package].rooms.split())}
    assert set(arrows).union(*arrows.values()) == set(ranks), "the table and the folders differ"
    upward = [(here, there) for here, others in arrows.items() for there in others if ranks[there] >= ranks[here]]
    assert sorted(f"{here} imports {there}" for here, there in upward) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_have_few_arrows(package: str) -> None:
    assert sum(map(len, room_arrows(package).values())) <= PACKAGES[package].arrows


def test_modules_can_be_read_in_one_sitting() -> None:
    sizes = {module.name: module.source.count("\n") for module in ALL}
    long = {name: lines for name, lines in sizes.items() if lines > MODULE_LINES}
    assert len(long) <= LONG_MODULES, long
    assert max(sizes.values()) <= LONGEST_MODULE, long


def test_folders_hold_about_twelve_modules_at_most() -> None:
    folders = Counter(module.path.parent.relative_to(ROOT).as_posix() for module in NAMED)
    assert {folder: count for folder, count in folders.items() if count > FOLDER_MODULES} == {}


def test_no_two_modules_and_no_two_classes_have_the_same_name() -> None:
    names = [module.path.stem for module in NAMED]
    names += [node.name for module in NAMED for node in module.tree.body if isinstance(node, ast.ClassDef)]
    assert {name: count for name, count in Counter(names).items() if count > 1} == {}


def test_no_type_has_two_definitions() -> None:
    """One alias is imported where it is needed; those of the same name that differ are other nouns."""
    assigned = [node for module in NAMED for node in module.tree.body if isinstance(node, ast.Assign)]
    aliases = [ast.unparse(node) for node in assigned if re.match("[A-Z][a-z]", ast.unparse(node))]
    assert {alias: count for alias, count in Counter(aliases).items() if count > 1} == {}


def test_imports_are_absolute() -> None:
    assert [module.name for module in ALL for name in module.imports if name.startswith(".")] == []


def test_rules_and_workflows_import_no_other_packages() -> None:
    assert others_than("supervision", ("pydantic", "pydantic_core", dotted("supervision"))) == []
    ours = ("workflows", "activities", dotted("supervision"))
    assert others_than("workflows", ("temporalio", "pydantic", *ours)) == []


def test_clients_know_the_workflows_types_and_not_their_parts() -> None:
    lines = breaches(MODULES["console"] + MODULES["mains"], ("workflows",))
    assert [line for line in lines if not inside(line.split()[-1], WORKFLOWS_IN_PUBLIC)] == []


def test_one_module_talks_to_the_model_sdk() -> None:
    others = [module for module in ALL if module.name != "activities/model/anthropic_model.py"]
    assert len(others) == len(ALL) - 1
    assert breaches(others, ("anthropic", "httpx2")) == []


def test_the_sdk_of_mcp_is_imported_where_no_worker_loads_it() -> None:
    mcp_server = f"{ABOVE}/console/mcp_server/"
    apart = ("activities/tools/mcp/mcp_process.py", "activities/tools/mcp/mcp_forms.py", mcp_server)
    assert breaches([module for module in ALL if not module.name.startswith(apart)], ("mcp", "mcp_types")) == []
    assert breaches(ALL, ("activities.tools.mcp.mcp_process",)) == []


def test_parsers_of_foreign_structure_are_imported_behind_the_door_alone() -> None:
    parsers = (*LIBRARIES, *STANDARD_PARSERS)
    found = dict[str, set[str]]()
    for module in ALL:
        named = {name.split(".")[0] for name in module.imports if inside(name, parsers)}
        if named and module.name not in BEHIND_THE_DOOR:
            found[module.name] = named
    assert found == {name: set(named.split()) for name, (named, _why) in PARSERS_ELSEWHERE.items()}


def test_no_module_of_a_worker_imports_one_behind_the_door() -> None:
    behind = tuple(name.removesuffix(".py").replace("/", ".") for name in BEHIND_THE_DOOR)
    others = [module for module in ALL if module.name not in BEHIND_THE_DOOR]
    lines = breaches(others, behind)
    assert [line for line in lines if not line.startswith(tuple(READ_BY_COMMANDS))] == []


def test_loading_a_worker_loads_no_parser_of_foreign_structure() -> None:
    script = f"import sys, worker_main; print(sorted(set({LIBRARIES}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_loading_the_workflows_loads_no_model_sdk() -> None:
    script = "import sys, workflows.supervisor, workflows.worker_agent; print('anthropic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr


def test_experimental_parts_of_the_sdk_are_imported_in_one_place() -> None:
    others = [module for module in ALL if module.name != "temporal_supervisor/runtime/sdk_patches.py"]
    lines = [f"{module.name} imports {name}" for module in others for name in module.imports]
    assert [line for line in lines if line.split()[-1].startswith(EXPERIMENTAL)] == []


@pytest.mark.parametrize("package", ["workflows", "activities"])
def test_durations_have_names(package: str) -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [(m.name, node) for m in MODULES[package] for node in ast.walk(m.tree) if isinstance(node, functions)]
    calls = [(name, node) for name, body in bodies for node in ast.walk(body) if isinstance(node, ast.Call)]
    made = [(name, call) for name, call in calls if ast.unparse(call.func).endswith("timedelta")]
    values = [(name, value) for name, call in made for value in (*call.args, *(word.value for word in call.keywords))]
    assert [f"{name}:{value.lineno}" for name, value in values if isinstance(value, ast.Constant) and value.value] == []


# where a task is made whose end and errors somebody awaits; all others are begun by `in_background`
AWAITED_TASKS = {
    "workflows/answer/publish.py: in_time",
    "workflows/background.py: in_background",
    "workflows/subtasks/attempt.py: _run_candidates",
    "workflows/subtasks/child_runs.py: __post_init__",
    "workflows/subtasks/dispatch.py: _start",
    "workflows/subtasks/dispatch.py: _stop",
    "workflows/subtasks/dispatch.py: task_at",  # a timer alone
    "workflows/supervisor.py: _finish_closing",
}


def test_tasks_of_workflows_are_awaited_or_their_errors_are_seen() -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    made = {
        f"{module.name}: {function.name}"
        for module in MODULES["workflows"]
        for function in ast.walk(module.tree)
        if isinstance(function, functions) and "asyncio.create_task(" in ast.unparse(function)
    }
    assert made == AWAITED_TASKS


def test_the_dispatch_is_woken_where_something_changes() -> None:
    woken = {module.name for module in MODULES["workflows"] if "changed.set" in ast.unparse(module.tree)}
    assert woken == {
        "workflows/supervisor.py",  # updates, resets, a model that answers again
        "workflows/messages/handlers.py",  # reports of nested runs
        "workflows/run/waiting.py",  # waits begin and end
        "workflows/run/slot_waits.py",  # slots come free
        "workflows/subtasks/agent_run.py",  # work waits for budget
        "workflows/subtasks/dispatch.py",  # subtasks end
    }


def test_what_leaves_a_run_is_issued_by_its_outbox() -> None:
    """Handlers that issued commands themselves would make the order of commands depend on when they are called."""
    issued = {
        f"{module.name}: {name}"
        for module in MODULES["workflows"]
        for name in ("upsert_memo", "upsert_search_attributes", ".signal(self", "activity_calls.notify")
        if name in ast.unparse(module.tree)
    }
    assert issued == {
        "workflows/outbox.py: upsert_memo",
        "workflows/outbox.py: upsert_search_attributes",
        "workflows/eval_workflow.py: upsert_search_attributes",  # at its end, which no handler begins
        "workflows/children/links.py: .signal(self",  # begun by the outbox, as notices are
        "workflows/calls/run_notices.py: activity_calls.notify",
    }


@pytest.mark.parametrize("main", MAINS)
def test_mains_do_nothing_when_imported(main: str) -> None:
    """Beside imports and definitions they have what fills the table of commands, and the guard."""
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
    harmless = (*definitions, ast.Import, ast.ImportFrom, ast.Try)
    _docstring, *body = Module(ROOT / main).tree.body
    others = [ast.unparse(node) for node in body if not isinstance(node, harmless)]
    known = ("app.", "if __name__ == '__main__'")
    assert [text for text in others if not text.startswith(known)] == []
