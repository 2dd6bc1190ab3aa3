"""Carrying out effects: one file for each family of them.

Each effect ends in time and says what became of it, as an event; its intent was durable before it began (P8).
"""

from vigil.daemon.carry.birth import read_birth, with_processes
from vigil.daemon.carry.carrier import Carrier, fault_of, make_carrier
from vigil.daemon.carry.custody import Custody, watches_of
from vigil.daemon.carry.strays import launch_of

__all__ = ["Carrier", "Custody", "fault_of", "launch_of", "make_carrier", "read_birth", "watches_of", "with_processes"]
