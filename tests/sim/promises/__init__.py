"""The promises of DESIGN section 1, each as a check over what really happened: reading them tells what Vigil promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.sim.promises.accounting import Examined, ServerDied, Summarised, Sure
from tests.sim.promises.admitting import Admitted
from tests.sim.promises.base import MOMENTS, Broken, Promise
from tests.sim.promises.beating import Heartbeats
from tests.sim.promises.calming import Converges, Obeys
from tests.sim.promises.doubting import OnlyReading, Shown, WayOut
from tests.sim.promises.dying import OneDeath
from tests.sim.promises.hearing import Heard
from tests.sim.promises.keeping import WaitsForKeeper
from tests.sim.promises.living import CleanIdentity, IntentFirst, NoHarm, NothingLost, OneAgent, OnlyOurs
from tests.sim.promises.reaping import OnlyIdle
from tests.sim.promises.reminding import Reminded
from tests.sim.promises.replicas import Exact
from tests.sim.promises.restarting import Backoff, Marker
from tests.sim.promises.resting import Due, Rests
from tests.sim.promises.shifting import Rolling, ShiftEnds
from tests.sim.promises.stalling import Progress
from tests.sim.promises.telling import Activity, OneIncident, OnTime
from tests.sim.promises.waking import Conversations
from tests.sim.promises.walls import OncePerAccount
from tests.sim.promises.watching import SocketsBack

if TYPE_CHECKING:
    from tests.sim.world import World

__all__ = ["PROMISES", "Broken", "Promise", "Promises"]

PROMISES: tuple[type[Promise], ...] = (
    OneAgent,
    NoHarm,
    OnlyIdle,
    OneDeath,
    Sure,
    Examined,
    Summarised,
    ServerDied,
    Backoff,
    Marker,
    Rests,
    Due,
    OncePerAccount,
    Exact,
    Rolling,
    ShiftEnds,
    Heartbeats,
    Progress,
    Admitted,
    WaitsForKeeper,
    WayOut,
    OnTime,
    OnlyReading,
    IntentFirst,
    OnlyOurs,
    NothingLost,
    CleanIdentity,
    OneIncident,
    Reminded,
    Heard,
    Shown,
    Activity,
    Obeys,
    Conversations,
    SocketsBack,
    Converges,
)


class Promises:
    """All promises of one world; each hears the moments it has a word for."""

    def __init__(self, world: World) -> None:
        promises = [kind(world) for kind in PROMISES]
        self._heard = {
            moment: [getattr(promise, moment) for promise in promises if hasattr(promise, moment)] for moment in MOMENTS
        }
        for moment, heard in self._heard.items():
            setattr(self, moment, _to_all(heard))

    if TYPE_CHECKING:

        def __getattr__(self, moment: str) -> Any: ...


def _to_all(heard: list[Any]) -> Any:
    def tell(*args: Any) -> None:
        for one in heard:
            one(*args)

    return tell
