"""Incidents to people: one contract for routes, its kinds, and the workers that keep them apart."""

from vigil.notify.contract import Delivery, Route
from vigil.notify.exec_route import ExecRoute
from vigil.notify.message import message_of
from vigil.notify.workers import Workers

__all__ = ["Delivery", "ExecRoute", "Route", "Workers", "message_of"]
