"""Records: what Vigil wrote down and shows, read when all is calm; believed of nothing, only compared."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.chaos.history import DeathRow, History, IncidentRow, Json, NoticeRow
from tests.chaos.place import Place

LAUNCH = re.compile(r"([rs][a-z0-9]+-\d+)")
SESSION = re.compile(r"([rs][a-z0-9]+)")
KEYED = {"sessions": "id", "launches": "session_id", "intents": "session_id"}
FOLDERS = ("launches", "environments", "messages", "run", "deaths")
LOGS = ("daemon.err", "keeper.log", "daemon.log")


def read_all(place: Place, history: History) -> None:
    """Put all that Vigil has on record into the history."""
    with closing(sqlite3.connect(f"file:{place.home / 'vigil.db'}?mode=ro", uri=True, timeout=20)) as store:
        history.deaths = [_death(json.loads(body)) for (body,) in store.execute("select body from deaths")]
        history.incidents = [_incident(json.loads(body)) for (body,) in store.execute("select body from incidents")]
        for table, column in KEYED.items():
            history.tables[table] = sorted({row[0] for row in store.execute(f"select {column} from {table}")})
        history.launches = [row[0] for row in store.execute("select id from launches")]
    for folder in FOLDERS:
        names = os.listdir(place.home / folder)
        history.files[folder] = sorted({found[1] for name in names if (found := SESSION.match(name.removeprefix("d-")))})
    history.launches += [name for name in os.listdir(place.home / "launches") if LAUNCH.fullmatch(name)]
    history.notices = list(_notices(place.work / "notices"))
    history.words = sorted(set(_tracebacks(place.home / "log")))


def _death(body: Json) -> DeathRow:
    return DeathRow(
        id=body["id"],
        launch=body["launch_id"],
        session_id=body["session_id"],
        session=body["session"],
        at=body["at"],
        cause=body["cause"],
        exit_code=body["exit_code"],
        signal=body["signal"],
        charged=body["charged"],
        observed_by=body["observed_by"],
        uptime_s=body["uptime_s"],
        evidence=tuple(line["text"] for line in body["evidence"]),
    )


def _incident(body: Json) -> IncidentRow:
    return IncidentRow(
        id=body["id"],
        kind=body["kind"],
        severity=body["severity"],
        session=body["session"],
        session_id=body["session_id"],
        opened_at=body["opened_at"],
        resolved_at=body["resolved_at"],
        resolution=body.get("resolution", ""),
    )


def _notices(path: Path) -> Iterator[NoticeRow]:
    for line in path.read_text().splitlines():
        moment, _, text = line.partition(" ")
        body = json.loads(text)
        ids = [body.get("id"), *(one if isinstance(one, str) else one.get("id") for one in body.get("incidents", []))]
        yield NoticeRow(float(moment), body["notice"], body["event"], tuple(filter(None, ids)))


def _tracebacks(folder: Path) -> Iterator[str]:
    """Yield every traceback, as the file, its last place and its last line."""
    for name in LOGS:
        path = folder / name
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        for number, line in enumerate(lines):
            if "Traceback (most recent call last)" in line:
                yield f"{name}: {_last_of(lines[number + 1 : number + 200]) or line[:300]}"


def _last_of(lines: list[str]) -> str:
    where = ""
    for line in lines:
        if line.lstrip().startswith("File "):
            where = line.strip()
        elif line and not line.startswith((" ", "\t")):
            return f"{line[:200]} ({where})"
    return where
