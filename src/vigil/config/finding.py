"""Where the configuration file is. Standard library only: every command that starts the daemon asks."""

from __future__ import annotations

import os
from pathlib import Path

from vigil.errors import VigilError


def find_config() -> Path:
    """Return the absolute path that the environment names; the file need not exist."""
    named = os.environ.get("VIGIL_CONFIG")
    if named is not None and not named:
        raise VigilError("VIGIL_CONFIG is empty: unset it, or name a file")
    path = named or os.path.join(os.environ.get("XDG_CONFIG_HOME") or "~/.config", "vigil", "config.toml")
    try:
        return Path(os.path.abspath(Path(path).expanduser()))
    except RuntimeError:
        raise VigilError("there is no home folder to look for config.toml in: set VIGIL_CONFIG") from None
