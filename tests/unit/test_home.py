"""An instance has one home; two homes are two instances."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.errors import VigilError
from vigil.home import LONGEST_SOCKET_NAME, SOCKET_PATH_BYTES, Home, find_home, home_at, make_home, parts_of

PATHS = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=120).map(
    lambda name: Path("/srv") / name.replace("..", "dots")
)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("VIGIL_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def modes(home: Home) -> dict[str, int]:
    folders = [home.path, home.run, home.launches, home.environments, home.spool, home.spool / "new", home.log]
    return {str(folder): stat.S_IMODE(folder.stat().st_mode) for folder in folders}


# Which home


def test_the_environment_names_the_home(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("HOME", "/home/alice")
    assert find_home().path == Path("/home/alice/.local/state/vigil")
    environment.setenv("XDG_STATE_HOME", "/var/alice")
    assert find_home().path == Path("/var/alice/vigil")
    environment.setenv("VIGIL_HOME", "/srv/v")
    assert find_home().path == Path("/srv/v")
    environment.setenv("VIGIL_HOME", "~/v")
    assert find_home().path == Path("/home/alice/v")


def test_an_empty_name_is_refused_with_a_way_out(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("VIGIL_HOME", "")

    with pytest.raises(VigilError, match="VIGIL_HOME is empty: unset it, or name a folder"):
        find_home()


def test_a_home_of_a_user_that_is_not_there_is_refused_in_words(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("VIGIL_HOME", "~nobody-of-this-name/v")

    with pytest.raises(VigilError, match="VIGIL_HOME"):
        find_home()


def test_a_relative_name_means_the_same_wherever_it_is_used(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment.chdir(tmp_path)
    environment.setenv("VIGIL_HOME", "here/../there")

    assert find_home().path == tmp_path / "there"


def test_finding_a_home_creates_nothing(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment.setenv("VIGIL_HOME", str(tmp_path / "v"))
    find_home()

    assert list(tmp_path.iterdir()) == []


# Where sockets lie


def test_the_sockets_of_a_short_home_lie_in_it() -> None:
    assert home_at(Path("/srv/v")).run == Path("/srv/v/run")


def test_the_sockets_of_a_long_home_lie_in_the_runtime_folder(environment: pytest.MonkeyPatch, short: Path) -> None:
    environment.setenv("XDG_RUNTIME_DIR", str(short))

    run = home_at(Path("/srv") / ("x" * 100)).run

    assert run.parent == short
    assert run.name.startswith("vigil-")


@pytest.mark.parametrize("runtime", [None, "", "/nowhere", "/srv/" + "x" * 60])
def test_the_sockets_of_a_long_home_lie_in_tmp_where_there_is_no_runtime_folder(
    environment: pytest.MonkeyPatch, runtime: str | None
) -> None:
    if runtime is not None:
        environment.setenv("XDG_RUNTIME_DIR", runtime)

    run = home_at(Path("/srv") / ("x" * 100)).run

    assert run.parent == Path("/tmp")
    assert run.name.startswith(f"vigil-{os.getuid()}-")


@given(PATHS)
def test_the_name_of_a_socket_is_never_too_long(path: Path) -> None:
    home = home_at(path)

    assert len(os.fsencode(home.run / ("x" * LONGEST_SOCKET_NAME))) <= SOCKET_PATH_BYTES
    for socket in (home.api_socket, home.keeper_socket, home.server_socket("sabcdefgh-1000000")):
        assert len(os.fsencode(socket)) <= SOCKET_PATH_BYTES


def test_the_name_of_a_socket_is_never_too_long_in_a_runtime_folder_of_wide_characters(
    environment: pytest.MonkeyPatch, short: Path
) -> None:
    runtime = short / ("世" * 30)
    runtime.mkdir()
    environment.setenv("XDG_RUNTIME_DIR", str(runtime))

    run = home_at(Path("/srv") / ("x" * 100)).run

    assert len(os.fsencode(run / ("x" * LONGEST_SOCKET_NAME))) <= SOCKET_PATH_BYTES


@given(PATHS, PATHS)
def test_two_homes_never_share_a_folder(one: Path, other: Path) -> None:
    first, second = home_at(one), home_at(other)

    if first.path != second.path:
        assert first.run != second.run
        assert first.database != second.database
        assert first.api_socket != second.api_socket
    else:
        assert first == second


def test_names_that_mean_one_folder_are_one_home() -> None:
    assert home_at(Path("/srv/v")) == home_at(Path("/srv/./x/../v/"))


# Making it


def test_every_folder_of_a_new_home_is_for_its_owner_only(short: Path) -> None:
    home = home_at(short / "v")
    old_mask = os.umask(0)
    try:
        make_home(home)
    finally:
        os.umask(old_mask)

    assert set(modes(home).values()) == {0o700}


def test_making_a_home_twice_changes_nothing(short: Path) -> None:
    home = home_at(short / "v")
    make_home(home)
    (home.log / "daemon.log").write_text("kept")

    make_home(home)

    assert (home.log / "daemon.log").read_text() == "kept"


def test_a_home_that_was_open_to_others_is_closed(short: Path) -> None:
    (short / "v").mkdir(mode=0o755)

    make_home(home_at(short / "v"))

    assert stat.S_IMODE((short / "v").stat().st_mode) == 0o700


def test_a_home_may_be_a_link_to_a_folder_of_ones_own(short: Path) -> None:
    (short / "real").mkdir()
    (short / "v").symlink_to(short / "real")

    make_home(home_at(short / "v"))

    assert (short / "real" / "run").is_dir()


def test_a_run_folder_that_is_a_link_is_refused(short: Path) -> None:
    home = home_at(short / "v")
    home.path.mkdir()
    (short / "elsewhere").mkdir(mode=0o700)
    home.run.symlink_to(short / "elsewhere")

    with pytest.raises(VigilError, match="is not a folder: remove it, or set VIGIL_HOME"):
        make_home(home)


def test_a_run_folder_that_is_open_to_others_is_refused_and_left_as_it_is(short: Path) -> None:
    home = home_at(short / "v")
    home.path.mkdir()
    home.run.mkdir()
    home.run.chmod(0o770)

    with pytest.raises(VigilError, match=r"open to others \(mode 770\): chmod 700 it, or remove it"):
        make_home(home)

    assert stat.S_IMODE(home.run.stat().st_mode) == 0o770


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_run_folder_of_somebody_else_is_refused(short: Path) -> None:
    home = home_at(short / "v")
    home.path.mkdir()
    home.run.mkdir(mode=0o700)
    os.chown(home.run, 12345, 12345)

    with pytest.raises(VigilError, match="belongs to uid 12345: set VIGIL_HOME to a folder of your own"):
        make_home(home)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_home_of_somebody_else_is_refused(short: Path) -> None:
    (short / "v").mkdir(mode=0o700)
    os.chown(short / "v", 12345, 12345)

    with pytest.raises(VigilError, match="belongs to uid 12345"):
        make_home(home_at(short / "v"))


@pytest.mark.parametrize("where", ["v", "v/run", "v/launches"])
def test_a_file_in_the_way_is_refused_with_its_name(short: Path, where: str) -> None:
    path = short / where
    path.parent.mkdir(exist_ok=True)
    path.write_text("in the way")

    with pytest.raises(VigilError, match=str(path)):
        make_home(home_at(short / "v"))

    assert path.read_text() == "in the way"


def test_every_name_of_a_home_lies_in_it() -> None:
    home = home_at(Path("/srv/v"))
    found = [home.database, home.launches, home.environments, home.spool, home.log, home.launch("s1-1"), home.api_socket]

    assert all(home.path in path.parents for path in [*found, home.keeper_socket, home.server_socket("s1-1")])


@given(st.text())
def test_only_a_number_behind_the_last_dash_makes_a_launch_id(name: str) -> None:
    assert parts_of("s1-12") == ("s1", 12)
    assert parts_of("s1-²") is None and parts_of("s1-" + "9" * 5000) is None
    found = parts_of(name)
    assert found is None or name.startswith(f"{found[0]}-") or found[0] == ""
