"""Imports point one way (DESIGN 6): cli → client; api → daemon → the parts → core; and between the rooms of core and daemon."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import vigil

SOURCE = Path(vigil.__file__).parent
# Single files that anybody above the keeper may use.
SMALL = {
    "vigil",
    "vigil.kernel.theirs",  # how a file is opened that others may have put there
    *(f"vigil.{name}" for name in ("codec", "errors", "hands", "home", "moments", "redact", "text", "threads", "words")),
}
# What the keeper shares, with the kernel; the rest is its own.
KEEPER = {"vigil.kernel", "vigil.keeper.protocol", "vigil.keeper.records", "vigil.keeper.wire"}
PARTS = {f"vigil.{name}" for name in ("observe", "runtimes", "store", "agents", "forensics", "notify", "config", "manifest")}
STDLIB = set(sys.stdlib_module_names)

# Part: what of Vigil it may import besides itself. A name stands for a module and all below it.
MAY_IMPORT: dict[str, set[str]] = {
    "vigil": set(),
    "vigil.codec": set(),
    "vigil.errors": set(),
    "vigil.text": set(),
    "vigil.hands": set(),
    "vigil.threads": {"vigil.hands"},
    "vigil.moments": set(),
    "vigil.secret_names": set(),
    "vigil.secret_shapes": {"vigil.secret_names"},
    "vigil.redact": {"vigil.secret_names", "vigil.secret_shapes", "vigil.text"},
    "vigil.home": {"vigil.errors"},
    "vigil.words": set(),
    "vigil.core": {"vigil.words"},  # pure: how a person reads numbers and spans of time
    "vigil.kernel": set(),
    "vigil.keeper": {"vigil.kernel"},
    "vigil.fake_agent": set(),
    "vigil.command": {"vigil.kernel"},
    "vigil.recording": {"vigil.core", *SMALL},
    "vigil.config": {"vigil.core", *SMALL},
    "vigil.manifest": {"vigil.core", "vigil.config", "vigil.agents", *SMALL},
    "vigil.notify": {"vigil.core", "vigil.command", *SMALL},
    "vigil.observe": {"vigil.core", *KEEPER, *SMALL},
    "vigil.runtimes": {"vigil.core", "vigil.command", *KEEPER, *SMALL},
    "vigil.agents": {"vigil.core", *KEEPER, *SMALL},
    "vigil.forensics": {"vigil.core", *KEEPER, *SMALL},
    "vigil.store": {"vigil.core", *KEEPER, *SMALL},
    "vigil.daemon": {"vigil.core", "vigil.command", "vigil.recording", *PARTS, *KEEPER, *SMALL},
    "vigil.api": {"vigil.daemon", "vigil.core", *PARTS, *KEEPER, *SMALL},
    "vigil.client": {"vigil.config.finding", "vigil.kernel", *SMALL},
    "vigil.demo": {"vigil.client", "vigil.fake_agent", *KEEPER, *SMALL},
    # It looks where no daemon answers.
    "vigil.doctor": {
        "vigil.agents.adapters",
        "vigil.client",
        "vigil.config",
        "vigil.observe.strays",
        "vigil.observe.survivors",
        "vigil.store.revision",
        *KEEPER,
        *SMALL,
    },
    "vigil.__main__": {"vigil.cli"},  # python -m vigil
    "vigil.cli": {
        "vigil.client",
        "vigil.fake_agent",
        "vigil.demo",
        "vigil.doctor",
        "vigil.recording",
        "vigil.manifest",
        "vigil.kernel.shortage",
        "vigil.kernel.trust",  # what a command checks before it lists sockets or becomes a tmux client
        *SMALL,
    },
}
# Rooms: inside the core and the daemon too, imports point one way. Room: the rooms below it.
VALUES = {"vigil.core.model"}
DECIDED = {*VALUES, "vigil.core.rules"}
STATE = {*DECIDED, "vigil.core.book", "vigil.core.events", "vigil.core.effects"}
BASE = {"vigil.daemon.base"}
SENSED = {*BASE, "vigil.daemon.sense"}
DONE = {*SENSED, "vigil.daemon.act"}
ROOMS: dict[str, set[str]] = {
    "vigil.core.model": set(),
    "vigil.core.rules": VALUES,
    "vigil.core.events": {*DECIDED, "vigil.core.effects"},  # a timer is set by an effect, and fires as an event
    "vigil.core.effects": DECIDED,
    "vigil.core.book": STATE,
    "vigil.core.handlers": STATE,
    "vigil.core.machine": {*STATE, "vigil.core.handlers"},
    "vigil.daemon.base": set(),
    "vigil.daemon.sense": BASE,
    "vigil.daemon.act": SENSED,
    "vigil.daemon.commit": BASE,
    "vigil.daemon.supervisor": {*BASE, "vigil.daemon.commit"},
    "vigil.daemon.serve": {*DONE, "vigil.daemon.supervisor"},
    "vigil.daemon.tell": BASE,
    "vigil.daemon.start": DONE,
    "vigil.daemon.wiring": {"vigil.daemon"},
    "vigil.daemon.daemon": {"vigil.daemon"},
    "vigil.daemon.__main__": {"vigil.daemon", "vigil.api"},  # the process: it alone knows its API
}
# Part: what of others it may import besides the standard library.
MAY_USE: dict[str, set[str]] = {
    "vigil.store": {"sqlalchemy", "alembic"},
    "vigil.config": {"pydantic"},
    "vigil.manifest": {"pydantic", "pydantic_core"},
    "vigil.daemon": {"structlog"},
    "vigil.api": {"fastapi", "pydantic", "uvicorn", "starlette"},
    "vigil.cli": {"click"},
    "vigil.notify": {"apprise", "requests"},
}
IMPURE = {
    "asyncio",
    "os",
    "time",
    "random",
    "socket",
    "subprocess",
    "threading",
    "pathlib",
    "datetime",
    "secrets",
    "uuid",
    "select",
}
SLOW = ("asyncio", "sqlalchemy", "pydantic", "fastapi", "rich", "alembic", "structlog")


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


def part_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def imports_of(module: str) -> set[str]:
    """Return every module that a module names in an import, wherever in it that stands."""
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            names = {f"{base}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else base for name in names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("__import__", "importlib.import_module"):
            found.add(prefix_of(node.args[0]))
    return found


def prefix_of(argument: ast.expr) -> str:
    """Return what an import by a made-up name begins with."""
    if isinstance(argument, ast.JoinedStr) and argument.values and isinstance(argument.values[0], ast.Constant):
        argument = argument.values[0]
    assert isinstance(argument, ast.Constant), "a module is imported by a name that nobody can know"
    return str(argument.value).rstrip(".")


def within(name: str, allowed: set[str]) -> bool:
    return any(name == part or (part != "vigil" and name.startswith(f"{part}.")) for part in allowed)


def test_every_part_has_a_rule() -> None:
    assert {part_of(module) for module in MODULES} - set(MAY_IMPORT) == set()


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_one_way(module: str) -> None:
    assert points_up(module, imports_of(module)) == []


def points_up(module: str, imported: set[str]) -> list[str]:
    """Return what a module imports and may not, each with the rule that says so."""
    part, room = part_of(module), room_of(module)
    ours = {name for name in imported if name.split(".")[0] == "vigil"}
    allowed = {*MAY_IMPORT[part], *({part} - {"vigil"}), *(ROOMS[room] if room is not None else ())}
    found = [f"{name}: {part} may import only {sorted(allowed)}" for name in ours if not within(name, allowed)]
    if room is not None:
        inside = {name for name in ours if part_of(name) == part and not within(name, {*ROOMS[room], room}) and name != part}
        found += [f"{name}: {room} may import only {sorted(ROOMS[room])} of {part}" for name in inside]
    return sorted(found)


def room_of(module: str) -> str | None:
    return next((room for room in ROOMS if within(module, {room})), None)


@pytest.mark.parametrize("part", ["vigil.core", "vigil.daemon"])
def test_every_module_of_core_and_daemon_has_its_room(part: str) -> None:
    assert [module for module in MODULES if part_of(module) == part and module != part and room_of(module) is None] == []


@pytest.mark.parametrize(
    ("module", "imported", "rule"),
    [
        ("vigil.core.model.death", "vigil.core.rules.death", "vigil.core.model may import only [] of vigil.core"),
        ("vigil.core.rules.reap", "vigil.core.book", "vigil.core.rules may import only"),
        ("vigil.core.rules.stall.case", "vigil.core.events", "vigil.core.rules may import only"),
        ("vigil.core.book", "vigil.core.handlers.incident", "vigil.core.book may import only"),
        ("vigil.core.handlers.death", "vigil.core.machine", "vigil.core.handlers may import only"),
        ("vigil.core.effects", "vigil.core.book", "vigil.core.effects may import only"),
        ("vigil.daemon.base.clock", "vigil.daemon.sense.death", "vigil.daemon.base may import only [] of vigil.daemon"),
        ("vigil.daemon.sense.death", "vigil.daemon.act.end", "vigil.daemon.sense may import only"),
        ("vigil.daemon.act.end", "vigil.daemon.supervisor", "vigil.daemon.act may import only"),
        ("vigil.daemon.tell.alarms", "vigil.daemon.act", "vigil.daemon.tell may import only"),
        ("vigil.daemon.start.stored", "vigil.daemon.serve.sessions", "vigil.daemon.start may import only"),
        ("vigil.daemon.serve.reaper", "vigil.daemon.tell.alarms", "vigil.daemon.serve may import only"),
        ("vigil.daemon.daemon", "vigil.api.app", "vigil.daemon may import only"),
        ("vigil.core.rules.death", "vigil.kernel.process", "vigil.core may import only"),
        ("vigil.kernel.process", "vigil.keeper.records", "vigil.kernel may import only"),
        ("vigil.observe.trees", "vigil.daemon.base.log", "vigil.observe may import only"),
    ],
)
def test_an_import_that_points_up_is_named_with_its_rule(module: str, imported: str, rule: str) -> None:
    assert any(words.startswith(f"{imported}: {rule}") for words in points_up(module, {imported}))


@pytest.mark.parametrize("module", MODULES)
def test_a_part_uses_only_the_libraries_it_is_there_to_hide(module: str) -> None:
    theirs = {name.split(".")[0] for name in imports_of(module)} - {"vigil", "__future__"}

    assert sorted(theirs - STDLIB - MAY_USE.get(part_of(module), set())) == []


@pytest.mark.parametrize("module", [module for module in MODULES if part_of(module) == "vigil.core"])
def test_the_core_reads_no_clock_and_does_no_input_or_output(module: str) -> None:
    assert {name.split(".")[0] for name in imports_of(module)} & IMPURE == set()
    calls = {ast.unparse(node.func) for node in ast.walk(ast.parse(MODULES[module].read_text())) if isinstance(node, ast.Call)}
    assert calls & {"open", "print", "input"} == set()


@pytest.mark.parametrize("part", ["vigil.api", "vigil.cli"])
def test_nobody_imports_what_stands_at_the_top(part: str) -> None:
    users = {module for module in MODULES if any(within(name, {part}) for name in imports_of(module))}
    users -= {"vigil.daemon.__main__", "vigil.__main__"}  # the processes: they alone know their API or command

    assert {part_of(module) for module in users} == {part}


def test_the_check_sees_imports_of_every_form(tmp_path: Path) -> None:
    path = tmp_path / "sly.py"
    path.write_text(
        "import vigil.cli.ls as x\n"
        "def f():\n    from vigil.daemon import daemon\n    from vigil.core.model import State\n"
        "if True:\n    import importlib; importlib.import_module(f'vigil.api.{x}')\n"
        "from . import home\nfrom .store import store\nfrom ..observe.process import read_group\n"
    )
    MODULES["vigil.core.sly"] = path
    try:
        found = imports_of("vigil.core.sly")
    finally:
        del MODULES["vigil.core.sly"]

    assert found == {
        "vigil.cli.ls",
        "vigil.daemon.daemon",
        "vigil.core.model",
        "vigil.api",
        "importlib",
        "vigil.core",
        "vigil.core.store",
        "vigil.observe.process",
    }


def loaded_by(*modules: str) -> set[str]:
    """Return what a fresh interpreter has loaded after it imported these."""
    code = f"import {', '.join(modules)}, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "command", sorted(module for module in MODULES if part_of(module) == "vigil.cli" and not module.endswith("__main__"))
)
def test_a_command_starts_without_what_only_the_daemon_needs(command: str) -> None:
    loaded = {name.split(".")[0] for name in loaded_by("vigil.cli.main", command)}

    assert loaded & set(SLOW) == set()


def test_the_first_import_of_the_command_loads_no_other_command() -> None:
    loaded = {name for name in loaded_by("vigil.cli.main") if name.startswith("vigil.")}

    assert loaded == {"vigil.cli", "vigil.cli.commands", "vigil.cli.main", "vigil.errors"}


def test_the_keeper_loads_nothing_but_itself_and_the_standard_library() -> None:
    loaded = loaded_by("vigil.keeper.main")

    assert {part_of(name) for name in loaded if name.split(".")[0] == "vigil"} == {"vigil", "vigil.keeper", "vigil.kernel"}
    assert not {"dataclasses", "inspect"} & set(loaded)  # more than a megabyte for a few classes
    assert {name.split(".")[0] for name in loaded} & {*SLOW, "click", "uvicorn"} == set()
