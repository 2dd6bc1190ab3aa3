"""Where the configuration file is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from vigil.config.finding import find_config
from vigil.errors import VigilError


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("VIGIL_CONFIG", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_the_environment_names_the_file(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("HOME", "/home/alice")
    assert find_config() == Path("/home/alice/.config/vigil/config.toml")
    environment.setenv("XDG_CONFIG_HOME", "/etc/alice")
    assert find_config() == Path("/etc/alice/vigil/config.toml")
    environment.setenv("VIGIL_CONFIG", "/srv/v.toml")
    assert find_config() == Path("/srv/v.toml")
    environment.setenv("VIGIL_CONFIG", "~/v.toml")
    assert find_config() == Path("/home/alice/v.toml")


def test_a_relative_name_is_made_absolute(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environment.chdir(tmp_path)
    environment.setenv("VIGIL_CONFIG", "here/../mine.toml")

    assert find_config() == tmp_path / "mine.toml"


@pytest.mark.parametrize(
    ("name", "words"), [("", "VIGIL_CONFIG is empty: unset it, or name a file"), ("~nobody-of-this-name/v", "set VIGIL_CONFIG")]
)
def test_a_name_that_names_nothing_is_refused_with_a_way_out(environment: pytest.MonkeyPatch, name: str, words: str) -> None:
    environment.setenv("VIGIL_CONFIG", name)

    with pytest.raises(VigilError, match=words):
        find_config()


@pytest.mark.parametrize("module", ["vigil.config.finding", "vigil.client.starting", "vigil.doctor"])
def test_who_only_looks_for_the_file_does_not_load_pydantic(module: str) -> None:
    code = f"import {module}, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert not {"pydantic", "pydantic_core"} & set(json.loads(done.stdout))
