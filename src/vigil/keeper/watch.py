"""Watching: every launch's pidfds, and how each process ended: a child by its wait, others by pidfd, else unknown.

The keeper records an end before it tells it, and reaps a child only after its record."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

from vigil.keeper import records
from vigil.keeper.kills import Kills
from vigil.keeper.protocol import ExitWord, KillFacts, Watch, Word
from vigil.keeper.samples import Samples
from vigil.keeper.snapshot import Snapshots
from vigil.keeper.wire import Malformed, as_json, read
from vigil.kernel import process

CORE_DUMPED = 0x80
SIGNAL = 0x7F
KILLED = 9
EXPLAINED = ("agent", "inner", "server")  # their end gets a snapshot; a root only follows one of them
UNWRITTEN = 4096
AGAIN_S = 2.0
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
    ) -> None:
        self._epoll = epoll
        self._tell = tell
        self._samples = samples
        self._kills = kills
        self._snapshots = snapshots
        self._unwritten: list[tuple[str, ExitWord]] = []  # ends that the disk did not take, and their folders
        self._write_at = 0.0
        self._by_fd: dict[int, Watch] = {}
        self._fd_of_pid: dict[int, int] = {}
        self._lost: dict[int, tuple[int, int, float]] = {}  # pid: start ticks, status, when
        self._peaks: dict[str, int] = {}  # launch: the peak memory of its largest process, in kB

    def __len__(self) -> int:
        return len(self._by_fd) + len(self._unwritten)

    def watch(self, watch: Watch) -> None:
        """Watch a process; one that has ended is recorded at once with what is still known."""
        if watch.role not in records.FILES:
            raise ValueError(f"there is no role {watch.role!r} to record an end of")
        if self._by_fd.get(self._fd_of_pid.get(watch.pid, -1)) == watch:
            return
        pidfd = process.open_pidfd(watch.pid, watch.start_ticks)
        if pidfd is not None:
            self._by_fd[pidfd] = watch
            self._fd_of_pid[watch.pid] = pidfd
            self._epoll.register(pidfd, select.EPOLLIN)
        self._samples.follow(watch.launch, watch.folder, watch.role, watch.pid, watch.start_ticks)
        if pidfd is None:
            lost = self._lost.pop(watch.pid, None)
            if lost is not None and lost[0] == watch.start_ticks:
                self._record(watch, lost[1], "wait", lost[2])
            else:
                self._record_unseen(watch)

    def owns(self, fd: int) -> bool:
        """Say whether an epoll event is about a watched process."""
        return fd in self._by_fd

    def ended(self, fd: int) -> None:
        """Record the end of the process behind a readable pidfd."""
        # Asked again: within one batch a closed descriptor's number may have become another's.
        if fd in self._by_fd and process.has_ended(fd):
            self._conclude(fd)

    def wait_s(self) -> float | None:
        """Return how long refused records still wait; None if there are none."""
        return max(0.0, self._write_at - time.monotonic()) if self._unwritten else None

    def catch_up(self) -> None:
        """Write the records that have waited long enough."""
        if self._unwritten and self._write_at <= time.monotonic():
            self.write_again()

    def _conclude(self, fd: int) -> None:
        watch, at = self._by_fd[fd], time.time()
        status, source = self._status_of_child(watch)
        if not source:
            status, source = process.read_wait_status(fd, watch.pid, watch.start_ticks)
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
            stat = process.read_stat(child.si_pid)
            _, status = os.waitpid(child.si_pid, 0)
            self._lost[child.si_pid] = (stat.start_ticks if stat else 0, status, time.time())
            while len(self._lost) > LOST_CHILDREN:
                del self._lost[next(iter(self._lost))]

    def status_of_lost(self, pid: int) -> int | None:
        """Return the status of a child that was reaped unwatched, once."""
        found = self._lost.pop(pid, None)
        return None if found is None else found[1]

    def forget(self, launch: str) -> int | None:
        """Stop watching a launch; return the peak memory of its largest process in kB, if known."""
        for fd in [fd for fd, watch in self._by_fd.items() if watch.launch == launch]:
            if process.has_ended(fd):  # its event comes after this order
                self._conclude(fd)
            else:
                self._drop(fd)
        self._samples.forget(launch)
        return self._peaks.pop(launch, None)

    def watches(self) -> tuple[Watch, ...]:
        """Return what is watched, for a successor."""
        return tuple(self._by_fd.values())

    def _status_of_child(self, watch: Watch) -> tuple[int | None, str]:
        if process.read_start_ticks(watch.pid) != watch.start_ticks:  # it was reaped: that child is another
            return None, ""
        try:
            child = os.waitid(os.P_PID, watch.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return None, ""
        if child is None:
            return None, ""
        if child.si_code == os.CLD_EXITED:
            return child.si_status << 8, "wait"
        status = child.si_status | (0x80 if child.si_code == os.CLD_DUMPED else 0)
        return status, "wait"

    def _record_unseen(self, watch: Watch) -> None:
        """Tell what an earlier keeper recorded; without a record say unknown."""
        known = _read_exit(watch)
        if known is None:
            unwritten = (exit_ for _, exit_ in self._unwritten if (exit_.launch, exit_.role) == (watch.launch, watch.role))
            known = next(unwritten, None)
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
        try:
            records.record_exit(watch.folder, as_json(exit_))
        except OSError as error:  # a full disk or a removed folder: the daemon is told all the same
            exit_ = exit_._replace(unrecorded=str(error))
            self._keep_unwritten(watch.folder, exit_)
        self._tell(exit_)
        self._look_back(watch, boot_s)

    def _keep_unwritten(self, folder: str, exit_: ExitWord) -> None:
        """Remember an end that the disk did not take; a folder that is gone needs none."""
        if os.path.isdir(folder) and len(self._unwritten) < UNWRITTEN:
            self._unwritten.append((folder, exit_))
            self._write_at = time.monotonic() + AGAIN_S

    def write_again(self) -> None:
        waiting, self._unwritten = self._unwritten, []
        for folder, exit_ in waiting:
            try:
                records.record_exit(folder, as_json(exit_))
            except OSError:
                self._keep_unwritten(folder, exit_)

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
    record = records.read_exits(watch.folder).get(watch.role)
    try:
        return None if record is None else read(ExitWord, record)
    except Malformed:
        return None
