"""Course: a new finding of a silent session continues the one before, and may be worth a warning."""

from __future__ import annotations

from vigil.core.model.replace import replace
from vigil.core.model.stall import Stall
from vigil.core.rules.stall.case import Silence
from vigil.core.rules.stall.schedule import window_s
from vigil.core.rules.stall.verdict import SAMPLES, SICK, VOID, StallFinding, StallVerdict


def with_finding(before: Stall | None, found: StallFinding, at: float) -> Stall:
    """Return a stall's course with a new finding to show only: it counts for nothing."""
    stall = Stall(found.verdict, found.confidence, found.reasons, at, at, found.signs, found.ruled_out, samples=0)
    if before is None or before.verdict not in SICK or found.verdict not in SICK:
        return stall
    same = before.verdict == found.verdict
    return replace(
        before,
        verdict=found.verdict,
        confidence=found.confidence,
        reasons=found.reasons,
        at=at,
        since=before.since if same else at,
        signs=found.signs,
        ruled_out=found.ruled_out,
    )


def continued(before: Stall | None, found: StallFinding, case: Silence) -> Stall:
    """Return a stall's course: the new finding of a silent session continues the last."""
    if found.verdict in VOID and before is not None and before.warned_at is not None:
        return replace(before, samples=0)  # a void finding: the last warning stands
    same = before is not None and before.verdict == found.verdict
    goes_on = before is not None and before.verdict in SICK and found.verdict in SICK
    samples, since, at = 1, case.now, case.evidence.at
    sampled_at = at
    if same and before is not None:
        since = before.since
        counts = before.samples == 0 or at - before.sampled_at >= window_s(case.limits) * 0.9
        samples, sampled_at = (before.samples + 1, at) if counts else (before.samples, before.sampled_at)
    stall = Stall(
        found.verdict,
        found.confidence,
        found.reasons,
        at,
        since,
        found.signs,
        found.ruled_out,
        samples,
        sampled_at,
        found.independent,
    )
    if not goes_on or before is None:
        return stall
    return replace(
        stall,
        warned_at=before.warned_at,
        warnings=before.warnings,
        told=before.told,
        step=before.step,
        stepped_at=before.stepped_at,
    )


def is_told(case: Silence, stall: Stall | None) -> bool:
    """Say whether a stall's course is worth a warning: found often, after enough silence."""
    assert stall is not None
    verdict = StallVerdict(stall.verdict)
    enough = verdict is not StallVerdict.UNKNOWN or case.silent_s >= case.patience_s
    return enough and stall.samples >= SAMPLES.get(verdict, 1)


def words_of(stall: Stall, changed: list[str] | None = None) -> str:
    """Return the last finding of a stall's course in one sentence."""
    words = f"{stall.verdict} ({stall.confidence}): {'; '.join(stall.reasons)}"
    return f"{words}; since the last time: {', '.join(changed)}" if changed else words
