"""Faults: what can go wrong, a row each; they strike a session or the host, and heal after a while if they are of that kind."""

from __future__ import annotations

from tests.sim.faults.agents import (
    cannot_be_killed,
    dies_at_birth,
    ends_unseen,
    exits,
    finishes,
    hangs,
    is_signalled,
    is_stopped,
    leaks,
    loses_its_pane_while_stopped,
    next_birth,
    outlives_its_pane,
)
from tests.sim.faults.host import (
    host_reboots,
    host_sleeps,
    somebody_types,
)
from tests.sim.faults.memory import memory_runs_out
from tests.sim.faults.pulses import signs_of_life
from tests.sim.faults.senses import (
    axis_cannot_be_read,
    everything_is_confused,
    hooks_are,
    nobody_can_be_read,
    nothing_can_be_read,
    probes_are_slow,
)
from tests.sim.faults.servers import (
    all_servers_are_killed,
    all_servers_hang,
    comes_at_the_last_moment,
    pane_is_closed,
    server_hangs,
    server_is_killed,
    socket_is_lost,
    somebody_attaches,
)
from tests.sim.faults.shifts import shift_meets, shifts_a_team
from tests.sim.faults.sizes import Strike
from tests.sim.faults.teams import (
    applies_it_again,
    changes_a_manifest,
    die_together,
    memory_is_short,
    scales,
    takes_a_team_down,
)
from tests.sim.faults.vigil import (
    daemon_dies,
    daemon_is_killed,
    daemon_is_stopped,
    keeper_is_killed,
    keeper_is_stopped,
    notifier_is_down,
    store_is_full,
    store_is_slow,
)
from tests.sim.faults.walls import is_locked_out, meets_its_limit

__all__ = ["FAULTS", "TEAMS", "Strike"]

FAULTS: dict[str, Strike] = {
    "agent exits": exits,
    "agent finishes": finishes,
    "agent is signalled": is_signalled,
    "agent ends unseen": ends_unseen,
    "agent dies at birth": dies_at_birth,
    "agent is stopped": is_stopped,
    "agent hangs": hangs,
    "agent leaks a child": leaks,
    "agent cannot be killed": cannot_be_killed,
    "agent outlives its pane": outlives_its_pane,
    "stopped agent loses its pane": loses_its_pane_while_stopped,
    "agent meets its limit": meets_its_limit,
    "agent is locked out": is_locked_out,
    "memory runs out": memory_runs_out,
    "server is killed": server_is_killed,
    "all servers are killed": all_servers_are_killed,
    "pane is closed": pane_is_closed,
    "server hangs": server_hangs,
    "all servers hang": all_servers_hang,
    "socket is lost": socket_is_lost,
    "somebody attaches": somebody_attaches,
    "birth fails": next_birth("fails"),
    "birth fails half-way": next_birth("half"),
    "birth is not told": next_birth("lost"),
    "axis cannot be read": axis_cannot_be_read("failed"),
    "axis is unclear": axis_cannot_be_read("unknown"),
    "server is left out": axis_cannot_be_read("missing"),
    "axis is not listed": axis_cannot_be_read("omitted"),
    "everything is confused": everything_is_confused,
    "nothing can be read": nothing_can_be_read,
    "nobody can be read": nobody_can_be_read,
    "probes are slow": probes_are_slow,
    "hooks are lost": hooks_are("lost"),
    "hooks are doubled": hooks_are("doubled"),
    "hooks are reordered": hooks_are("reordered"),
    "daemon is killed": daemon_is_killed,
    "daemon dies before it writes": daemon_dies("before-write"),
    "daemon dies before it acts": daemon_dies("after-write"),
    "daemon dies while it acts": daemon_dies("while-acting"),
    "daemon is stopped": daemon_is_stopped,
    "keeper is killed": keeper_is_killed,
    "keeper is stopped": keeper_is_stopped,
    "store is full": store_is_full,
    "store is slow": store_is_slow,
    "notifier is down": notifier_is_down,
    "host sleeps": host_sleeps,
    "host reboots": host_reboots,
    "somebody stops it": somebody_types("stop"),
    "somebody starts it": somebody_types("start"),
    "somebody restarts it": somebody_types("restart"),
    "somebody resets it": somebody_types("reset"),
    "somebody removes it": somebody_types("rm"),
    "somebody changes a manifest": changes_a_manifest,
    "somebody applies a manifest again": applies_it_again,
    "somebody scales a role": scales,
    "somebody takes a team down": takes_a_team_down,
    "somebody comes at the last moment": comes_at_the_last_moment,
    "team is shifted": shifts_a_team,
    "team is shifted and meets a person": shift_meets("a person"),
    "team is shifted and meets a kill": shift_meets("a kill"),
    "team is shifted and meets an abort": shift_meets("an abort"),
    "team is shifted and meets a bad generation": shift_meets("a bad generation"),
    "replicas die together": die_together,
    "replica gives no signs of life": signs_of_life("muted"),
    "replica is silent": signs_of_life("silent"),
    "replica gives late signs of life": signs_of_life("late_beats"),
    "launches lack memory": memory_is_short,
}
TEAMS = frozenset(kind for kind in FAULTS if kind.startswith(("team", "replica", "launches"))) | {
    "somebody changes a manifest",
    "somebody applies a manifest again",
    "somebody scales a role",
    "somebody takes a team down",
    "somebody comes at the last moment",
}
