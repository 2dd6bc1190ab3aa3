"""Signals to Vigil's own processes, to servers, shims, panes and agents."""

from __future__ import annotations

import signal
import time

from tests.chaos.history import Part
from tests.chaos.stage import Stage

AGENT_SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV, signal.SIGINT)


def kill_daemon(stage: Stage) -> str:
    return _kill(stage, Part.DAEMON)


def kill_keeper(stage: Stage) -> str:
    return _kill(stage, Part.KEEPER)


def kill_both(stage: Stage) -> str:
    order = [Part.DAEMON, Part.KEEPER]
    stage.rng.shuffle(order)
    return "; ".join(_kill(stage, part) for part in order)


def kill_daemon_again_and_again(stage: Stage) -> str:
    """Each time a new one has come up, while sessions wait for their restarts."""

    def strike() -> None:
        for _ in range(5):
            stage.ask("ls", "-o", "json")
            _kill(stage, Part.DAEMON)

    stage.later(strike)
    return "daemon: SIGKILL five times"


def _kill(stage: Stage, *parts: Part) -> str:
    life = stage.pick(*parts)
    if life is None or not stage.shoot(life, signal.SIGKILL):
        return ""
    return f"{life.part} {life.pid} {life.launch}: SIGKILL"


def stop_daemon(stage: Stage) -> str:
    return _stop(stage, Part.DAEMON, 1.0, 6.0)


def stop_keeper(stage: Stage) -> str:
    return _stop(stage, Part.KEEPER, 1.0, 9.0)


def stop_server(stage: Stage) -> str:
    return _stop(stage, Part.SERVER, 1.0, 15.0)


def stop_agent(stage: Stage) -> str:
    return _stop(stage, Part.AGENT, 1.0, 5.0)


def _stop(stage: Stage, part: Part, least_s: float, most_s: float) -> str:
    life, for_s = stage.pick(part), stage.rng.uniform(least_s, most_s)
    if life is None or not stage.freeze(life, for_s):
        return ""
    stage.excuse(f"{part} stopped", for_s + 0.5, life.launch)
    return f"{life.part} {life.pid} {life.launch}: SIGSTOP for {for_s:.1f} s"


def kill_server(stage: Stage) -> str:
    return _kill(stage, Part.SERVER)


def kill_shim(stage: Stage) -> str:
    return _kill(stage, Part.RECORDER)


def close_pane(stage: Stage) -> str:
    life, number = stage.pick(Part.ROOT), stage.rng.choice((signal.SIGHUP, signal.SIGHUP, signal.SIGKILL))
    if life is None or not stage.shoot(life, number):
        return ""
    return f"pane root {life.pid} {life.launch}: {number.name}"


def kill_agent(stage: Stage) -> str:
    life, number = stage.pick(Part.AGENT), stage.rng.choice(AGENT_SIGNALS)
    if life is None or not stage.shoot(life, number):
        return ""
    return f"agent {life.pid} {life.launch}: {number.name}"


def kill_many(stage: Stage) -> str:
    """Several within a moment, and the daemon with them every other time."""
    count, with_daemon = stage.rng.randint(3, 8), stage.rng.random() < 0.5
    killed = [_kill(stage, Part.AGENT, Part.SERVER) for _ in range(count)]
    if with_daemon:
        time.sleep(stage.rng.choice((0.0, 0.02, 0.2)))
        killed.append(_kill(stage, Part.DAEMON))
    return "; ".join(filter(None, killed))
