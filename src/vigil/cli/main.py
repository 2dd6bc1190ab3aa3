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
from vigil.cli.commands import ALIASES, COMMANDS, GROUPS, LATER, WIDEST
from vigil.errors import UsageError, VigilError


class Lazy(click.Group):
    """A group that imports its commands on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        cmd_name = ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"vigil.cli.{COMMANDS[cmd_name][0]}")
        command = getattr(module, cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for a slip of the fingers, say which one was meant."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            raise UsageError(_no_command(name))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with reader_may_leave():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands by what they are for, without importing them."""
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(WIDEST), help_) for name, (_, help_) in commands.items()])


def _no_command(name: str) -> str:
    if name in LATER:
        return f"vigil {name} is not there yet; vigil --help lists what is"
    from difflib import get_close_matches

    near = get_close_matches(name, [*COMMANDS, *ALIASES], n=1)
    return f"there is no command {name}; " + (f"did you mean vigil {near[0]}?" if near else "vigil --help lists them")


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
        code = report(UsageError(words_of(error)))
    except click.Abort:
        code = 130
    except VigilError as error:
        code = report(error)
    except KeyboardInterrupt:
        code = 130
    except (OSError, RuntimeError) as error:
        from vigil.kernel.shortage import is_shortage

        if not is_shortage(error):
            raise
        what = f" ({error.filename})" if isinstance(error, OSError) and error.filename else ""
        why = error.strerror if isinstance(error, OSError) else error
        code = report(VigilError(f"this host lacks what the command needs: {why}{what}; vigil doctor says more"))
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


def report(error: VigilError) -> int:
    """Print an error in the form that was asked for, and return its exit code."""
    from vigil.text import one_line

    if asks_for_json(sys.argv[1:]):
        import json

        words = {"error": str(error), "exit_code": error.exit_code, "hint": error.hint}
        print(json.dumps(words | ({"problems": error.problems} if error.problems else {})), file=sys.stderr)
        return error.exit_code
    for line in (*error.problems, "Nothing was applied." if error.problems else str(error)):
        print(f"vigil: {one_line(line)}", file=sys.stderr)
    return error.exit_code


def asks_for_json(words: list[str]) -> bool:
    """Say whether a command line asks for JSON; what stands behind -- is another program's."""
    words = words[: words.index("--")] if "--" in words else words
    pairs = zip(words, [*words[1:], ""], strict=True)
    return any(word in ("-ojson", "--output=json") or (word in ("-o", "--output") and value == "json") for word, value in pairs)
