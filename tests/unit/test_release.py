"""What a release is made of: every package pinned with hashes, the build backend too, and all of it listed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "locks").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins(lock: Path) -> dict[str, str]:
    """Return every pin of a lock with the lines that belong to it."""
    entries = re.split(r"\n(?=\S)", lock.read_text().strip())
    return {entry.partition("==")[0]: entry for entry in entries}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_package_of_a_lock_is_pinned_with_hashes(lock: Path) -> None:
    for name, entry in pins(lock).items():
        assert re.match(r"[a-z0-9._-]+==[^ ]+ ", entry), entry
        assert "--hash=sha256:" in entry, f"{name} has no hash"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_holds_all_that_the_project_asks_for(lock: Path) -> None:
    extras = PROJECT["project"]["optional-dependencies"].get(lock.stem, [])
    wanted = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"], *extras]

    assert {re.split(r"[<>=!~\[ ]", line)[0] for line in wanted} <= set(pins(lock))


def test_the_build_backend_is_pinned_to_what_the_lock_holds() -> None:
    (backend,) = PROJECT["build-system"]["requires"]

    assert pins(ROOT / "locks" / "base.txt")["hatchling"].startswith(f"{backend} ")


def test_the_bill_of_materials_names_every_package_with_its_hashes() -> None:
    printed = [
        subprocess.run([sys.executable, ROOT / "scripts/sbom"], capture_output=True, check=True).stdout for _ in range(2)
    ]
    document = json.loads(printed[0])
    listed = {component["name"]: component for component in document["components"]}

    assert printed[0] == printed[1]
    assert document["bomFormat"] == "CycloneDX"
    assert {"fastapi", "uvicorn", "pydantic", "sqlalchemy", "apprise"} <= set(listed)
    assert "hatchling" not in listed
    for name, component in listed.items():
        assert component["purl"] == f"pkg:pypi/{name}@{component['version']}"
        assert component["externalReferences"]
