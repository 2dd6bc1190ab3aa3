"""The doctor looks at the configuration file a daemon would be given."""

from __future__ import annotations

from pathlib import Path

import pytest

from vigil.doctor import INSTANCE, Finding, Level
from vigil.doctor.configuration import check_config


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VIGIL_CONFIG", str(tmp_path / "config.toml"))
    return tmp_path / "config.toml"


def test_the_configuration_is_part_of_the_examination() -> None:
    assert "config" in INSTANCE


def test_no_file_is_well(path: Path) -> None:
    assert check_config() == [Finding(Level.OK, f"{path} does not exist: all is as by default")]


def test_a_valid_file_is_well(path: Path) -> None:
    path.write_text("[restart]\nmax_restarts = 3\n")

    assert check_config() == [Finding(Level.OK, f"{path} is valid")]


def test_a_file_that_is_not_valid_is_a_problem_with_every_mistake_and_the_way_out(path: Path) -> None:
    path.write_text("[reaper]\nintervall = 3\n[watchdog]\nstall_after = 0\n")

    (finding,) = check_config()

    assert finding.level is Level.PROBLEM
    assert finding.says == (
        f"{path} is not valid: config.toml: watchdog.stall_after: 0 is out of range: 1 s to 24 h; "
        "config.toml: reaper.intervall: unknown key; did you mean interval?"
    )
    assert finding.todo == f"correct {path}, then ask again"


def test_an_empty_name_is_a_problem_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIGIL_CONFIG", "")

    (finding,) = check_config()

    assert (finding.level, finding.todo) == (Level.PROBLEM, "correct VIGIL_CONFIG, then ask again")
