"""The architecture as rules over the source: who may import whom, and what stays in one place."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("workflows", "activities", "supervision", "runtime", "console", "standin", "teams")
MAINS = ("worker_main.py", "starter.py")
MAX_LINES = 300

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
    path: Path
    source: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))


def load(path: Path) -> Module:
    source = path.read_text(encoding="utf-8")
    return Module(path, source, ast.parse(source))


MODULES = {name: [load(path) for path in sorted((ROOT / name).rglob("*.py"))] for name in PACKAGES}
MODULES["mains"] = [load(ROOT / name) for name in MAINS if (ROOT / name).exists()]
ALL = [module for modules in MODULES.values() for module in modules]


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


def rooms(package: str) -> dict[str, set[str]]:
    """Which rooms of a package each of its rooms imports; a module beside the rooms is a room of its own."""

    def room(parts: tuple[str, ...]) -> str:
        return ".".join(parts[:2])

    arrows: dict[str, set[str]] = {}
    for module in MODULES[package]:
        here = room(module.path.relative_to(ROOT).with_suffix("").parts)
        inner = (tuple(name.split(".")) for name in imported(module) if inside(name, (package,)))
        arrows.setdefault(here, set()).update(room(parts) for parts in inner if room(parts) != here)
    return arrows


@pytest.mark.parametrize("package", ["workflows", "supervision"])
def test_the_rooms_of_a_package_import_each_other_one_way(package: str) -> None:
    arrows = rooms(package)
    assert len(arrows) > 5
    TopologicalSorter(arrows).prepare()  # CycleError names the circle


def test_supervision_imports_only_pydantic_and_the_standard_library() -> None:
    allowed = (*sys.stdlib_module_names, "pydantic", "pydantic_core", "supervision")
    found = [f"{module.name} imports {name}" for module in MODULES["supervision"] for name in imported(module)]
    assert [line for line in found if not inside(line.split()[-1], allowed)] == []


def test_workflows_import_of_others_only_temporalio_and_pydantic() -> None:
    allowed = (*sys.stdlib_module_names, "temporalio", "pydantic", "workflows", "activities", "supervision")
    found = [f"{module.name} imports {name}" for module in MODULES["workflows"] for name in imported(module)]
    assert [line for line in found if not inside(line.split()[-1], allowed)] == []


def test_clients_know_the_workflows_types_and_not_their_parts() -> None:
    found = breaches(MODULES["console"] + MODULES["mains"], ("workflows",))
    assert [line for line in found if not inside(line.split()[-1], WORKFLOWS_IN_PUBLIC)] == []


def test_one_module_talks_to_the_model_sdk() -> None:
    others = [module for module in ALL if module.name != "activities/model/anthropic_model.py"]
    assert breaches(others, ("anthropic", "httpx2")) == []


def test_loading_the_workflows_loads_no_model_sdk() -> None:
    script = "import sys, workflows.supervisor, workflows.worker_agent; print('anthropic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr


def test_experimental_parts_of_the_sdk_are_imported_in_one_place() -> None:
    others = [module for module in ALL if module.name != "runtime/experimental.py"]
    found = [f"{module.name} imports {name}" for module in others for name in imported(module)]
    assert [line for line in found if line.split()[-1].startswith(EXPERIMENTAL)] == []


@pytest.mark.parametrize("package", ["workflows", "activities", "supervision"])
def test_nothing_is_printed(package: str) -> None:
    assert [f"{module.name}:{call.lineno}" for module in MODULES[package] for call in calls(module, "print")] == []


@pytest.mark.parametrize("package", ["workflows", "activities"])
def test_durations_come_from_the_limits(package: str) -> None:
    def is_literal(call: ast.Call) -> bool:
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        return any(isinstance(value, ast.Constant) and value.value for value in values)

    found = [(module, call) for module in MODULES[package] for call in calls(module, "timedelta") if is_literal(call)]
    assert [f"{module.name}:{call.lineno}" for module, call in found] == []


def test_modules_stay_small() -> None:
    sizes = {module.name: module.source.count("\n") for module in ALL}
    assert {name: lines for name, lines in sizes.items() if lines > MAX_LINES} == {}


@pytest.mark.parametrize("main", MAINS)
def test_mains_do_nothing_when_imported(main: str) -> None:
    harmless = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign)
    for node in load(ROOT / main).tree.body:
        guard = isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        assert guard or docstring or isinstance(node, (*harmless, ast.AnnAssign)) or is_registration(node), (
            f"{main}:{node.lineno}: {ast.unparse(node)}"
        )


def is_registration(node: ast.stmt) -> bool:
    """`app.command(...)(...)` and `app.add_typer(...)` only fill a table."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and ast.unparse(node).startswith("app.")
