"""Storm: declares the fleet, draws faults from the seed until the time is up, calms down, and has everything read."""

from __future__ import annotations

import json
import time
from collections import Counter
from random import Random

from tests.chaos.agents import write_scripts
from tests.chaos.faults import FAULTS, Fault, draw
from tests.chaos.fleet import draw_fleet
from tests.chaos.history import Command, History, Part, Span
from tests.chaos.place import Place
from tests.chaos.records import read_all
from tests.chaos.stage import Stage
from tests.chaos.traces import join

PAUSE_S = 2.5  # between faults, in the middle
TICK_S = 0.05
LOOK_S = 3.0  # so often somebody lists the fleet
PROGRESS_S = 15.0
CALM_S = 75.0
STEADY_S = 4.0  # calm is what stays so
RESTS = frozenset({"running", "stopped", "parked", "failed", "succeeded"})


def weather(place: Place, seed: int, minutes: float, sessions: int, faults: tuple[Fault, ...] = FAULTS) -> History:
    """Live through one storm and the calm after it; return what happened."""
    rng = Random(seed)
    write_scripts(place.work)
    fleet = draw_fleet(rng, sessions, place.work)
    history = History(seed, time.time(), policies=fleet.policies)
    stage = Stage(place, fleet, history, rng)
    try:
        stage.watch.start()
        stage.probe.start()
        stage.bystanders.start()
        _declare(stage)
        _storm(stage, minutes * 60, faults)
        _calm(stage)
    except BaseException:
        stage.heal(everything=True)
        stage.close()
        raise
    return history


def _declare(stage: Stage) -> None:
    manifest = stage.place.work / "vigil.toml"
    manifest.write_text(stage.fleet.manifest)
    done = stage.ask("up", "--yes", str(manifest), "-o", "json")
    if done.code != 0:
        raise RuntimeError(f"the manifest was not applied: {done.err}")
    for member in stage.fleet.members.values():
        stage.order(*member.words(stage.place.work)).result()


def _storm(stage: Stage, for_s: float, faults: tuple[Fault, ...]) -> None:
    until = time.time() + for_s
    looked = told = time.time()
    while time.time() < until:
        for one in (stage.watch, stage.probe):
            if one.broken is not None:
                raise RuntimeError(f"{one} broke") from one.broken
        fault = draw(stage.rng, faults)
        began = time.time()
        words = fault.strike(stage)
        if words:
            stage.history.faults.append(Span(began, time.time(), fault.name, words))
        pause_s = min(stage.rng.expovariate(1 / PAUSE_S), PAUSE_S * 4) if words else TICK_S
        next_at = time.time() + pause_s
        while time.time() < min(next_at, until):
            stage.heal()
            time.sleep(TICK_S)
        if time.time() - looked > LOOK_S:
            looked = time.time()
            stage.order("ls", "--all", "-o", "json")
        if time.time() - told > PROGRESS_S:
            told = time.time()
            print(progress(stage, until - told), flush=True)


def progress(stage: Stage, left_s: float) -> str:
    """Return a line that says how far it is."""
    history, watch = stage.history, stage.watch
    agents = [life for life in watch.all() if life.part is Part.AGENT]
    ended = sum(1 for life in agents if life.ended_at is not None)
    return (
        f"{left_s:5.0f} s left: {len(agents)} agents seen, {ended} ended, {len(watch.alive(Part.AGENT))} alive; "
        f"{len(history.faults)} faults, {len(history.commands)} commands; two at once: {len(watch.doubles)}; "
        f"late by {watch.lateness_s:.2f} s at most"
    )


def _calm(stage: Stage) -> None:
    """Heal everything, wait until the fleet is at rest, then read what there is to read."""
    history = stage.history
    history.ended_at = time.time()
    (stage.place.work / "calm").touch()
    stage.heal(everything=True)
    _settle(stage)
    history.sessions = _sessions(stage)
    history.judged_at = time.time()
    read_all(stage.place, history)
    history.bystanders = stage.bystanders.judge()
    history.commands += _persons(stage)
    stage.close()
    watch = stage.watch
    history.lives = join(watch.all(), stage.place.work / "traces", watch.sampled)
    history.spans += [*watch.late, *stage.probe.strained]
    history.doubles, history.leftovers, history.absences = watch.doubles, watch.leftovers, stage.probe.absences
    history.out_of_memory = stage.probe.out_of_memory
    history.samples, history.lateness_s = len(watch.sampled), watch.lateness_s
    stage.bystanders.end()


def _settle(stage: Stage) -> None:
    """Wait until everybody rests and stays so, or the time for that is up."""
    until, calm_since = time.time() + CALM_S, None
    while time.time() < until:
        shown = stage.ask("ls", "--all", "-o", "json").shown
        agents = {life.session: life.launch for life in stage.watch.alive(Part.AGENT)}
        rests = shown and all(one.state in RESTS and agents.get(one.name, one.launch) == one.launch for one in shown)
        if not rests or any(one.state == "running" and one.name not in agents for one in shown):
            calm_since = None
        elif calm_since is None:
            calm_since = time.time()
        elif time.time() - calm_since > STEADY_S:
            return
        time.sleep(0.5)


def _sessions(stage: Stage) -> list[dict[str, object]]:
    """Return every session as `get` shows it."""
    shown = stage.ask("ls", "--all", "-o", "json").shown
    done = [stage.ask_whole("get", one.name, "-o", "json") for one in shown]
    return [json.loads(text) for text in done if text]


def _persons(stage: Stage) -> list[Command]:
    """Return what became of the commands of people whose shell has a dead agent's pid."""
    found = []
    for path in sorted(stage.place.work.glob("person-*")):
        if path.suffix == ".out" or not path.read_text().strip():
            continue
        said = path.with_name(path.name + ".out").read_text()
        at = path.stat().st_mtime
        words = ("reap", "--dry-run", f"(as {path.name})")
        found.append(Command(at, at, words, int(path.read_text()), "", said))
    return found


def faults_by_kind(history: History) -> Counter[str]:
    return Counter(span.what for span in history.faults if span.what != "out of memory")
