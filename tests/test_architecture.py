"""The architecture as rules over the source: directions of imports, sizes, names, and what stays in one place.

A room is a sub-package, or a module that lies directly in its package.
"""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("workflows", "activities", "supervision", "runtime", "console", "standin", "teams")
MAINS = ("worker_main.py", "starter.py")
LINES = range(60, 301)
FOLDER_MODULES = 12

# what each package may import of ours, itself aside
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "supervision": (),
    "activities": ("supervision",),
    "workflows": ("activities", "supervision"),
    "runtime": ("supervision",),
    "standin": ("supervision",),
    "teams": ("activities", "supervision"),
    "console": ("activities", "supervision", "runtime", "standin", "teams", "workflows"),
}
# the rooms of each package from the lowest to the highest: a room imports only lower ones
ROOMS: dict[str, tuple[str, ...]] = {
    "supervision": (
        *("limits", "text", "queues", "prompt_marks", "errors", "store_keys", "trust", "team_references"),
        *("contract", "planning", "provider", "grounding", "agent", "budget", "results", "run"),
    ),
    "activities": (
        *("bounded", "contracts", "heartbeat", "store", "model", "tools", "teams", "prompts", "replies"),
        *("pools", "child_records", "run_setup", "planning", "agent_turn"),
        *("tool_calls", "judging", "synthesis", "publishing", "rights"),
        "attempts",
    ),
    "workflows": (
        *(
            "failures",
            "versions",
            "background",
            "start_window",
            "child_contracts",
            "nested",
            "run_context",
            "visibility",
        ),
        *("handlers", "calls"),
        *("agent_findings", "tool_loop", "worker_agent", "plan", "subtasks", "answer", "supervisor"),
    ),
    "runtime": (
        *("imports", "paths", "process", "experimental", "telemetry", "settings", "payloads", "search_attributes"),
        *("watchdog", "health", "shown_details", "queues"),
        *("server", "connection"),
    ),
    "standin": ("server", "extract", "__main__"),
    "console": (
        *("console_limits", "terminal", "access", "hints", "command"),
        *("run", "view", "checks", "commands", "demo"),
    ),
}
# modules of other sizes, each with its reason
EXCEPTIONS: dict[str, str] = {
    "activities/rights/grants.py": "the grant and where it is kept",
    "activities/replies/attempt_story.py": "one function, for the attempt that follows",
    "activities/prompts/agent_opening.py": "what a role's prompts begin with, for its calls and the run's first checks",
    "activities/teams/tool_kinds.py": "the table of tool kinds: a new kind is one line here",
    "activities/teams/catalogue.py": "what the planner knows of a team's data, bounded in one place",
    "activities/teams/own_tools.py": "where code of a team's author comes in: one function and the checks before it",
    "activities/tools/attachment.py": "a tool of its own",
    "activities/tools/files.py": "the files of a team, for the team file and for the tools that read data",
    "workflows/versions.py": "each change that histories of open runs lack, in one place",
    "workflows/answer/publish.py": "how every run ends: one function, and the only caller of its activity",
    "supervision/results/gaps.py": "the gaps of a board, for the result and for prompts",
    "workflows/answer/whole_finding.py": "the answers that nobody writes: beside those that are written",
    "supervision/planning/fixed_routes.py": "what a pattern of a team's route fits",
    "supervision/planning/team_hints.py": "hints for a team's author, for the Worker and the command line alike",
    "supervision/queues.py": "the names of the queues, for workflows, activities and clients alike",
    "supervision/prompt_marks.py": "marks in prompts, shared by `activities` (writes them) and `standin` (reads them)",
    "supervision/agent/finding_budget.py": "the room for findings in a prompt: activities and workflows use it",
    "supervision/results/timing.py": "the critical path: a computation on reports, not a part of the run's state",
    "supervision/agent/grounds.py": "what a finding may carry of its tool calls, in the progress of a worker agent",
    "supervision/run/trace.py": "the trace of a workflow, of supervisors and worker agents alike",
    "supervision/contract/finding.py": "a noun of the contract",
    "supervision/contract/progress.py": "nouns of the contract",
    "supervision/contract/updates.py": "nouns of the contract",
    "supervision/contract/model_choice.py": "nouns of the contract, for requests and team files",
    "supervision/budget/spending.py": "who spent what, beside the ledger, which knows no roles",
    "runtime/imports.py": "what mains import before all else: next to nothing",
    "runtime/health.py": "a program of its own: a container's health check",
    "runtime/experimental.py": "the experimental parts of the SDK, in one thin module: a new version is checked here",
    "runtime/paths.py": "the cache folder, used by every process",
    "activities/teams/team_mentions.py": "what team files name, for Workers and `doctor` alike",
    "runtime/search_attributes.py": "the search attributes of runs",
    "runtime/queues/plain_payloads.py": "what the SDK does in vain for each activation, left out",
    "runtime/shown_details.py": "an interceptor of its own, for every Worker of workflows",
    "runtime/server/server_limits.py": "numbers only",
    "console/console_limits.py": "numbers only",
    "supervision/limits.py": "numbers only, all in one place",
    "console/hints.py": "commands as they can be run here, for every screen that suggests one",
    "console/run/pollers.py": "the Workers of a queue: the start of a run, `doctor` and standstills ask for them",
    "console/checks/check_row.py": "a row of `doctor`, for the three modules that make them",
    "standin/__main__.py": "the command line: options, and the parts put together",
}
# what clients and process mains may know of the workflows: their types, not what they are made of
WORKFLOWS_IN_PUBLIC = ("workflows.supervisor", "workflows.worker_agent", "workflows.child_contracts")
EXPERIMENTAL = (
    "temporalio.contrib.aws",
    "temporalio.contrib.gcp",
    "temporalio.contrib.opentelemetry",
    "temporalio.contrib.workflow_streams",
    "temporalio.converter.ExternalStorage",
    "temporalio.converter.Storage",
    "temporalio.nexus",
    "temporalio.testing.TimeSkipper",
    "temporalio.worker.CustomSlotSupplier",
    "temporalio.worker.ResourceBased",
)


class Module(NamedTuple):
    """A parsed source file."""

    path: Path
    source: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """Its path in the repository."""
        return str(self.path.relative_to(ROOT))


def load(path: Path) -> Module:
    source = path.read_text(encoding="utf-8")
    return Module(path, source, ast.parse(source))


MODULES = {name: [load(path) for path in sorted((ROOT / name).rglob("*.py"))] for name in PACKAGES}
MODULES["mains"] = [load(ROOT / name) for name in MAINS if (ROOT / name).exists()]
ALL = [module for modules in MODULES.values() for module in modules]
PRODUCTION = [module for module in ALL if not module.name.startswith("teams/")]
NAMED = [module for module in PRODUCTION if module.path.name not in ("__init__.py", "__main__.py", *MAINS)]


def imported(module: Module) -> Iterator[str]:
    """Every dotted name a module imports: `from a import b` gives `a.b`."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


def breaches(modules: list[Module], forbidden: tuple[str, ...]) -> list[str]:
    return [
        f"{module.name} imports {name}" for module in modules for name in imported(module) if inside(name, forbidden)
    ]


def inside(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def calls(module: Module, function: str) -> Iterator[ast.Call]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            called = node.func
            if getattr(called, "id", getattr(called, "attr", None)) == function:
                yield node


def test_the_rules_see_the_code() -> None:
    """A moved folder must not turn every rule below into one about nothing."""
    assert all(MODULES[name] for name in ("workflows", "activities", "supervision", "runtime", "standin", "mains"))
    assert "temporalio.workflow" in imported(next(m for m in ALL if m.name == "workflows/supervisor.py"))


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_go_one_way(package: str) -> None:
    forbidden = {*PACKAGES, "worker_main", "starter", "tests", "benchmarks"} - {package, *MAY_IMPORT[package]}
    assert breaches(MODULES[package], tuple(sorted(forbidden))) == []


def test_imports_are_absolute() -> None:
    assert [module.name for module in ALL for name in imported(module) if name.startswith(".")] == []


def test_supervision_imports_only_pydantic_and_the_standard_library() -> None:
    allowed = (*sys.stdlib_module_names, "pydantic", "pydantic_core", "supervision")
    lines = [f"{module.name} imports {name}" for module in MODULES["supervision"] for name in imported(module)]
    assert [line for line in lines if not inside(line.split()[-1], allowed)] == []


def test_workflows_import_of_others_only_temporalio_and_pydantic() -> None:
    allowed = (*sys.stdlib_module_names, "temporalio", "pydantic", "workflows", "activities", "supervision")
    lines = [f"{module.name} imports {name}" for module in MODULES["workflows"] for name in imported(module)]
    assert [line for line in lines if not inside(line.split()[-1], allowed)] == []


def test_clients_know_the_workflows_types_and_not_their_parts() -> None:
    lines = breaches(MODULES["console"] + MODULES["mains"], ("workflows",))
    assert [line for line in lines if not inside(line.split()[-1], WORKFLOWS_IN_PUBLIC)] == []


def test_one_module_talks_to_the_model_sdk() -> None:
    others = [module for module in ALL if module.name != "activities/model/anthropic_model.py"]
    assert breaches(others, ("anthropic", "httpx2")) == []


def test_loading_the_workflows_loads_no_model_sdk() -> None:
    script = "import sys, workflows.supervisor, workflows.worker_agent; print('anthropic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr


def test_experimental_parts_of_the_sdk_are_imported_in_one_place() -> None:
    others = [module for module in ALL if module.name != "runtime/experimental.py"]
    lines = [f"{module.name} imports {name}" for module in others for name in imported(module)]
    assert [line for line in lines if line.split()[-1].startswith(EXPERIMENTAL)] == []


@pytest.mark.parametrize("package", ["workflows", "activities", "supervision"])
def test_nothing_is_printed(package: str) -> None:
    assert [f"{module.name}:{call.lineno}" for module in MODULES[package] for call in calls(module, "print")] == []


@pytest.mark.parametrize("package", ["workflows", "activities"])
def test_durations_come_from_the_limits(package: str) -> None:
    def is_literal(call: ast.Call) -> bool:
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        return any(isinstance(value, ast.Constant) and value.value for value in values)

    lines = [(module, call) for module in MODULES[package] for call in calls(module, "timedelta") if is_literal(call)]
    assert [f"{module.name}:{call.lineno}" for module, call in lines] == []


def test_modules_have_one_noun_and_60_to_300_lines() -> None:
    sizes = {m.name: m.source.count("\n") for m in PRODUCTION if m.path.name != "__init__.py"}
    odd = {name: lines for name, lines in sizes.items() if lines not in LINES}
    assert sorted(f"size of {name} ({lines} lines)" for name, lines in odd.items() if name not in EXCEPTIONS) == []
    assert [name for name in EXCEPTIONS if name not in odd] == [], "exceptions that are needed no longer"


def test_the_standin_stays_small() -> None:
    """It is a server for demo and tests, no model. Cache, windows and limit like the API's: 360 lines.

    Fields of an answer that are about one thing, and conversations that two servers share: 50.
    """
    parts = [*MODULES["standin"], load(ROOT / "tests/scripted_model.py"), load(ROOT / "benchmarks/bench_brain.py")]
    assert sum(module.source.count("\n") for module in parts) <= 2990


def test_folders_hold_at_most_twelve_modules() -> None:
    folders = Counter(module.path.parent.relative_to(ROOT).as_posix() for module in NAMED)
    assert sorted(f"folder {folder} ({n} modules)" for folder, n in folders.items() if n > FOLDER_MODULES) == []


def test_no_two_modules_have_the_same_name() -> None:
    names = Counter(module.path.stem for module in NAMED)
    assert sorted(f"module name {name} ({count} times)" for name, count in names.items() if count > 1) == []


def test_no_two_classes_have_the_same_name() -> None:
    names = Counter(node.name for module in NAMED for node in module.tree.body if isinstance(node, ast.ClassDef))
    assert sorted(f"class name {name} ({count} times)" for name, count in names.items() if count > 1) == []


@pytest.mark.parametrize("package", [name for name in PACKAGES if name != "teams"])
def test_rooms_import_only_lower_rooms(package: str) -> None:
    arrows = room_arrows(package)
    ranks = {room: rank for rank, room in enumerate(ROOMS[package])}
    assert set(arrows).union(*arrows.values()) == set(ranks), "ROOMS and the folders differ"
    upward = [(here, there) for here, others in arrows.items() for there in others if ranks[there] >= ranks[here]]
    assert sorted(f"{package}: {here} imports {there}" for here, there in upward) == []


def room_arrows(package: str) -> dict[str, set[str]]:
    """Which rooms of a package import which others."""
    arrows: dict[str, set[str]] = {}
    for module in MODULES[package]:
        room, *_ = module.path.relative_to(ROOT / package).with_suffix("").parts
        if room != "__init__":
            inner = {name.split(".")[1] for name in imported(module) if name.startswith(f"{package}.")}
            arrows.setdefault(room, set()).update(inner - {room})
    return arrows


@pytest.mark.parametrize("main", MAINS)
def test_mains_do_nothing_when_imported(main: str) -> None:
    harmless = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign)
    for node in load(ROOT / main).tree.body:
        guard = isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        known = is_registration(node) or is_import_that_explains_itself(node)
        known = known or ast.unparse(node) == "begin_imports()"  # only where the main is the program that runs
        assert guard or docstring or known or isinstance(node, (*harmless, ast.AnnAssign)), (
            f"{main}:{node.lineno}: {ast.unparse(node)}"
        )


def is_import_that_explains_itself(node: ast.stmt) -> bool:
    """Imports that, where their packages are missing, end the program with a sentence."""
    return (
        isinstance(node, ast.Try)
        and all(isinstance(part, (ast.Import, ast.ImportFrom)) for part in node.body)
        and all(ast.unparse(part).startswith("raise SystemExit(") for one in node.handlers for part in one.body)
        and not node.orelse + node.finalbody
    )


def is_registration(node: ast.stmt) -> bool:
    """`app.command(...)(...)` and `app.add_typer(...)` only fill a table."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and ast.unparse(node).startswith("app.")
