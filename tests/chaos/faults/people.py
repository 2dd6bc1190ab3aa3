"""People: one command, twenty at once, and a name that is removed and declared again."""

from __future__ import annotations

from tests.chaos.fleet import MOST_REPLICAS, ROLES, TEAM
from tests.chaos.stage import Stage

VERBS = ("stop", "start", "restart", "hibernate", "wake", "reset", "get", "send", "why", "deaths")
WHOLE = ("ls", "events", "incidents", "scale", "run", "daemon")


def ask_once(stage: Stage) -> str:
    words = _words(stage)
    stage.order(*words)
    return " ".join(words[:3])


def ask_twenty(stage: Stage) -> str:
    asked = [_words(stage) for _ in range(20)]
    for words in asked:
        stage.order(*words)
    return "; ".join(" ".join(words[:3]) for words in asked)


def remove_and_declare(stage: Stage) -> str:
    """As a person does who wants it anew: when the first is done."""
    member = stage.fleet.members[stage.rng.choice(sorted(stage.fleet.members))]

    def strike() -> None:
        stage.ask("rm", member.name, "-o", "json")
        stage.ask(*member.words(stage.place.work))

    stage.later(strike)
    return f"rm {member.name}; run it again"


def _words(stage: Stage) -> list[str]:
    rng = stage.rng
    verb = rng.choice((*VERBS, *VERBS, *WHOLE))
    if verb == "scale":
        name, _ = rng.choice(ROLES)
        return ["scale", f"{TEAM}/{name}", str(rng.randint(2, MOST_REPLICAS))]
    if verb == "run":
        return stage.fleet.members[rng.choice(sorted(stage.fleet.members))].words(stage.place.work)
    if verb == "daemon":
        return ["daemon", "status", "-o", "json"]
    if verb in WHOLE:
        return [verb, "-o", "json"]
    name = rng.choice(sorted(stage.fleet.policies))
    return [verb, name, "hello"] if verb == "send" else [verb, name]
