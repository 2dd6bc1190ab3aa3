"""The doctor: what is missing or wrong on this machine and in one instance; it needs no daemon and no home."""

from vigil.doctor.examination import INSTANCE, MACHINE, Result, examine_instance, examine_machine
from vigil.doctor.finding import Finding, Level, problem

__all__ = ["INSTANCE", "MACHINE", "Finding", "Level", "Result", "examine_instance", "examine_machine", "problem"]
