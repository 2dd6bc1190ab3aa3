"""`vigil daemon`: start, stop, status, logs."""

from __future__ import annotations

import json
import os
import select
from pathlib import Path
from typing import Any

import click

from vigil.cli.options import output_option
from vigil.client import connect
from vigil.client.living import DeafDaemon, end_daemon, wait_for_answer
from vigil.errors import Unreachable
from vigil.home import find_home
from vigil.words import some

LOG_BYTES = 8 << 20  # of a file that turns over at half of that


@click.group(no_args_is_help=True)
def daemon() -> None:
    """Start, stop and look at the daemon; commands that need it start it by themselves.

    Example: vigil daemon status"""


@daemon.command()
@click.option("--record", metavar="FILE", type=click.Path(), help="Record all its events into a new file, for vigil replay.")
def start(record: str | None) -> None:
    """Start the daemon if it does not run.

    A recording begins with the daemon's start and ends with it. It holds the commands and folders of your sessions, and no
    environment.

    Example: vigil daemon start --record /tmp/today.jsonl"""
    if record is not None:
        from vigil.client.starting import start_daemon

        start_daemon(find_home(), record=Path(record))
    status = connect().status()
    print(f"the daemon runs as pid {status['pid']} for {status['home']}")
    if record is not None:
        print(f"it records {recording_words(status['recording'])}")


@daemon.command()
@click.option("--kill-sessions", is_flag=True, help="End every session too, and what of this home no session knows, verified.")
def stop(kill_sessions: bool) -> None:
    """Stop the daemon; all sessions run on, and the next command finds them.

    Example: vigil daemon stop --kill-sessions"""
    home = find_home()
    try:
        runs = wait_for_answer(home)
    except DeafDaemon as deaf:
        end_daemon(home, deaf.daemon)  # it cannot be asked: a signal says the same
        if not kill_sessions:
            print(f"the daemon (pid {deaf.daemon.pid}) could not be reached, and is stopped by a signal; its sessions run on")
            return
        runs = False
    if not kill_sessions and not runs:
        print("the daemon does not run")
        return
    client = connect(start=kill_sessions)  # only a daemon can end sessions
    status = client.status()
    with_keeper = kill_sessions and not status["keeper_wedged"]  # it has nothing left to watch; the user may remove the home
    ending = {"daemon": status["pid"], "keeper": status["keeper_pid"] if with_keeper else None}
    held = {what: _hold(pid) for what, pid in ending.items()}  # now: at their end the numbers may be others'
    unknown = client.stop_daemon(kill_sessions).get("unknown")
    for what, pidfd in held.items():
        if pidfd is not None and not select.select([pidfd], [], [], 30)[0]:
            raise Unreachable(f"the {what} (pid {ending[what]}) was told to stop, but still runs")
    print("the daemon is stopped" + ("; all sessions were ended" if kill_sessions else "; its sessions run on"))
    if unknown:
        print(f"ended too, though no session knew of it: {'; '.join(unknown)}")


def _hold(pid: int | None) -> int | None:
    """Return a pidfd of the daemon's or the keeper's process; None if it is gone."""
    try:
        return None if pid is None else os.pidfd_open(pid)
    except OSError:
        return None


@daemon.command()
@output_option
def status(output: str) -> None:
    """Show who the daemon is, how many sessions it watches and how late it is.

    Example: vigil daemon status -o json"""
    found = connect(start=False).status()
    if output == "json":
        print(json.dumps(found))
        return
    late, clock, probes, hooks = (found[key] for key in ("lateness_ms", "clock_lateness_ms", "probes", "hooks"))
    print(f"daemon    pid {found['pid']}, version {found['version']}, since {found['started_at']}")
    print(f"keeper    pid {found['keeper_pid']}{', does not answer' if found['keeper_wedged'] else ''}")
    print(f"home      {found['home']}")
    print(f"sessions  {found['sessions']}; {some(found['incidents'], 'open incident', none='no')}")
    print(
        f"lateness  now {late['now']:.1f} ms, p99 {late['p99']:.1f} ms, max {late['max']:.1f} ms; clock {clock['max']:.1f} ms"
    )
    print(f"probes    {probes['in_flight']} under way, {probes['abandoned']} given up so far")
    print(f"hooks     {hooks['taken']} taken in, {hooks['dropped']} of old launches, {hooks['bad']} bad")
    if found.get("recording"):
        print(f"recording {recording_words(found['recording'])}")
    if abs(found["clock_off_s"]) > 2:
        print(f"clock     was set by {found['clock_off_s']:.0f} s since boot; times are shown as if it had not been")
    if found["config"]["problem"]:
        print(f"config    not valid, the last valid one is used: {found['config']['problem']}")
    if found["store_trouble"]:
        print(f"store     cannot be written: {found['store_trouble']}")


def recording_words(recording: dict[str, Any]) -> str:
    """Return where events are recorded, or why they no longer are."""
    from vigil.text import one_line

    events = some(recording["events"], "event")
    if recording["ended"]:
        return one_line(f"into {recording['file']} has ended after {events}: {recording['ended']}")
    return one_line(f"into {recording['file']}, {events} so far")


@daemon.command()
@click.option("-n", "lines", type=click.IntRange(1), default=50, help="How many of the last lines (default: 50).")
def logs(lines: int) -> None:
    """Show the daemon's own log.

    Example: vigil daemon logs"""
    from vigil.kernel.theirs import read_end
    from vigil.text import plain

    folder = find_home().log
    for name in ("daemon.log", "daemon.err"):
        path = folder / name
        if path.exists():
            text = plain(read_end(path, LOG_BYTES).data.decode("utf-8", "replace"))
            for line in text.splitlines()[-lines:]:
                print(line)
