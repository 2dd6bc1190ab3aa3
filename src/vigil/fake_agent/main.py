"""The fake agent's command line: which scenario to play, with which vars."""

import os
import signal

from vigil.fake_agent.player import StepFailed, play
from vigil.fake_agent.script import Script, parse
from vigil.fake_agent.stage import STDERR, STDOUT, emit
from vigil.fake_agent.values import ScriptError

USAGE = """\
Usage: vigil fake-agent SCENARIO [--set NAME=VALUE]...
       vigil fake-agent --list

Plays an agent from a script. SCENARIO is a shipped name, or the path of a .toml file.
Example: vigil fake-agent crashes --set code=7
"""
SCENARIOS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scenarios")


class WrongUsage(Exception):
    """What was asked for cannot be played."""


def main(argv: list[str]) -> int:
    """Play the scenario that `argv` (without the program's name) asks for; return its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C kills, unless the script says otherwise
    keep_standard_descriptors()
    try:
        return obey(argv)
    except WrongUsage as error:
        return complain(str(error), code=2)
    except StepFailed as error:
        return complain(str(error), code=1)


def keep_standard_descriptors() -> None:
    """Open /dev/null in place of closed ones, so that no socket or file of a step takes their number."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        os.set_inheritable(fd, True)
    os.close(fd)


def complain(why: str, code: int) -> int:
    emit(STDERR, f"vigil: {why}\n".encode("utf-8", "backslashreplace"))
    return code


def obey(argv: list[str]) -> int:
    if "-h" in argv or "--help" in argv:
        return say(USAGE)
    if argv == ["--list"]:
        return say("".join(f"{name:<16} {load(name, {}).about}\n" for name in shipped()))
    scenario, sets = read_arguments(argv)
    return play(load(scenario, sets))


def say(text: str) -> int:
    emit(STDOUT, text.encode())
    return 0


def shipped() -> list[str]:
    """Return the names of the scenarios that come with Vigil."""
    return sorted(name.removesuffix(".toml") for name in os.listdir(SCENARIOS) if name.endswith(".toml"))


def load(scenario: str, sets: dict[str, str]) -> Script:
    """Read a scenario, given by its name or its path."""
    try:
        with open(path_of(scenario), encoding="utf-8") as file:
            return parse(file.read(), sets)
    except OSError as error:
        raise WrongUsage(f"{scenario}: {error.strerror}") from None
    except (ScriptError, UnicodeDecodeError) as error:
        raise WrongUsage(f"{scenario}: {error}. Nothing was played.") from None


def path_of(scenario: str) -> str:
    if scenario.endswith(".toml"):
        return scenario
    if scenario not in shipped():
        raise WrongUsage(f'there is no scenario "{scenario}". Give the path of a .toml file, or one of {", ".join(shipped())}')
    return os.path.join(SCENARIOS, f"{scenario}.toml")


def read_arguments(argv: list[str]) -> tuple[str, dict[str, str]]:
    """Return the scenario and the vars to set."""
    scenarios: list[str] = []
    sets: dict[str, str] = {}
    words = iter(argv)
    for word in words:
        if word == "--set":
            name, value = read_set(next(words, ""))
            sets[name] = value
        elif word.startswith("-"):
            raise WrongUsage(f"there is no option {word}. See: vigil fake-agent --help")
        else:
            scenarios.append(word)
    if len(scenarios) != 1:
        raise WrongUsage(f"one SCENARIO is needed, not {len(scenarios)}. See: vigil fake-agent --list")
    return scenarios[0], sets


def read_set(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not name or not equals:
        raise WrongUsage(f'--set needs NAME=VALUE, not "{word}"')
    return name, value
