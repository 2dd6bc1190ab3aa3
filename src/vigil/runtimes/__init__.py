"""Where sessions live: one contract, and its kinds."""

from collections.abc import Callable

from vigil.core.model.launch import RuntimeKind
from vigil.home import Home
from vigil.runtimes.contract import Order, Runtime, RuntimeAnswer
from vigil.runtimes.headless import Headless
from vigil.runtimes.tmux.runtime import Tmux, socket_of

__all__ = ["Headless", "Order", "Runtime", "RuntimeAnswer", "Tmux", "make_runtimes", "socket_of"]


def make_runtimes(
    home: Home, on_late_answer: Callable[[str], None], on_health: Callable[[bool, str], None]
) -> dict[RuntimeKind, Runtime]:
    """Return every kind of runtime.

    They report the launch id of a server that answers late, and when probing itself fails and recovers."""
    return {RuntimeKind.TMUX: Tmux(home, on_late_answer, on_health), RuntimeKind.HEADLESS: Headless(home)}
