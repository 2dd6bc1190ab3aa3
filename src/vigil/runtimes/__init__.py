"""Where sessions live: one contract, and its kinds."""

from vigil.core.model import RuntimeKind
from vigil.home import Home
from vigil.runtimes.contract import Order, Runtime
from vigil.runtimes.headless import Headless
from vigil.runtimes.tmux import Tmux

__all__ = ["Headless", "Order", "Runtime", "Tmux", "make_runtimes"]


def make_runtimes(home: Home) -> dict[RuntimeKind, Runtime]:
    """Return every kind there is."""
    return {RuntimeKind.TMUX: Tmux(home), RuntimeKind.HEADLESS: Headless(home)}
