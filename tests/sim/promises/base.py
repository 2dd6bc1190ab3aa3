"""What a promise is: it listens to moments of the true history, which the core cannot see, and raises `Broken`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.sim.world import World

MOMENTS = (
    "decided",  # an event was handled; with its effects
    "written",  # a change is durable
    "born",  # an agent lives
    "ending",  # a launch is about to be ended
    "signalled",  # a process is about to be signalled
    "handed_out",  # a notice goes to its route
    "begun",  # a route begins to deliver what it gathered
    "delivered",  # and has reached a human
    "hears",  # what an agent said of itself reaches the daemon
    "purged",  # the files of a session are gone
    "started",  # a daemon has started
    "killed",  # it is killed
    "rebooted",  # the host came up again
    "healing",  # faults stop now
    "calm",  # faults have stopped a while ago
)


class Broken(AssertionError):
    """A promise was not kept."""

    def __init__(self, promise: str, words: str) -> None:
        super().__init__(f"{promise}: {words}")
        self.promise = promise


class Promise:
    """One promise; `name` and the docstring are what a broken one says."""

    name = ""

    def __init__(self, world: World) -> None:
        self.world = world

    def demand(self, holds: object, words: str) -> None:
        """Raise `Broken` unless something holds."""
        if not holds:
            raise Broken(self.name, words)
