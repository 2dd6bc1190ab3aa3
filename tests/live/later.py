"""A daemon that starts when hours have passed: its wall and boot clocks are ahead, all else of it and of the host is real.

python -m tests.live.later HOURS --home FOLDER --config FILE. What a program of its own counts (tmux, agents) goes on as it is.
"""

from __future__ import annotations

import sys
import time


def pass_by(hours: float) -> None:
    """Put this process's clocks ahead; call it before anything of Vigil is imported."""
    ahead_s, wall, clock = hours * 3600.0, time.time, time.clock_gettime
    counted = (time.CLOCK_REALTIME, time.CLOCK_BOOTTIME)  # not the monotonic one: it only says how long things take
    time.time = lambda: wall() + ahead_s
    time.clock_gettime = lambda which: clock(which) + (ahead_s if which in counted else 0.0)


if __name__ == "__main__":
    pass_by(float(sys.argv[1]))
    from vigil.daemon.__main__ import main

    sys.exit(main([*sys.argv[2:], "--detach"]))
