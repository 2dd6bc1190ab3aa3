"""Recordings of real daemons, replayed: a policy that answers otherwise than it did then is seen."""
