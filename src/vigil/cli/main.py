"""The command `vigil`: knows the names of all commands and imports the one that runs."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

import click

from vigil import __version__
from vigil.errors import UsageError, VigilError
from vigil.kernel.shortage import is_shortage

# name: (module, one line of help). Only the command that runs is imported: a command must start fast.
COMMANDS = {
    "run": ("run", "Declare a session and launch it."),
    "ls": ("ls", "List sessions, one a line."),
    "get": ("get", "Show all there is about one session."),
    "why": ("why", "Explain why a session is as it is."),
    "diag": ("diag", "Show what a session's processes do right now."),
    "events": ("events", "Show the event log."),
    "logs": ("logs", "Show what an agent printed."),
    "send": ("send", "Type a prompt into a session's terminal."),
    "attach": ("attach", "Show a session's terminal; Ctrl-b d leaves."),
    "stop": ("verbs", "Stop a session; it stays stopped until it is started."),
    "start": ("verbs", "Start a session that is over."),
    "restart": ("verbs", "End a session and launch it anew."),
    "reset": ("verbs", "End a session's backoff or saturation."),
    "hibernate": ("verbs", "Put a session to sleep."),
    "wake": ("verbs", "Wake a session, where it was or anew."),
    "heartbeat": ("heartbeat", "Give a sign of life."),
    "reap": ("reap", "Look what is idle, orphaned or archived, and deal with it."),
    "adopt": ("adopt", "Watch a tmux session that was started elsewhere."),
    "release": ("adopt", "Give an adopted session back."),
    "archive": ("verbs", "End a session and keep its record."),
    "rm": ("verbs", "End a session and purge its identity."),
    "up": ("up", "Make the teams of a manifest so."),
    "plan": ("up", "Show what `up` would do, and what waits."),
    "down": ("up", "End and forget what manifests declared."),
    "schema": ("schema", "Print the JSON Schema of the manifest."),
    "scale": ("up", "Give a role more replicas, or fewer."),
    "shift": ("shift", "Replace the replicas of a team, one role after another."),
    "deaths": ("deaths", "List death records, newest first."),
    "death": ("deaths", "Show one death with its evidence."),
    "incidents": ("incidents", "List what needs a human, or tell all of one."),
    "ack": ("incidents", "Say that you know of an incident: its reminders end."),
    "notify": ("notify", "Try a way to reach people."),
    "replay": ("replay", "Run a recording through today's policy and show what differs."),
    "daemon": ("daemon", "Start, stop and look at the daemon."),
    "doctor": ("doctor", "Say what is missing or wrong here, and what it means."),
    "demo": ("demo", "Show a small fleet of scripted agents live."),
    "fake-agent": ("fake_agent", "Play a scripted agent."),
}


class Lazy(click.Group):
    """A group that imports its commands on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"vigil.cli.{COMMANDS[cmd_name][0]}")
        command = getattr(module, cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        with reader_may_leave():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in COMMANDS.items()])


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="vigil")
def app() -> None:
    """Keep watch over AI coding-agent sessions.

    Example: vigil run --name fix-tests --restart on-failure -- claude"""


def main() -> None:
    """Run a command; an error is one line that says what to do."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 shows a mark instead of a traceback
    try:
        code = app(prog_name="vigil", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.ctx.get_help() if error.ctx else "")
        code = UsageError.exit_code
    except click.ClickException as error:
        code = fail(words_of(error), UsageError.exit_code)
    except click.Abort:
        code = 130
    except VigilError as error:
        for problem in error.problems:
            fail(problem, error.exit_code)
        code = fail("Nothing was applied." if error.problems else str(error), error.exit_code)
    except KeyboardInterrupt:
        code = 130
    except (OSError, RuntimeError) as error:
        if not is_shortage(error):
            raise
        what = f" ({error.filename})" if isinstance(error, OSError) and error.filename else ""
        why = error.strerror if isinstance(error, OSError) else error
        code = fail(f"this host lacks what the command needs: {why}{what}; vigil doctor says more", VigilError.exit_code)
    if code != 130:
        with reader_may_leave():
            sys.stdout.flush()
    sys.exit(code if isinstance(code, int) else 0)


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """Let the reader leave early: `head` has seen enough, which click would call a failure."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains on its way out


def words_of(error: click.ClickException) -> str:
    """Return what click found wrong, and which help to read."""
    words = error.format_message().rstrip(".")
    asked = error.ctx if isinstance(error, click.UsageError) else None
    return f"{words}; see: {asked.command_path} --help" if asked else words


def fail(words: str, code: int) -> int:
    """Print an error and return its exit code."""
    from vigil.text import one_line

    print(f"vigil: {one_line(words)}", file=sys.stderr)
    return code
