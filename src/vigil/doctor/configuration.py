"""The check of the configuration file: what is wrong in it."""

from __future__ import annotations

from vigil.config.finding import find_config
from vigil.doctor.finding import Finding, ok, problem
from vigil.errors import VigilError


def check_config() -> list[Finding]:
    """The file a daemon that is started now would be given."""
    from vigil.config.loading import ConfigFile, ConfigRefused  # pydantic: no command may wait for it before it has to

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
