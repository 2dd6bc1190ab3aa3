"""`vigil daemon`: start, stop, status, logs."""

from __future__ import annotations

import json

import click

from vigil.cli.options import output_option
from vigil.client import connect
from vigil.errors import Unreachable
from vigil.home import find_home


@click.group(no_args_is_help=True)
def daemon() -> None:
    """Start, stop and look at the daemon; commands that need it start it by themselves.

    Example: vigil daemon status
    """


@daemon.command()
def start() -> None:
    """Start the daemon if it does not run."""
    status = connect().status()
    print(f"the daemon runs as pid {status['pid']} for {status['home']}")


@daemon.command()
@click.option("--kill-sessions", is_flag=True, help="End every session too, verified.")
def stop(kill_sessions: bool) -> None:
    """Stop the daemon; all sessions run on, and the next command finds them."""
    try:
        client = connect(start=kill_sessions)  # to end sessions it must be there
    except Unreachable:
        if kill_sessions:
            raise
        print("the daemon does not run")
        return
    pid = client.status()["pid"]
    client.stop_daemon(kill_sessions)
    wait_for_end(pid)
    print("the daemon is stopped" + ("; all sessions were ended" if kill_sessions else "; its sessions run on"))


def wait_for_end(pid: int) -> None:
    """Wait until the daemon's process is gone."""
    import os
    import select

    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    if not select.select([pidfd], [], [], 30)[0]:
        raise Unreachable(f"the daemon (pid {pid}) was told to stop, but still runs")


@daemon.command()
@output_option
def status(output: str) -> None:
    """Show who the daemon is, how many sessions it watches and how late it is."""
    found = connect(start=False).status()
    if output == "json":
        print(json.dumps(found))
        return
    late, clock, probes, hooks = (found[key] for key in ("lateness_ms", "clock_lateness_ms", "probes", "hooks"))
    print(f"daemon    pid {found['pid']}, version {found['version']}, since {found['started_at']}")
    print(f"keeper    pid {found['keeper_pid']}{', does not answer' if found['keeper_wedged'] else ''}")
    print(f"home      {found['home']}")
    print(f"sessions  {found['sessions']}; {found['incidents'] or 'no'} open incident{'' if found['incidents'] == 1 else 's'}")
    print(
        f"lateness  now {late['now']:.1f} ms, p99 {late['p99']:.1f} ms, max {late['max']:.1f} ms; clock {clock['max']:.1f} ms"
    )
    print(f"probes    {probes['in_flight']} under way, {probes['abandoned']} given up so far")
    print(f"hooks     {hooks['taken']} taken in, {hooks['dropped']} of old launches, {hooks['bad']} bad")
    if abs(found["clock_off_s"]) > 2:
        print(f"clock     was set by {found['clock_off_s']:.0f} s since boot; times are shown as if it had not been")
    if found["config"]["problem"]:
        print(f"config    not valid, the last valid one is used: {found['config']['problem']}")
    if found["store_trouble"]:
        print(f"store     cannot be written: {found['store_trouble']}")


@daemon.command()
@click.option("-n", "lines", type=click.IntRange(1), default=50, help="How many of the last lines (default: 50).")
def logs(lines: int) -> None:
    """Show the daemon's own log."""
    from vigil.text import plain

    folder = find_home().log
    for name in ("daemon.log", "daemon.err"):
        path = folder / name
        if path.exists():
            text = plain(path.read_text("utf-8", "replace"))
            for line in text.splitlines()[-lines:]:
                print(line)
