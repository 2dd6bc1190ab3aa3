"""Player: plays a script, step by step, until a step ends the process.

Light on purpose: acts import what only they need. Output is unbuffered, and dropped once its reader has gone."""

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vigil.fake_agent import acts
from vigil.fake_agent.script import Script, ScriptStep
from vigil.fake_agent.stage import (
    LIVE,
    STDERR,
    STDIN,
    STDOUT,
    ScriptStage,
    as_json,
    emit,
    encode,
    own_listener,
    own_port,
    pause,
)
from vigil.fake_agent.values import FOREVER

if TYPE_CHECKING:
    from socket import socket

LOOPBACK = "127.0.0.1"
CONNECT_TIMEOUT_S = 10.0
BURN_SLICE_S = 0.05
RECV_BYTES = 65536
IGNORING_HUP = ("/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh")  # an ignored signal stays ignored across exec


class StepFailed(Exception):
    """The world refused what a step asked for."""


def play(script: Script) -> int:
    """Play all of it; return the exit code it asks for."""
    stage = ScriptStage()
    while stage.round < script.repeat:
        stage.round += 1
        for step in script.steps:
            code = play_step(step, stage)
            if code is not None:
                return code
    return 0


def play_step(step: ScriptStep, stage: ScriptStage) -> int | None:
    act = ACTS[type(step.act)]
    stage.n = 0
    while stage.n < step.repeat:
        if stage.n:
            pause(step.every)
        stage.n += 1
        try:
            code = act(step.act, stage)
        except (OSError, MemoryError) as error:
            raise StepFailed(f"{step.path}: {error or 'no memory left'}") from error
        if code is not None:
            return code
    return None


# The acts. Each returns the exit code if it ends the script.


def play_print(act: acts.Print, stage: ScriptStage) -> None:
    emit(STDERR if act.stderr else STDOUT, line_of(act, stage))


def line_of(act: acts.Print, stage: ScriptStage) -> bytes:
    if act.hex is not None:
        return act.hex
    if act.size is not None:
        return b"x" * act.size + b"\n"
    assert act.text is not None
    return encode(stage.text(act.text)) + b"\n"


def play_event(act: acts.Event, stage: ScriptStage) -> None:
    emit(STDOUT, encode(as_json(stage.fill(act.payload))) + b"\n")


def play_hook(act: acts.HookStep, stage: ScriptStage) -> None:
    spool = os.environ.get("VIGIL_SPOOL")
    if not spool:
        return
    who = {"session": LIVE["session"](stage), "launch": LIVE["launch"](stage), "token": os.environ.get("VIGIL_TOKEN", "")}
    event = {**who, "event": stage.fill(act.payload)}
    name = f"{time.time_ns()}-{os.getpid()}.json"
    unfinished = os.path.join(spool, "new", f".{name}")
    with open(unfinished, "xb") as file:
        file.write(encode(as_json(event)) + b"\n")
    os.rename(unfinished, os.path.join(spool, "new", name))  # a watcher sees all of it or nothing


def play_append(act: acts.Append, stage: ScriptStage) -> None:
    path = stage.text(act.path)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "ab") as file:
        file.write(encode(stage.text(act.text)) + b"\n")


def play_wait(act: acts.Wait, _: ScriptStage) -> None:
    pause(act.seconds)


def play_burn(act: acts.Burn, _: ScriptStage) -> None:
    until = time.monotonic() + act.seconds
    while (left_s := until - time.monotonic()) > 0:
        slice_s = min(BURN_SLICE_S, left_s)
        spin(slice_s * act.fraction)
        pause(slice_s * (1 - act.fraction))


def spin(cpu_s: float) -> None:
    until = time.thread_time() + cpu_s
    while time.thread_time() < until:
        pass


def play_memory(act: acts.MemoryStep, stage: ScriptStage) -> None:
    stage.held.append(b"x" * (act.mb << 20))  # not zeros: those take no page before they are touched


def play_listen(act: acts.Listen, stage: ScriptStage) -> None:
    import socket

    for _ in range(act.count):
        stage.listeners.append(socket.create_server((LOOPBACK, 0)))


def play_connect(act: acts.Connect, stage: ScriptStage) -> None:
    import socket

    port = act.port or own_port(stage)
    ours = socket.create_connection((LOOPBACK, port), timeout=CONNECT_TIMEOUT_S)
    ours.settimeout(None)
    peer = None if act.port else own_listener(stage).accept()[0]
    stage.held += [ours, peer]
    if act.send is not None:
        start_talking(ours, peer, encode(stage.text(act.send)), act.every)


def start_talking(ours: "socket", peer: "socket | None", data: bytes, every_s: float) -> None:
    """Send from a thread, so that the script goes on; if the other end is ours, it reads what came."""
    import threading

    def talk() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the thread that sleeps in a step
        try:
            while True:
                ours.sendall(data)
                if peer is not None:
                    peer.recv(RECV_BYTES)
                pause(every_s)
        except OSError:
            pass  # the other end has gone; the script goes on without it

    threading.Thread(target=talk, daemon=True).start()


def play_child(act: acts.ChildStep, stage: ScriptStage) -> None:
    argv = command_of(act, stage)
    started = [start(argv, act.new_session) for _ in range(act.count)]
    stage.children += started
    for pid in started if act.wait else ():
        os.waitpid(pid, 0)


def command_of(act: acts.ChildStep, stage: ScriptStage) -> list[str]:
    command = [stage.text(word) for word in act.argv or ()]
    if act.scenario is not None:
        command = [sys.executable, "-m", "vigil.fake_agent", stage.text(act.scenario)]
        for name, value in (act.set or {}).items():
            command += ["--set", f"{name}={stage.text(value)}"]
    return [*IGNORING_HUP, *command] if act.ignore_hup else command


def start(argv: list[str], new_session: bool) -> int:
    # Python itself ignores SIGPIPE, which is no choice of the script's.
    return os.posix_spawnp(argv[0], argv, os.environ, setsid=new_session, setsigdef=[signal.SIGPIPE])


def play_ignore(act: acts.Ignore, _: ScriptStage) -> None:
    for sig in act.signals:
        signal.signal(sig, signal.SIG_IGN)


def play_handle(act: acts.Handle, _: ScriptStage) -> None:
    def leave(signum: int, _: object) -> None:
        signal.signal(signum, signal.SIG_IGN)  # a second one does not start the delay again
        pause(act.after)
        os._exit(act.exit)

    signal.signal(act.signal, leave)


def play_ask(act: acts.Ask, stage: ScriptStage) -> int | None:
    emit(STDOUT, encode(stage.text(act.prompt)))
    line = read_answer()
    if line is None:
        if act.at_eof is None:
            pause(FOREVER)
        return act.at_eof
    stage.answer = line
    if act.echo:
        emit(STDOUT, encode(line) + b"\n")
    return act.then if act.expect is not None and line == stage.text(act.expect) else None


def read_answer() -> str | None:
    """Return the next line of stdin, byte by byte so that a child may read on; None at its end."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = read_byte()
        if not byte and not line:
            return None
        line += byte or b"\n"
    return line.decode("utf-8", "surrogateescape").rstrip("\r\n")


def read_byte() -> bytes:
    try:
        return os.read(STDIN, 1)
    except OSError:
        return b""  # a terminal that was hung up


def play_exit(act: acts.ExitStep, _: ScriptStage) -> int | None:
    if act.signal is not None:
        die_of(act.signal)
    return act.code


def die_of(sig: signal.Signals) -> None:
    """Send it to this very process; returns only from a signal that does not kill."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sig not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(sig, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [sig])
    os.kill(os.getpid(), sig)


ACTS: dict[type, Callable[[Any, ScriptStage], int | None]] = {
    acts.Print: play_print,
    acts.Event: play_event,
    acts.HookStep: play_hook,
    acts.Append: play_append,
    acts.Wait: play_wait,
    acts.Burn: play_burn,
    acts.MemoryStep: play_memory,
    acts.Listen: play_listen,
    acts.Connect: play_connect,
    acts.ChildStep: play_child,
    acts.Ignore: play_ignore,
    acts.Handle: play_handle,
    acts.Ask: play_ask,
    acts.ExitStep: play_exit,
}
