"""P4: the documented backoff is the real one, on every path; charges and restarts stay within the policy."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checks.base import Verdict, by_launch, excuses
from tests.chaos.history import Command, DeathRow, History, Life, Policy, number_of, session_of, unexcused_s

ORDERS = ("start", "restart", "reset", "wake", "stop", "hibernate", "rm", "run", "scale", "up")
FORGIVES = ("start", "reset", "run", "rm", "up", "scale")
STILL_S = 30.0  # a command that was cut off may be carried out by the next daemon
JITTER = 0.1
EXACT_S = 0.06  # of two clocks that tick every 10 ms
LATE_S = 1.0
SLACK_S = 1.0
EVENT_S = 1.0
GRACE_S = 11.0  # until what ignores SIGTERM is gone
A_BIRTH_S = 0.3
MAYBE_OURS = frozenset({"launch-failed"})  # no keeper could be had: that is charged to nobody
UNCHARGED = frozenset({"finished", "operator", "policy", "host-rebooted"})


def check(history: History) -> Verdict:
    verdict = Verdict("P4 backoff and charges")
    records = {death.launch: death for death in history.deaths}
    for death in history.deaths:
        text = f"{death.session}: {death.launch} is {death.cause} and charged: {death.charged}"
        free = death.cause in UNCHARGED or (death.cause in MAYBE_OURS and not death.charged)
        verdict.expect(death.charged != free, death.at, text)
    for death, after, policy in _restarts(history, records):
        _check_wait(history, verdict, death, after, policy)
    for policy in history.policies.values():
        _check_limit(history, verdict, policy)
    return verdict


def _restarts(history: History, records: dict[str, DeathRow]) -> Iterator[tuple[DeathRow, Life, Policy]]:
    """Yield every relaunch that nobody asked for, with the death before it; that launch may never have been seen alive."""
    for launch, after in by_launch(history).items():
        death, policy = records.get(f"{session_of(launch)}-{number_of(launch) - 1}"), history.policies.get(after.session)
        if death is None or policy is None:
            continue
        if not any(one.began_at <= after.began_at and one.ended_at + STILL_S >= death.at for one in _orders(history, policy)):
            yield death, after, policy


def _orders(history: History, policy: Policy) -> Iterator[Command]:
    """Yield the commands that launch a session or end it; a reset is for all replicas."""
    yield from history.about(policy.name, *ORDERS)
    for name, other in history.policies.items():
        if policy.role and other.role == policy.role:
            yield from history.about(name, "reset")


def _check_wait(history: History, verdict: Verdict, death: DeathRow, after: Life, policy: Policy) -> None:
    before = by_launch(history).get(death.launch)
    died_at = death.at if before is None or before.ended_at is None else min(before.ended_at, death.at)
    fewest, most = _counts(history, death, policy)
    waited_s = after.began_at - died_at
    least_s = delay_s(policy, fewest) if death.charged and not policy.role else policy.base_s
    least_s = least_s * (1 - JITTER) - EXACT_S - (EVENT_S if policy.role else 0.0)
    where = f"{after.session}: {after.launch} came {waited_s:.2f} s after {death.launch} ({death.cause})"
    verdict.expect(waited_s >= least_s, after.began_at, f"{where}; {least_s + EXACT_S:.2f} s were due")
    most_s = (delay_s(policy, most) if death.charged else policy.base_s) * (1 + JITTER)
    slack_s = LATE_S + SLACK_S + _busy_s(history, died_at + most_s, after) + (GRACE_S if policy.lingers else 0.0)
    late_s = unexcused_s(max(died_at, death.at) + most_s, after.began_at, excuses(history, death.launch))
    verdict.expect(
        late_s <= slack_s, after.began_at, f"{where}; {most_s:.2f} s were due, and {late_s:.1f} s of it nothing excuses"
    )
    never = policy.when == "never" or (policy.when == "on-failure" and death.cause == "finished")
    verdict.expect(not never, after.began_at, f"{where}, though restart is {policy.when}")


def delay_s(policy: Policy, count: int) -> float:
    return min(policy.cap_s, policy.base_s * 2.0 ** min(max(count, 1) - 1, 30))


def _counts(history: History, death: DeathRow, policy: Policy) -> tuple[int, int]:
    """Return how many charged events in a row a death is the last of: at least and at most, for a command may forgive late."""
    names = {name for name, other in history.policies.items() if other.role == policy.role} if policy.role else {policy.name}
    asked = [one for name in names for one in history.about(name, *FORGIVES) if one.began_at < death.at]
    surely = max((one.began_at for one in asked if one.code == 0), default=0.0)
    perhaps = max((one.ended_at + STILL_S for one in asked), default=0.0)
    mine = sorted(
        (one for one in history.deaths if one.session in names and one.charged and one.at <= death.at), key=lambda one: one.at
    )
    return _events(mine, perhaps, policy), _events(mine, surely, policy)


def _events(deaths: list[DeathRow], since: float, policy: Policy) -> int:
    count, event_at = 0, -EVENT_S
    for one in deaths:
        if one.at <= since:
            continue
        if (one.uptime_s or 0.0) >= policy.reset_after_s:
            count = 0
        if not policy.role or one.at > event_at + EVENT_S:
            count, event_at = count + 1, one.at
    return max(count, 1)


def _busy_s(history: History, due_at: float, after: Life) -> float:
    """Return what others' births take on a host that starts four at once."""
    return A_BIRTH_S * sum(1 for life in history.agents() if due_at - 1.0 <= life.began_at <= after.began_at)


def _check_limit(history: History, verdict: Verdict, policy: Policy) -> None:
    """No more charged deaths in a row than the policy allows restarts, and the one that gave up."""
    if not policy.max_restarts:
        return
    asked = list(history.about(policy.name, *FORGIVES))
    count, last_at = 0, 0.0
    for death in sorted((one for one in history.deaths if one.session == policy.name), key=lambda one: one.at):
        forgiven = any(one.began_at <= death.at and one.ended_at + STILL_S >= last_at for one in asked)
        if forgiven or (death.uptime_s or 0.0) >= policy.reset_after_s:
            count = 0
        count, last_at = count + death.charged, death.at
        text = f"{policy.name}: charged death {count} in a row, with max_restarts {policy.max_restarts}"
        verdict.expect(count <= policy.max_restarts + 1 or not death.charged, death.at, text)
