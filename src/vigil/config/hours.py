"""Hours of a configuration file: times of day like "22:30", and time zones by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from vigil.config.wording import shown

HOUR = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)


def read_hour(value: object) -> float:
    """Return a time in seconds after midnight; ValueError says what is wrong."""
    found = HOUR.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f'{shown(value)} is no time of the day: give words like "22:30"')
    return int(found[1]) * 3600.0 + int(found[2]) * 60.0


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone by its name; without one, the host's."""

    name: str | None = None

    @classmethod
    def read(cls, value: object) -> Zone:
        """Return the zone of a name; ValueError if this host does not know it."""
        if isinstance(value, Zone):
            return value
        if not isinstance(value, str) or _zone(value) is None:
            raise ValueError(f'{shown(value)} is no time zone known here: give a name like "Europe/Berlin"')
        return cls(value)

    def __call__(self, at: float) -> float:
        """Return this zone's offset from UTC at a moment, in seconds."""
        zone = None if self.name is None else _zone(self.name)
        local = datetime.fromtimestamp(at, zone) if zone is not None else datetime.fromtimestamp(at).astimezone()
        offset = local.utcoffset()
        return 0.0 if offset is None else offset.total_seconds()


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        return None
