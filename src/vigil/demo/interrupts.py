"""Interrupts: Ctrl-C, TERM and HUP end the demo at once, but never in the middle of setting up or cleaning up."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class DemoInterrupted(BaseException):
    """Somebody wants the demo to end; its exit code is what a shell expects."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


class Interrupts:
    """Turns the first signal into one `Interrupted` while armed; what comes before that waits, what comes after is ignored."""

    def __init__(self) -> None:
        self._armed = False
        self._noted: int | None = None
        self._before: list[tuple[signal.Signals, signal.Handlers]] = []

    def __enter__(self) -> Interrupts:
        """Take over the signals that are not ignored already (as under nohup)."""
        for number in HANDLED:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before.append((number, before))  # type: ignore[arg-type]  # a handler, or the default
                signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Give the signals back."""
        self._armed = False
        for number, handler in self._before:
            signal.signal(number, handler)

    def arm(self) -> None:
        """From here on a signal interrupts; one that came earlier does so now."""
        self._armed = True
        if self._noted is not None:
            self._armed = False
            raise DemoInterrupted(self._noted)

    def disarm(self) -> None:
        """From here on nothing interrupts."""
        self._armed = False

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self._armed:
            self._armed = False  # once: the way out must not be interrupted in its turn
            raise DemoInterrupted(number)
        self._noted = number
