"""Patterns: every regular expression of ours takes time by the length of a text, whatever a stranger wrote.

All of them are found: those that modules hold, and those that calls name in place. One that is made at run time stands in the
list below with the reason why its time is bounded. Each is fed what usually breaks patterns: its own pieces, repeated, with an
end that does not match. What takes the square of a length needs seconds for 16 KB, what is linear a millisecond: the bound of
100 ms of processor time, taken as the best of three, is far from both, so a busy machine does not decide."""

from __future__ import annotations

import ast
import importlib
import re
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import vigil
from vigil.agents.adapters import ADAPTERS
from vigil.redact import Redactor, redact_command

SOURCE = Path(vigil.__file__).parent
# Made at run time: where, and why its time is bounded.
MADE = {
    ("redact", "re.sub"): "an alternation of escaped literals",
    ("daemon/serve/prompts", "re.search"): "of adapters: composer and draft, fuzzed below",
    ("kernel/cgroups", "re.compile"): "held by its module, and fuzzed there",
    ("kernel/kernel_log", "re.compile"): "a literal pid between fixed words",
    ("manifest/reading", "re.compile"): "held by its module, and fuzzed there",
    ("secret_shapes", "re.compile"): "held by its module, and fuzzed there",
    ("redact", "re.compile"): "held by its module, and fuzzed there",
    ("agents/walls", "re.compile"): "held by its module, and fuzzed there",
}
CALLS = {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
WHOLE = {"match", "fullmatch"}  # these begin at the beginning only
SIZES = (1 << 11, 1 << 14)
MOST_PIECES = 24
MOST_S = 0.1
Use = tuple[str, str, re.Pattern[Any], frozenset[str]]  # where, its name, the pattern, how it is called


def modules() -> Iterator[tuple[str, Any]]:
    """Yield the modules that use `re`."""
    for path in sorted(SOURCE.rglob("*.py")):
        if re.search(r"^import re$", path.read_text(), re.MULTILINE):
            name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
            yield name, importlib.import_module(name)


def patterns_in(value: Any, depth: int = 3) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list | set | frozenset) and depth:
        for one in value:
            yield from patterns_in(one, depth - 1)
    elif isinstance(value, dict) and depth:
        yield from patterns_in(list(value.values()), depth - 1)


@cache
def methods_in(text: str) -> dict[str, set[str]]:
    """Return the methods that a text calls on each of its constants."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, method in re.findall(r"\b([A-Z][A-Z0-9_]*)\.([a-z]+)\b", text):
        found[name].add(method)
    return found


def held() -> Iterator[Use]:
    """Yield the patterns that modules hold, with the methods that are called on them there."""
    seen = set()
    everything = "\n".join(path.read_text() for path in sorted(SOURCE.rglob("*.py")))
    for name, module in modules():
        text = Path(module.__file__).read_text()
        for key, value in vars(module).items():
            for pattern in patterns_in(value):
                if (pattern, key) not in seen:
                    seen.add((pattern, key))
                    yield name, key, pattern, frozenset(methods_in(text)[key] or methods_in(everything)[key]) & CALLS


@cache
def called() -> list[tuple[str, str, str | bytes | None]]:
    """Return each call of `re` inside functions or modules, with its pattern where that is a literal."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())) if "re." in path.read_text() else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.func.attr in CALLS:
                where = str(path.relative_to(SOURCE).with_suffix(""))
                first = node.args[0]
                literal = first.value if isinstance(first, ast.Constant) else None
                found.append((where, node.func.attr, literal if isinstance(literal, str | bytes) else None))
    return found


@cache
def uses() -> list[Use]:
    in_place = [
        (where, f"re.{call}", re.compile(literal), frozenset({call}))
        for where, call, literal in called()
        if literal is not None and call != "compile"
    ]
    of_adapters = [
        (name, "composer", re.compile(pattern, re.MULTILINE), frozenset({"search"}))
        for name, adapter in ADAPTERS.items()
        for pattern in [*adapter.composer, *([adapter.draft[0]] if adapter.draft else [])]
    ]
    return [*held(), *in_place, *of_adapters]


def test_every_pattern_that_is_made_at_run_time_is_listed() -> None:
    made = {(where, f"re.{call}") for where, call, literal in called() if literal is None}

    assert made == set(MADE)


def test_every_pattern_that_is_compiled_is_held_by_its_module() -> None:
    held_sources = {use[2].pattern for use in uses()}

    assert [(where, literal) for where, call, literal in called() if literal is not None and literal not in held_sources] == []


def sample(parsed: Any) -> str:
    """Return a text that a pattern's piece matches, as short as may be."""
    out = []
    for op, value in parsed:
        if op is _constants.LITERAL:
            out.append(chr(value))
        elif op in (_constants.NOT_LITERAL, _constants.ANY):
            out.append("a")
        elif op is _constants.IN:
            out.append(_one_of(value))
        elif op in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
            out.append(sample(value[2]) * max(1, min(value[0], 40)))
        elif op is _constants.SUBPATTERN:
            out.append(sample(value[3]))
        elif op is _constants.ATOMIC_GROUP:
            out.append(sample(value))
        elif op is _constants.BRANCH:
            out.append(sample(value[1][-1]))
        elif op is _constants.GROUPREF:
            out.append('"')
    return "".join(out)


def _one_of(choices: Any) -> str:
    negated = choices[0][0] is _constants.NEGATE
    for op, value in choices:
        if negated:
            return "a"
        if op is _constants.LITERAL:
            return chr(value)
        if op is _constants.RANGE:
            return chr(value[0])
        if op is _constants.CATEGORY:
            return {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}.get(str(value), "a")
    return "a"


def pieces(pattern: re.Pattern[Any]) -> set[str]:
    """Return what to repeat: the samples of a pattern's parts, of its beginnings, and of parts in a row."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    parsed = list(_parser.parse(source, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags))
    flat = [part for op, value in parsed for part in ([[(op, value)]] if op is not _constants.BRANCH else value[1])]
    starts = [sample(parsed[:end]) for end in range(1, len(parsed) + 1)]
    return {piece for piece in [*map(sample, flat), *starts, *(sample(parsed[at:]) for at in range(len(parsed)))] if piece}


def texts_for(pattern: re.Pattern[Any], size: int) -> Iterator[str]:
    found = sorted(pieces(pattern), key=lambda piece: (len(piece), piece))[:MOST_PIECES]
    for piece in found:
        yield piece * (size // len(piece))
        yield piece * (size // len(piece)) + "\x00!"
        yield found[0] + piece * (size // len(piece)) + "\n"


def ways(pattern: re.Pattern[Any], methods: frozenset[str]) -> list[Callable[[Any], Any]]:
    """Return how a pattern is used; one that is passed on may be used in every way."""
    found: list[Callable[[Any], Any]] = [pattern.match, pattern.fullmatch]
    if not methods or methods - WHOLE:
        found.append(lambda text: deque(pattern.finditer(text), maxlen=0))
    return found


def cpu_s(work: Callable[[Any], Any], text: Any, enough_s: float = MOST_S) -> float:
    """Return the least time of three that some work takes; one that is short enough decides."""
    best = float("inf")
    for _ in range(3):
        begun = time.thread_time()
        work(text)
        best = min(best, time.thread_time() - begun)
        if best < enough_s:
            break
    return best


@pytest.mark.parametrize("use", uses(), ids=lambda use: f"{use[0]}.{use[1]}")
def test_no_text_makes_a_pattern_slow(use: Use) -> None:
    _, _, pattern, methods = use
    for work in ways(pattern, methods):
        for size in SIZES:  # small ones first: what takes the cube of a length would not end at the last
            for text in texts_for(pattern, size):
                given = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
                took_s = cpu_s(work, given)
                assert took_s < MOST_S, f"{took_s:.2f} s for {size} bytes of {text[:60]!r}"


# Redaction as a whole, which goes on behind each match, and so may be slow though each pattern is not.
NAMES = ["x-api-key: ", "token=", '"token": "', "--password ", "A_KEY='", 'token=\\"', "Authorization: Bearer ", "curl -u a:"]
VALUES = [
    "`",
    "$(",
    '"$(',
    "'",
    '"',
    "<",
    "$",
    "${",
    "%a",
    "*",
    ".",
    "xxx",
    "\\",
    "1",
    " ",
    "a b",
    "://a:b",
    "@",
    "docker login ",
    "eyJ",
]


@pytest.mark.parametrize("name", NAMES)
def test_redaction_takes_time_by_the_length_of_a_text(name: str) -> None:
    redactor = Redactor({"s3cret-value", "Tr0ub4dor" + "-and-3"})
    for value in VALUES:
        piece = name + value
        small, large = (piece * ((size << 10) // len(piece)) for size in (32, 128))
        small_s, large_s = cpu_s(redactor.text, small, 0.0), cpu_s(redactor.text, large, 0.1)
        # Four times the text: linear is 4, the square is 16. What takes no time at all has no ratio worth a look.
        assert large_s < max(8 * small_s, 0.1), f"{piece!r}: {small_s:.3f} s, {large_s:.3f} s"


def test_a_megabyte_that_held_up_everybody_takes_less_than_a_second() -> None:
    for text in ("x-api-key: `" * 87_381, "token=`" * 149_796, "a_token=$(" * 104_857):
        assert cpu_s(Redactor({"s3cret-value"}).text, text) < 1.0
        assert cpu_s(lambda word: redact_command(["sh", "-c", word]), text) < 2.0
