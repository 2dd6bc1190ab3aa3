"""The sandbox: what a confined agent sees, as bwrap's words; what is refused before anything is launched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vigil.core.model.sandbox import Sandbox
from vigil.home import Home, home_at, make_home
from vigil.runtimes.sandbox import SandboxView, ShownPath, argv_of, view_of

SYSTEM = (ShownPath("--ro-bind", "/usr", "/usr"), ShownPath("--symlink", "usr/bin", "/bin"))
SPOOL = ShownPath("--bind", "/v/launches/s1-1/spool", "/v/spool")
VIEW = SandboxView(Sandbox(), "/w", SYSTEM, ("/v",), SPOOL, ("/v/launches/s1-1/settings.json",), "/home/me")


def words(view: SandboxView) -> str:
    return " ".join(argv_of(view))


TABLE = {
    "the folder, writable": (VIEW, "--bind /w /w"),
    "the system, read-only": (VIEW, "--ro-bind /usr /usr"),
    "a link of the system as a link": (VIEW, "--symlink usr/bin /bin"),
    "processes of its own": (VIEW, "--unshare-pid"),
    "no right of root": (VIEW, "--cap-drop ALL"),
    "an empty home of its own": (VIEW, "--tmpfs /home/me"),
    "an empty /tmp": (VIEW, "--tmpfs /tmp"),
    "nothing of Vigil": (VIEW, "--tmpfs /v"),
    "its own spool in the place of all": (VIEW, "--bind /v/launches/s1-1/spool /v/spool"),
    "its settings, read-only": (VIEW, "--ro-bind /v/launches/s1-1/settings.json /v/launches/s1-1/settings.json"),
    "its folder first": (VIEW, "--chdir /w --"),
    "a listed path": (replace(VIEW, sandbox=Sandbox(read=("/opt/node",))), "--ro-bind /opt/node /opt/node"),
    "a listed path to write": (replace(VIEW, sandbox=Sandbox(write=("/home/me/.claude",))), "--bind /home/me/.claude"),
    "no network": (replace(VIEW, sandbox=Sandbox(network=False)), "--unshare-net"),
}


@pytest.mark.parametrize("what", TABLE)
def test_a_confined_agent_sees(what: str) -> None:
    view, shown = TABLE[what]

    assert shown in words(view)


def test_it_has_the_network_unless_it_is_told_otherwise() -> None:
    assert "--unshare-net" not in words(VIEW)


def test_what_lies_inside_is_shown_after_what_lies_around_it() -> None:
    view = replace(VIEW, cwd="/home/me", hidden=("/home/me/state/vigil",), sandbox=Sandbox(write=("/home/me/.claude",)))

    order = [words(view).index(f" {path} ") for path in ("/home/me", "/home/me/.claude", "/home/me/state/vigil")]

    assert order == sorted(order)
    assert words(view).index("--tmpfs /home/me ") < words(view).index("--bind /home/me /home/me ")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = home_at(tmp_path / "vigil")
    make_home(found)
    return found


def view(home: Home, cwd: Path, sandbox: Sandbox) -> SandboxView:
    return view_of(sandbox, str(cwd), home, home.launch("s1-1"), (), {"HOME": "/home/me"})


def test_vigil_is_hidden_also_where_a_listed_path_shows_it_by_another_name(home: Home, tmp_path: Path) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(tmp_path)

    found = view(home, tmp_path, Sandbox(read=(str(alias),)))

    assert {str(home.path), f"{alias}/vigil"} <= set(found.hidden)


@pytest.mark.parametrize("inside", ["", "launches", "spool"])
def test_a_path_in_vigils_own_home_is_refused(home: Home, tmp_path: Path, inside: str) -> None:
    with pytest.raises(ValueError, match="cannot be shown"):
        view(home, tmp_path, Sandbox(read=(str(home.path / inside),)))
    with pytest.raises(ValueError, match="cannot be shown"):
        view(home, home.path / inside, Sandbox())


def test_the_whole_host_is_refused(home: Home) -> None:
    with pytest.raises(ValueError, match="no sandbox with / in it"):
        view(home, Path("/"), Sandbox())


def test_a_path_that_is_missing_is_refused(home: Home, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="/nowhere does not exist"):
        view(home, tmp_path, Sandbox(write=("/nowhere",)))
