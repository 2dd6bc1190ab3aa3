"""Asking the daemon: one method for each request; its errors come back as ours, with their exit codes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

from vigil.client import http
from vigil.client.living import unsafe, wait_for_answer
from vigil.client.starting import start_daemon
from vigil.errors import BY_EXIT_CODE, Unreachable, VigilError
from vigil.home import Home, find_home
from vigil.kernel.trust import Untrusted

READ_S = 15.0
TEST_S = 620.0  # the longest time a route may take
ACT_S = 120.0  # a verb waits until it is done: a grace, a kill, a launch
Json = dict[str, Any]


class Client:
    """A connection to the daemon of one home."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.trouble = ""  # why the last answer may be old
        self.removed_until = ""  # a moment: of the records in the last answer, older ones may be deleted

    def status(self) -> Json:
        """Return who the daemon is and how it is."""
        return self._ask("GET", "/v1/daemon")

    def stop_daemon(self, kill_sessions: bool = False) -> Json:
        """End the daemon, and on request all sessions."""
        return self._ask("POST", f"/v1/daemon:stop?kill_sessions={'true' if kill_sessions else 'false'}")

    def sessions(self, everything: bool = False) -> list[Json]:
        return self._ask("GET", f"/v1/sessions{'?all=true' if everything else ''}")

    def session(self, name: str) -> Json:
        return self._ask("GET", self._path(name))

    def run(self, wanted: Json) -> Json:
        """Declare a session and launch it."""
        return self._ask("POST", "/v1/sessions", wanted)

    def ask(self, verb: str, name: str, reason: str | None = None) -> Json:
        """Stop, start, restart, reset or hibernate a session; the intent keeps the reason."""
        return self._ask("POST", f"{self._path(name)}:{verb}{_query(reason=reason or None)}")

    def wake(self, name: str, mode: str | None = None) -> Json:
        """Wake a session: fresh, with its conversation, or as its last end says."""
        return self._ask("POST", f"{self._path(name)}:wake{_query(mode=mode)}")

    def heartbeat(self, name: str) -> Json:
        """Give a sign of life of a session, without waiting until it is durable."""
        return self._ask("POST", f"{self._path(name)}:heartbeat", within_s=READ_S)

    def rm(self, name: str, reason: str | None = None) -> Json:
        """End a session and purge its identity."""
        return self._ask("DELETE", f"{self._path(name)}{_query(reason=reason or None)}")

    def reap(self, dry_run: bool = False) -> list[Json]:
        """Have the reaper look at everything now; return what it found and did."""
        return self._ask("POST", f"/v1/reap{_query(dry_run=dry_run)}")

    def candidates(self, sockets: list[str]) -> list[Json]:
        """Return the sessions of other tmux servers."""
        query = "&".join(f"socket={quote(path)}" for path in sockets)
        return self._ask("GET", f"/v1/adopt?{query}")

    def adopt(self, target: str, sockets: list[str], name: str | None = None) -> Json:
        """Take over a tmux session that was started elsewhere."""
        return self._ask("POST", "/v1/adopt", {"target": target, "sockets": sockets, "name": name})

    def plan(self, manifest: Json) -> Json:
        """Return what applying a manifest would do."""
        return self._ask("POST", "/v1/manifest:plan", manifest)

    def apply(self, manifest: Json) -> Json:
        return self._ask("POST", "/v1/manifest:apply", manifest)

    def scale(self, role: str, replicas: int) -> Json:
        """Change how many replicas a role has."""
        return self._ask("POST", f"/v1/roles/{quote(role, safe='/')}:scale{_query(replicas=replicas)}")

    def roles(self) -> list[Json]:
        return self._ask("GET", "/v1/roles")

    def shift(self, team: str, role: str | None = None, timeout: str = "10m") -> Json:
        """Begin to replace the replicas of a team."""
        return self._ask("POST", f"/v1/teams/{quote(team, safe='/')}:shift{_query(role=role, timeout=timeout)}")

    def abort_shift(self, team: str, role: str | None = None) -> Json:
        """End the shift of a team, or of one of its roles, where it is."""
        return self._ask("POST", f"/v1/teams/{quote(team, safe='/')}:abort{_query(role=role)}")

    def down(self, team: str | None = None) -> Json:
        """Take down a team, or all of them."""
        return self._ask("POST", f"/v1/teams:down{_query(team=team)}")

    def send(self, name: str, text: str, wait_s: float | None = None) -> Json:
        """Type a prompt into a session's terminal; a sleeping session is woken for it."""
        body = {"text": text, "wait_s": wait_s}
        return self._ask("POST", f"{self._path(name)}:send", body, ACT_S + (wait_s or 0.0))

    def why(self, name: str) -> Json:
        return self._ask("GET", f"{self._path(name)}:why")

    def diag(self, name: str, window_s: float | None = None) -> Json:
        """Return what the processes of a session do right now."""
        return self._ask("GET", f"{self._path(name)}:diag{_query(window_s=window_s)}")

    def terminal(self, name: str) -> Json:
        """Return where a session's terminal is: launch, pane and server, never a command."""
        return self._ask("GET", f"{self._path(name)}:attach")

    def deaths(self, name: str | None = None) -> list[Json]:
        """Return death records, newest first."""
        return self._ask("GET", f"/v1/deaths{_query(session=name)}")

    def death(self, which: str) -> Json:
        """Return one death record by its id, or the last one of a session by its name."""
        return self._ask("GET", f"/v1/deaths/{quote(which, safe='/')}")

    def incidents(self, everything: bool = False) -> list[Json]:
        """Return the open incidents, or all."""
        return self._ask("GET", f"/v1/incidents{'?all=true' if everything else ''}")

    def incident(self, incident_id: str) -> Json:
        """Return one incident with its evidence and its whole story."""
        return self._ask("GET", f"/v1/incidents/{quote(incident_id, safe='/')}")

    def ack(self, incident_id: str) -> Json:
        """Mark an incident as known."""
        return self._ask("POST", f"/v1/incidents/{quote(incident_id, safe='/')}:ack")

    def test_route(self, name: str) -> Json:
        """Send a test by a route; waits as long as the route may take."""
        return self._ask("POST", f"/v1/routes/{quote(name, safe='')}:test", within_s=TEST_S)

    def events(self, name: str | None = None, since: float | None = None) -> list[Json]:
        return self._ask("GET", f"/v1/events{_query(session=name, since=since)}")

    def follow_events(self, name: str | None = None, after: int | None = None) -> Iterator[Json]:
        """Yield events as they become durable, after a sequence number if given, until the daemon ends."""
        with self._open("GET", f"/v1/events/stream{_query(session=name, after=after)}", None, timeout_s=None) as response:
            for line in response.lines():
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

    def logs(self, name: str, lines: int, raw: bool) -> bytes:
        """Return what an agent printed last."""
        with self._open("GET", f"{self._path(name)}:logs{_query(lines=lines, raw=raw)}", None, READ_S) as response:
            return response.read()

    def follow_logs(self, name: str, lines: int, raw: bool) -> Iterator[bytes]:
        """Yield what an agent prints, until its launch is over."""
        path = f"{self._path(name)}:logs{_query(lines=lines, raw=raw, follow=True)}"
        with self._open("GET", path, None, timeout_s=None) as response:
            yield from response.chunks()

    @staticmethod
    def _path(name: str) -> str:
        return f"/v1/sessions/{quote(name, safe='/')}"

    def _ask(self, method: str, path: str, body: Json | None = None, within_s: float | None = None) -> Any:
        with self._open(method, path, body, within_s or (READ_S if method == "GET" else ACT_S)) as response:
            self.trouble = response.trouble
            self.removed_until = response.removed_until
            return json.loads(response.read())

    @contextlib.contextmanager
    def _open(self, method: str, path: str, body: Json | None, timeout_s: float | None) -> Iterator[http.HttpAnswer]:
        """Ask, and yield the answer; a failure on the way is Unreachable."""
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = self._send(method, path, data, timeout_s)
            with contextlib.closing(answer):
                if answer.status >= 400:
                    raise _error_of(answer)
                yield answer
        except Untrusted as error:
            raise unsafe(error) from None
        except TimeoutError as error:
            raise Unreachable(f"the daemon gave no answer in {timeout_s:g} s; vigil daemon logs may say why") from error
        except (OSError, ValueError) as error:
            words = str(error) or type(error).__name__
            raise Unreachable(f"the daemon hung up ({words}); vigil daemon logs may say why") from error

    def _send(self, method: str, path: str, data: bytes | None, timeout_s: float | None) -> http.HttpAnswer:
        """Send a request to the daemon, once more if its socket was just lost: then it has read nothing."""
        where, lock = str(self.home.api_socket), str(self.home.lock("daemon"))
        try:
            return http.ask(where, method, path, data, timeout_s, lock)
        except (FileNotFoundError, ConnectionRefusedError):
            if not wait_for_answer(self.home):
                raise
            return http.ask(where, method, path, data, timeout_s, lock)


def connect(start: bool = True) -> Client:
    """Return a client of the daemon; start the daemon if none lives."""
    home = find_home()
    if not wait_for_answer(home):
        if not start:
            raise Unreachable(f"no daemon runs for {home.path}; any command that needs it starts it")
        start_daemon(home)
    return Client(home)


def _error_of(answer: http.HttpAnswer) -> VigilError:
    text = answer.read()
    try:
        body = json.loads(text)
        error = BY_EXIT_CODE[body["exit_code"]](body["error"])
        error.problems = tuple(body.get("problems", ()))
        return error
    except (ValueError, KeyError, TypeError):
        return VigilError(f"the daemon answered {answer.status}: {text[:200].decode('utf-8', 'replace')}")


def _query(**values: str | int | float | bool | None) -> str:
    given = {k: str(v).lower() if isinstance(v, bool) else v for k, v in values.items() if v is not None}
    return f"?{urlencode(given)}" if given else ""
