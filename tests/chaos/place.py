"""Place: the folders of one run; the home may lie on a small disk of its own, so that it can be filled."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

VIGIL = (sys.executable, "-m", "vigil.cli")
CONFIG = """\
[restart]
backoff = {{ base = "2s", cap = "{cap_s}s", reset_after = "10m" }}

[launch]
least_memory = "16M"

[routes.harness]
exec = ["/bin/sh", "{receiver}"]
attempts = 20
retry = "1s"
"""
CAP_S = 6.0
HOME_MB = 64


@dataclass(frozen=True)
class Place:
    base: Path
    small: bool = False  # the home has a disk of its own

    @property
    def home(self) -> Path:
        """The VIGIL_HOME under fire."""
        return self.base / "home"

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def work(self) -> Path:
        """Scripts, traces and notices: ours alone."""
        return self.base / "work"

    @property
    def other(self) -> Path:
        """Another VIGIL_HOME, which nobody may touch."""
        return self.base / "other"

    @property
    def env(self) -> dict[str, str]:
        return self.env_of(self.home)

    def env_of(self, home: Path) -> dict[str, str]:
        """Return the environment of a person who uses an instance."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("VIGIL_", "TMUX"))}
        return kept | {"VIGIL_HOME": str(home), "VIGIL_CONFIG": str(self.work / "config.toml")}


def make_place(base: Path, small: bool) -> Place:
    """Make the folders; with `small`, mount a disk of a few megabytes for the home."""
    place = Place(base, small)
    for folder in (place.home, place.work, place.other):
        folder.mkdir(mode=0o700)
    if small:
        options = f"size={HOME_MB}m,mode=0700"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "chaos", str(place.home)], check=True)
    (place.work / "config.toml").write_text(CONFIG.format(cap_s=CAP_S, receiver=place.work / "receiver.sh"))
    return place
