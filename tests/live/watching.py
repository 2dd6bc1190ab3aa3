"""What tests of liveness and incidents share: axes in a word each, and a route that writes down when it was called."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.live.instance import Instance

Json = dict[str, Any]


def values(session: Json) -> dict[str, str]:
    """Return the axes in a word each."""
    return {name: reading["value"] for name, reading in session["axes"].items() if reading}


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def configure(vigil: Instance, notices: Path, ladder: str = "") -> None:
    """Have every notice written to a file, with the time at which it came."""
    script = notices.with_suffix(".sh")
    script.write_text(f'#!/bin/sh\nread -r line\nprintf \'%s %s\\n\' "$(date +%s.%N)" "$line" >>{notices}\n')
    script.chmod(0o755)
    vigil.config.write_text(
        f"[agents.x]\nprocess = ['inner-agent']\n\n[routes.script]\nexec = ['{script}']\n\n"
        + (ladder or "[[ladder]]\nseverity = 'urgent'\nsteps = [{ route = 'script', after = '2s' }]\n")
    )


def read_notices(path: Path) -> list[tuple[float, Json]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [(float(line.split(" ", 1)[0]), json.loads(line.split(" ", 1)[1])) for line in lines]
