"""Watching: every launch's pidfds, and how each process ended: a child by its wait, others by pidfd, else unknown.

The keeper records an end before it tells it, and reaps a child only after its record."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import Any

from vigil.keeper import records
from vigil.keeper.kills import Kills
from vigil.keeper.protocol import ExitWord, KillFacts, Watch, Word
from vigil.keeper.samples import Samples
from vigil.keeper.snapshot import Snapshots
from vigil.keeper.wire import Malformed, as_json, read
from vigil.kernel import process
from vigil.kernel.shortage import RESERVE

CORE_DUMPED = 0x80
SIGNAL = 0x7F
KILLED = 9
EXPLAINED = ("agent", "inner", "server")  # their end gets a snapshot; a root only follows one of them
AGAIN_S = 1.0
LOST_CHILDREN = 4096  # statuses of unwatched children: a server may die before it can be watched
PEAKS = 4096  # of launches that no daemon has closed yet


class Watcher:
    def __init__(
        self,
        epoll: select.epoll,
        tell: Callable[[Word], None],
        samples: Samples,
        kills: Kills,
        snapshots: Snapshots,
        unwritten: records.Unwritten,
    ) -> None:
        self._epoll = epoll
        self._tell = tell
        self._samples = samples
        self._kills = kills
        self._snapshots = snapshots
        self._unwritten = unwritten
        self._unheld: list[Watch] = []  # no descriptor was left for a pidfd of these
        self._hold_at = 0.0
        self._by_fd: dict[int, Watch] = {}
        self._fd_of_pid: dict[int, int] = {}
        self._lost: dict[int, tuple[int, int, float]] = {}  # pid: start ticks, status, when
        self._peaks: dict[str, int] = {}  # launch: the peak memory of its largest process, in kB

    def __len__(self) -> int:
        return len(self._by_fd) + len(self._unheld) + len(self._unwritten)

    def watch(self, watch: Watch) -> None:
        """Watch a process; one that has ended is recorded at once with what is still known."""
        if watch.role not in records.FILES:
            raise ValueError(f"there is no role {watch.role!r} to record an end of")
        if self._by_fd.get(self._fd_of_pid.get(watch.pid, -1)) == watch or watch in self._unheld:
            return
        try:
            pidfd = self._hold(watch)
        except OSError:  # no descriptor is left: that says nothing of the process (P7)
            self._unheld.append(watch)
            self._hold_at = time.monotonic() + AGAIN_S
            return
        self._samples.follow(watch.launch, watch.folder, watch.role, watch.pid, watch.start_ticks)
        if pidfd is None:
            lost = self._lost.pop(watch.pid, None)
            if lost is not None and lost[0] == watch.start_ticks:
                self._record(watch, lost[1], "wait", lost[2])
            else:
                self._record_unseen(watch)

    def _hold(self, watch: Watch) -> int | None:
        """Hold a process's pidfd, and hear of its end; None if it is gone."""
        pidfd = process.open_pidfd(watch.pid, watch.start_ticks)
        if pidfd is None:
            return None
        try:
            self._epoll.register(pidfd, select.EPOLLIN)
        except OSError:
            os.close(pidfd)
            raise
        self._by_fd[pidfd] = watch
        self._fd_of_pid[watch.pid] = pidfd
        return pidfd

    def owns(self, fd: int) -> bool:
        """Say whether an epoll event is about a watched process."""
        return fd in self._by_fd

    def ended(self, fd: int) -> None:
        """Record the end of the process behind a readable pidfd."""
        # Asked again: within one batch a closed descriptor's number may have become another's.
        if fd in self._by_fd and process.has_ended(fd):
            self._conclude(fd)

    def wait_s(self) -> float | None:
        """Return how long processes without a pidfd still wait for one; None if there are none."""
        return max(0.0, self._hold_at - time.monotonic()) if self._unheld else None

    def catch_up(self) -> None:
        """Try again to hold pidfds that found no descriptor."""
        if self._unheld and self._hold_at <= time.monotonic():
            waiting, self._unheld = self._unheld, []
            for watch in waiting:
                self.watch(watch)

    def _conclude(self, fd: int) -> None:
        watch, at = self._by_fd[fd], time.time()
        status, source = self._status_of_child(fd)
        if not source:
            status, source = self._status_of_other(fd, watch)
        self._drop(fd)
        self._record(watch, status, source, at)
        if source == "wait":
            _, _, usage = os.wait4(watch.pid, os.WNOHANG)
            self._note_peak(watch, usage.ru_maxrss)

    def _note_peak(self, watch: Watch, peak_kb: int) -> None:
        """Keep the peak memory of a child, or of any process that it and those below it waited for.

        A tmux server answers for its pane's agent. Our children share our memory until their exec, and the kernel counts that:
        a peak no higher than ours says nothing."""
        if watch.role != "server" and peak_kb <= (process.read_peak_kb(os.getpid()) or peak_kb):
            return
        self._peaks[watch.launch] = max(peak_kb, self._peaks.get(watch.launch, 0))
        while len(self._peaks) > PEAKS:
            del self._peaks[next(iter(self._peaks))]

    def reap(self) -> None:
        """Reap every unwatched child: orphans that came to us, and clients that are done."""
        while True:
            try:
                child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if child is None:
                return
            pidfd = self._fd_of_pid.get(child.si_pid)
            if pidfd is not None:
                self.ended(pidfd)
                continue
            start_ticks = self._start_of_child(child.si_pid)
            _, status = os.waitpid(child.si_pid, 0)
            self._lost[child.si_pid] = (start_ticks, status, time.time())
            while len(self._lost) > LOST_CHILDREN:
                del self._lost[next(iter(self._lost))]
            self._hold_at = 0.0  # one that waits for its pidfd may be this one

    def _start_of_child(self, pid: int) -> int:
        """Return when an unreaped child began: nobody else has its pid yet."""
        known = next((watch.start_ticks for watch in self._unheld if watch.pid == pid), None)
        try:
            return known or process.read_start_ticks(pid) or 0
        except OSError:
            return 0

    def status_of_lost(self, pid: int) -> int | None:
        """Return the status of a child that was reaped unwatched, once."""
        found = self._lost.pop(pid, None)
        return None if found is None else found[1]

    def forget(self, launch: str) -> int | None:
        """Stop watching a launch; return the peak memory of its largest process in kB, if known."""
        self._unheld = [watch for watch in self._unheld if watch.launch != launch]
        for fd in [fd for fd, watch in self._by_fd.items() if watch.launch == launch]:
            if process.has_ended(fd):  # its event comes after this order
                self._conclude(fd)
            else:
                self._drop(fd)
        self._samples.forget(launch)
        return self._peaks.pop(launch, None)

    def owed(self) -> list[ExitWord]:
        """Return the ends that are on no disk yet."""
        return [word for word in map(_exit_in, self._unwritten.owed()) if word is not None]

    def watches(self) -> tuple[Watch, ...]:
        """Return what is watched, for a successor."""
        return (*self._by_fd.values(), *self._unheld)

    def _status_of_child(self, fd: int) -> tuple[int | None, str]:
        try:  # by its pidfd: its pid may be another child's, once it was reaped
            child = os.waitid(os.P_PIDFD, fd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return None, ""
        if child is None:
            return None, ""
        if child.si_code == os.CLD_EXITED:
            return child.si_status << 8, "wait"
        status = child.si_status | (0x80 if child.si_code == os.CLD_DUMPED else 0)
        return status, "wait"

    def _status_of_other(self, fd: int, watch: Watch) -> tuple[int | None, str]:
        try:
            return RESERVE.call(process.read_wait_status, fd, watch.pid, watch.start_ticks)
        except OSError:  # also the reserve is spent: it ended, and how stays unknown
            return None, ""

    def _record_unseen(self, watch: Watch) -> None:
        """Tell what an earlier keeper recorded; without a record say unknown."""
        known = _exit_in(self._unwritten.get(records.exit_path(watch.folder, watch.role))) or _read_exit(watch)
        if known is not None and (known.pid, known.start_ticks) == (watch.pid, watch.start_ticks):
            self._tell(known)
            self._look_back(watch, time.clock_gettime(time.CLOCK_BOOTTIME))
        else:
            self._record(watch, None, "", time.time())

    def _record(self, watch: Watch, status: int | None, source: str, at: float) -> None:
        boot_s = time.clock_gettime(time.CLOCK_BOOTTIME) - (time.time() - at)
        exit_ = ExitWord(watch.launch, watch.role, watch.pid, watch.start_ticks, status, source, at, boot_s)
        if status is not None and status & CORE_DUMPED and os.WIFSIGNALED(status):
            exit_ = exit_._replace(core=True)
        if status is not None and status & SIGNAL == KILLED and watch.role in EXPLAINED:
            exit_ = exit_._replace(oom=self._read_oom(watch))
        # A full disk or a removed folder: the daemon is told all the same.
        refused = self._unwritten.record(records.exit_path(watch.folder, watch.role), as_json(exit_))
        self._tell(exit_._replace(unrecorded=refused) if refused else exit_)
        self._look_back(watch, boot_s)

    def _read_oom(self, watch: Watch) -> KillFacts | None:
        track = self._samples.track(watch.launch)
        cgroup, armed = (None, None) if track is None else (track.cgroup, track.armed)
        try:
            return self._kills.account(watch.pid, watch.start_ticks, cgroup, armed)
        except Exception:  # whatever /proc says one day: a death is recorded without its reasons rather than not at all
            return None

    def _look_back(self, watch: Watch, boot_s: float) -> None:
        """Have a snapshot taken of what is left of a launch, and stop sampling this process."""
        track = self._samples.track(watch.launch)
        if track is not None and watch.role in EXPLAINED:
            self._snapshots.ask(track, boot_s, watch.role)
        self._samples.ended(watch.launch, watch.role)

    def _drop(self, fd: int) -> None:
        watch = self._by_fd.pop(fd)
        if self._fd_of_pid.get(watch.pid) == fd:
            del self._fd_of_pid[watch.pid]
        self._epoll.unregister(fd)
        os.close(fd)


def _read_exit(watch: Watch) -> ExitWord | None:
    """Read the recorded end of a role; None if there is none that we understand."""
    return _exit_in(records.read_exits(watch.folder).get(watch.role))


def _exit_in(record: dict[str, Any] | None) -> ExitWord | None:
    try:
        return None if record is None else read(ExitWord, record)
    except Malformed:
        return None
