"""Act: carries out effects. Each ends in time and feeds its outcome as an event; its intent was durable first (P8)."""

from vigil.daemon.act.birth import born_in, born_of, read_birth, with_processes
from vigil.daemon.act.dispatch import Actors, Carrier
from vigil.daemon.act.launches import Custody, watches_of
from vigil.daemon.act.strays import launch_of

__all__ = ["Actors", "Carrier", "Custody", "born_in", "born_of", "launch_of", "read_birth", "watches_of", "with_processes"]
