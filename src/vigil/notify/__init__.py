"""Incidents to people: one contract for routes, its kinds, and a worker for each route."""

from vigil.notify.contract import Delivery, Route
from vigil.notify.exec_route import ExecRoute
from vigil.notify.message import message_of, summary_of, trial_of
from vigil.notify.sent_route import AppriseRoute, WebhookRoute
from vigil.notify.workers import Workers

__all__ = ["AppriseRoute", "Delivery", "ExecRoute", "Route", "WebhookRoute", "Workers", "message_of", "summary_of", "trial_of"]
