"""The doctor on doors that others could open: real folders, pipes and links."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from vigil.doctor.finding import Finding, Level
from vigil.doctor.patient import Patient
from vigil.doctor.safety import check_safety
from vigil.home import home_at, make_home
from vigil.kernel.process import read_start_ticks

NOBODY = 65534


def findings(short: Path) -> list[Finding]:
    """Return what the check says of a home in this folder; its path may be too long for sockets, which is noted."""
    home = home_at(short / "home")
    make_home(home)
    return [finding for finding in check_safety(Patient(home)) if finding.level is not Level.NOTE]


@pytest.fixture(autouse=True)
def tmux_folder(short: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for tmux servers of this test's own."""
    monkeypatch.setenv("TMUX_TMPDIR", str(short))
    folder = short / f"tmux-{os.getuid()}"
    folder.mkdir(mode=0o700)
    return folder


def test_a_clean_home_is_well(short: Path) -> None:
    assert [finding for finding in findings(short) if finding.level is not Level.OK] == []


def test_a_folder_of_another_user_is_named(short: Path, tmux_folder: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("giving a folder away needs root")
    os.chown(tmux_folder, NOBODY, NOBODY)

    (finding,) = findings(short)

    assert finding.level is Level.WARNING
    assert f"belongs to uid {NOBODY}" in finding.says


def test_a_folder_that_is_a_link_is_named(short: Path, tmux_folder: Path) -> None:
    tmux_folder.rename(short / "elsewhere")
    tmux_folder.symlink_to(short / "elsewhere")

    (finding,) = findings(short)

    assert "is a link" in finding.says


def test_a_folder_that_others_may_write_is_mended(short: Path, tmux_folder: Path) -> None:
    tmux_folder.chmod(0o777)

    (finding,) = findings(short)
    assert finding.mend is not None
    finding.mend()

    assert [finding for finding in findings(short) if finding.level is not Level.OK] == []


def test_pipes_and_links_among_agents_files_are_named(short: Path) -> None:
    home = home_at(short / "home")
    make_home(home)
    launch = home.launches / "01J"
    launch.mkdir()
    os.mkfifo(launch / "stderr.log")
    (home.spool / "z.json").symlink_to("/dev/zero")
    (launch / "launch.json").write_text("{}")

    (finding,) = findings(short)

    assert finding.level is Level.WARNING
    assert "stderr.log" in finding.says and "z.json" in finding.says and "launch.json" not in finding.says


def test_sockets_in_a_common_folder_are_noted(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    home = home_at(short / ("h" * 80))
    make_home(home)

    says = " ".join(finding.says for finding in check_safety(Patient(home)))
    home.run.rmdir()

    assert str(home.run) in says


def test_agents_without_a_sandbox_are_counted(short: Path) -> None:
    home = home_at(short / "home")
    make_home(home)
    for name in ("s1-1", "s2-1"):
        home.launch(name).mkdir()
        (home.launch(name) / "born.json").write_text(json.dumps({"agent": [os.getpid(), read_start_ticks(os.getpid())]}))
    (home.launch("s2-1") / "spool").mkdir()

    says = [finding.says for finding in check_safety(Patient(home)) if finding.level is Level.NOTE]

    assert any(line.startswith("1 of 2 living agents have no sandbox") for line in says)
