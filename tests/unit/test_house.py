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


# Parts that read what an agent could have written: there `kernel/theirs.py` opens, or a module has its reason here.
READERS = ("agents", "api", "daemon", "doctor", "forensics", "keeper", "manifest", "observe", "recording", "runtimes")
OPENERS = {"open", "os.open", "io.open", "codecs.open", "fdopen", "os.fdopen"}
READS = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "touch"}  # of a Path
MAY_OPEN = {
    "daemon/__main__.py": "the daemon's own lock, before there is an agent",
    "daemon/base/keeper_start.py": "the keeper's own log, in the folder of logs",
    "daemon/base/log.py": "the daemon's own log, once",
    "daemon/base/recorder.py": "a recording is made with O_EXCL where its user says",
    "daemon/serve/mailbox.py": "a folder, to sync it",
    "daemon/serve/programs.py": "of a descriptor of open_regular",
    "doctor/processes.py": "a lock, in a command that a user can end",
    "forensics/exit_log.py": "a folder, to lock it",
    "forensics/folders.py": "bundles are made with O_EXCL in a folder of their own",
    "keeper/births.py": "pipes that it made itself, without a wait, by no link",
    "keeper/main.py": "its own lock and log, and a descriptor that it was handed",
    "manifest/contradictions.py": "of a descriptor of open_regular",
    "observe/lines.py": "transcripts: it looks at the file by O_PATH first, as it must lie below what the agent owns",
    "recording/reading.py": "of a descriptor of open_regular",
    "runtimes/contract.py": "a launch's folder that was made a moment ago, before there is an agent",
    "runtimes/tmux/runtime.py": "a launch's folder that was made a moment ago, before there is an agent",
}


def test_what_an_agent_could_have_written_is_opened_in_one_way() -> None:
    found = {
        str(path.relative_to(SOURCE)): openings(path.read_text()) for part in READERS for path in (SOURCE / part).rglob("*.py")
    }

    assert {name: calls for name, calls in found.items() if calls and name not in MAY_OPEN} == {}
    assert sorted(name for name in MAY_OPEN if not found[name]) == [], "a reason without its opening"


def openings(source: str) -> list[str]:
    """Return the calls that open a file by themselves."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [ast.unparse(call) for call in calls if _opens(call.func)]


def _opens(function: ast.expr) -> bool:
    if ast.unparse(function) in OPENERS:
        return True
    return isinstance(function, ast.Attribute) and function.attr in READS and ast.unparse(function.value) != "self"


@pytest.mark.parametrize(
    "source",
    [
        "open(path)",
        "json.load(open(path))",
        "with open(path) as file: ...",
        "os.open(path, 0)",
        "path.read_text()",
        "(folder / name).read_bytes()",
        "Path(x).open()",
        "path.write_text(words)",
        "temporary.touch(0o600)",
    ],
)
def test_every_way_to_open_a_file_is_seen(source: str) -> None:
    assert openings(source) != []


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


def test_no_thread_is_taken_from_a_pool_that_everybody_shares() -> None:
    shared = re.compile(r"to_thread|run_in_executor|ThreadPoolExecutor|run_in_threadpool|set_default_executor")

    assert [str(path.relative_to(SOURCE)) for path in MODULES if shared.search(path.read_text())] == []


def test_every_route_runs_on_the_loop_and_none_in_a_pool_of_the_framework() -> None:
    found = [
        f"{path.name}:{node.name}"
        for path in (SOURCE / "api").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and any("router." in ast.unparse(one) for one in node.decorator_list)
    ]

    assert found == []
