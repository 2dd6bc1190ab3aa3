"""Who runs which test: what takes long comes first, spread over all workers; the rest is left for whoever is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import pytest

LONG = ("tests/live/", "tests/sim/")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests in such an order that the share xdist gives to each worker begins with its part of the long ones."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        items[:] = in_shares(items, workers)


def in_shares(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return all tests, share after share: those of one file stay together, for they may share an instance."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.nodeid.startswith(LONG):
            files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for tests in sorted(files.values(), key=len, reverse=True):
        min(shares, key=len).extend(tests)
    short = iter([item for item in items if not item.nodeid.startswith(LONG)])
    return list(_filled(shares, short, len(items)))


def _filled(shares: list[list[pytest.Item]], short: Iterator[pytest.Item], left: int) -> Iterable[pytest.Item]:
    """Fill each share up to what xdist will take for it: an equal part of what is left."""
    for number, share in enumerate(shares):
        size = left // (len(shares) - number)
        yield from share
        taken = list(islice(short, max(0, size - len(share))))
        yield from taken
        left -= len(share) + len(taken)
    yield from short
