"""`vigil demo`: shows a small fleet of scripted agents live, in an instance that goes with it."""

from __future__ import annotations

import os
import queue
import threading
import time
from contextlib import suppress
from typing import Any

import click

from vigil.cli.demo_view import OWN, View, make_view, moment
from vigil.client import Client
from vigil.demo.fleet import FLEET
from vigil.demo.interrupts import DemoInterrupted, Interrupts
from vigil.demo.stage import DemoStage
from vigil.demo.story import Story
from vigil.errors import VigilError

SECONDS = 16.0
LATE_S = 30.0  # how much longer a busy machine may take until all was seen
TICK_S = 0.25
Inbox = queue.SimpleQueue[dict[str, Any]]


@click.command()
@click.option("--seconds", type=click.FloatRange(0, 3600), default=SECONDS, help=f"How long it runs (default: {SECONDS:g}).")
def demo(seconds: float) -> int:
    """Show five scripted agents live: one works, one finishes, one crashes, one exits at birth, one loses its tmux.

    They run in a temporary instance; your own is not touched, and nothing is left behind.

    Example: vigil demo --seconds 30"""
    view = make_view()
    with Interrupts() as interrupts:
        stage = DemoStage()
        try:
            code = perform(stage, view, interrupts, seconds)
        finally:
            left = clear(stage, view)
    if left:
        raise VigilError(f"the demo could not clean up: {', '.join(left)} is still there")
    if code == 0:
        view.say("Now one of your own: vigil run --name first --restart on-failure -- claude")
    return code


def perform(stage: DemoStage, view: View, interrupts: Interrupts, seconds: float) -> int:
    """Show it all, and return the exit code."""
    try:
        try:
            view.open(FLEET)
            stage.set_up()
            interrupts.arm()
            play(stage, view, seconds)
            deaths = stage.client.deaths()
        finally:
            interrupts.disarm()
            view.close()
    except DemoInterrupted as interrupted:
        return interrupted.exit_code
    view.deaths(deaths)
    return 0


def play(stage: DemoStage, view: View, seconds: float) -> None:
    """Run the fleet and show what becomes of it, until all was seen and the time is over."""
    inbox: Inbox = queue.SimpleQueue()
    threading.Thread(target=listen, args=(stage.client, inbox), daemon=True).start()
    for agent in FLEET:
        stage.client.run(agent.order(str(stage.work), environment()))
    began = time.monotonic()
    story = Story(FLEET)
    blows = {agent.name: began + agent.server_killed_after_s for agent in FLEET if agent.server_killed_after_s is not None}
    while (missing := story.missing()) or time.monotonic() < began + seconds:
        if missing and time.monotonic() > began + seconds + LATE_S:
            raise VigilError(f"the demo did not show what it should: {'; '.join(missing)}")
        strike(stage, view, blows)
        for event in hear(inbox):
            story.hear(event)
            tell(event, view)
        view.draw(stage.client.sessions(everything=True))


def environment() -> dict[str, str]:
    """Return our environment for the agents, without what is not UTF-8: that holds surrogates."""
    return {key: value for key, value in os.environ.items() if not any("\ud800" <= char <= "\udfff" for char in key + value)}


def strike(stage: DemoStage, view: View, blows: dict[str, float]) -> None:
    """Kill the tmux servers that are due."""
    for name, due in list(blows.items()):
        if time.monotonic() >= due and (pid := stage.kill_server(name)) is not None:
            view.news(time.time(), name, OWN, f"the demo kills its tmux server (pid {pid}) with SIGKILL")
            del blows[name]


def listen(client: Client, inbox: Inbox) -> None:
    """Put every event into the inbox, from the first one, until the daemon ends."""
    with suppress(VigilError, OSError, ValueError):
        for event in client.follow_events(after=0):
            inbox.put(event)


def hear(inbox: Inbox) -> list[dict[str, Any]]:
    """Return new events, after a short wait for the first."""
    events: list[dict[str, Any]] = []
    with suppress(queue.Empty):
        events.append(inbox.get(timeout=TICK_S))
        while True:
            events.append(inbox.get_nowait())
    return events


def tell(event: dict[str, Any], view: View) -> None:
    """Show a change of state."""
    if event["kind"] != "session.state":
        return
    data, at = event["data"], moment(event["at"])
    why = data["why"]
    if data.get("until"):
        why = f"back in {moment(data['until']) - at:.1f} s; {why}"
    elif data.get("hold"):
        why = f"{data['hold']}: {why}"
    view.news(at, event["session"], data["to"], why)


def clear(stage: DemoStage, view: View) -> list[str]:
    """Clean up and say so; return what is left."""
    with suppress(OSError):
        view.say()
        view.say("Cleaning up ...")
    left = stage.clear()
    if not left:
        with suppress(OSError):
            view.say("Everything of the demo is gone: its sessions, its daemon and keeper, its folder.")
    return left
