"""The check of the configuration file."""

from __future__ import annotations

from vigil.config.finding import find_config
from vigil.doctor.finding import Finding, ok, problem
from vigil.errors import VigilError


def check_config() -> list[Finding]:
    """Check the file that a daemon started now would get."""
    from vigil.config.loading import ConfigFile, ConfigRefused  # pydantic: imported only when needed, it is slow

    try:
        path = find_config()
    except VigilError as error:
        return [problem(str(error), "correct VIGIL_CONFIG, then ask again")]
    try:
        ConfigFile(path).read()
    except ConfigRefused as refused:
        return [problem(f"{path} is not valid: {refused}", f"correct {path}, then ask again")]
    if not path.exists():
        return [ok(f"{path} does not exist: all is as by default")]
    return [ok(f"{path} is valid")]
