"""The house: what a stranger finds by its name and reads in one go, what calls what, who alone reads /proc (HOUSE)."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import vigil

SOURCE = Path(vigil.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
NOUNS = {"reading", "sighting", "wiring"}  # these end like a gerund and are none
LINES = 350
FUNCTION_LINES = 50
ROOTS = {"proc", "PROC", "_proc"}  # what a path under /proc is made of, beside the words themselves


def test_a_class_name_is_defined_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(SOURCE)))

    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize("part", ["core", "daemon"])
def test_a_module_is_named_by_its_topic(part: str) -> None:
    names = {word for path in (SOURCE / part).rglob("*.py") for word in path.relative_to(SOURCE).with_suffix("").parts}

    assert {name for name in names if name.endswith("ing")} - NOUNS == set()


def test_only_the_machine_has_the_incidents_of_sessions_follow() -> None:
    handlers = (SOURCE / "core" / "handlers").glob("*.py")

    assert [path.stem for path in handlers if "session_incident" in _imported(path)] == []


def _imported(path: Path) -> set[str]:
    """Return every part of what a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            found |= {*(node.module or "").split("."), *(name.name for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {word for name in node.names for word in name.name.split(".")}
    return found


def test_the_page_a_reader_starts_from_lists_every_decision() -> None:
    rules = SOURCE / "core" / "rules"
    paths = [path.relative_to(rules).with_suffix("") for path in rules.rglob("*.py") if path.name != "__init__.py"]
    lines = (ast.get_docstring(ast.parse((rules / "__init__.py").read_text())) or "").splitlines()
    listed = [line.partition(":")[0].strip() for line in lines if line.startswith("    ")]

    assert sorted(listed) == sorted(".".join(path.parts) for path in paths)


def test_only_the_kernel_reads_proc() -> None:
    others = {str(path.relative_to(SOURCE)): path for path in MODULES if SOURCE / "kernel" not in path.parents}
    found = {name: paths_under_proc(path.read_text()) for name, path in others.items()}

    assert {name: paths for name, paths in found.items() if paths} == {}


def paths_under_proc(source: str) -> list[str]:
    """Return the expressions that make a path under /proc: its words, or a join with a root that was handed in."""
    found = []
    for node in ast.walk(ast.parse(source)):
        first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
        is_named = isinstance(first, ast.Constant) and re.match(r"/proc(/|\Z)", _text(first.value)) is not None
        is_joined = (
            (isinstance(node, ast.JoinedStr) and isinstance(first, ast.FormattedValue) and _is_root(first.value))
            or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add) and _is_root(node.left))
            or (isinstance(node, ast.Call) and len(node.args) > 1 and _is_root(node.args[0]) and _joins(node.func))
        )
        if is_named or is_joined:
            found.append(ast.unparse(node))
    return found


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value if isinstance(value, str) else ""


def _is_root(node: ast.expr) -> bool:
    """Say whether an expression is a root of /proc by its name, also wrapped in a call such as Path(proc)."""
    if isinstance(node, ast.Call) and len(node.args) == 1:
        node = node.args[0]
    return (node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else "") in ROOTS


def _joins(function: ast.expr) -> bool:
    return ast.unparse(function).rpartition(".")[2] in ("join", "joinpath", "Path")


@pytest.mark.parametrize(
    "source",
    [
        'open("/proc/self/stat")',
        'open(f"/proc/{pid}/stat", "rb")',
        'os.listdir("/proc")',
        'Path(b"/proc/meminfo")',
        'def f(proc: str = "/proc"): ...',
        'open(f"{proc}/{pid}/stat")',
        'open(f"{self._proc}/{pid}/stat")',
        'Path(proc) / "stat"',
        'PROC + "/stat"',
        'os.path.join(PROC, "stat")',
        'Path(PROC, "stat")',
        'process.PROC + "/stat"',
    ],
)
def test_every_way_to_name_a_path_under_proc_is_seen(source: str) -> None:
    assert paths_under_proc(source) != []


@pytest.mark.parametrize(
    "source",
    [
        '"/proc is not mounted"',
        '"mount -t proc proc /proc"',
        "read_scan(proc)",
        "def f(proc: str = PROC): ...",
        '"/process/x"',
        'f"{process}/x"',
    ],
)
def test_words_about_proc_are_none_of_its_paths(source: str) -> None:
    assert paths_under_proc(source) == []


def test_no_file_is_longer_than_a_reader_keeps_in_mind() -> None:
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in MODULES}

    assert {name: lines for name, lines in lengths.items() if lines > LINES} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    found: dict[str, int] = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                found[f"{path.relative_to(SOURCE)}:{node.name}:{node.lineno}"] = node.end_lineno - node.lineno + 1

    assert {name: lines for name, lines in found.items() if lines > FUNCTION_LINES} == {}
