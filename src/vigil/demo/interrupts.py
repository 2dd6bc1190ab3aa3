"""Interrupts: Ctrl-C, TERM and HUP end the demo at once, but never during setup or cleanup."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class DemoInterrupted(BaseException):
    """A signal ends the demo; the exit code is what a shell expects."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


class Interrupts:
    """Raises one `DemoInterrupted` at the first signal while armed; earlier ones wait, later ones are ignored."""

    def __init__(self) -> None:
        self._armed = False
        self._noted: int | None = None
        self._before: list[tuple[signal.Signals, signal.Handlers]] = []

    def __enter__(self) -> Interrupts:
        """Take over the signals, except ignored ones (as under nohup)."""
        for number in HANDLED:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before.append((number, before))  # type: ignore[arg-type]  # a handler, or the default
                signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Restore the earlier handlers."""
        self._armed = False
        for number, handler in self._before:
            signal.signal(number, handler)

    def arm(self) -> None:
        """Let a signal interrupt from here on; an earlier one does so now."""
        self._armed = True
        if self._noted is not None:
            self._armed = False
            raise DemoInterrupted(self._noted)

    def disarm(self) -> None:
        """Let nothing interrupt from here on."""
        self._armed = False

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self._armed:
            self._armed = False  # once: a second signal must not interrupt the way out
            raise DemoInterrupted(number)
        self._noted = number
