"""Events: the values the machine is fed (DESIGN 3). Recordings name them; each topic has a module, and all are offered here."""

from __future__ import annotations

from vigil.core.events.daemon import *
from vigil.core.events.incident import *
from vigil.core.events.launch import *
from vigil.core.events.operator import *
from vigil.core.events.reading import *

Event = OperatorEvent | LaunchEvent | CustodyEvent | ReadingEvent | IncidentEvent | DaemonEvent
