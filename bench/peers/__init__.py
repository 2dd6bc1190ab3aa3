"""Other supervisors, behind one contract."""

from bench.peers.circus import Circus
from bench.peers.contract import Peer, System
from bench.peers.floor import Floor
from bench.peers.supervisord import Supervisord

__all__ = ["Circus", "Floor", "Peer", "Supervisord", "System"]
