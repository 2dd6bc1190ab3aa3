"""Recorded evidence: what the machine was told and answered, in a file, and what it would answer today (DESIGN 3)."""

from vigil.recording.differences import Difference
from vigil.recording.lines import FORMAT, STOPPED, begin_line, end_line, entry_line
from vigil.recording.reading import BadRecording, Entry, Recording, open_recording
from vigil.recording.replay import Replay, ReplayStep, fault

__all__ = [
    "FORMAT",
    "STOPPED",
    "BadRecording",
    "Difference",
    "Entry",
    "Recording",
    "Replay",
    "ReplayStep",
    "begin_line",
    "end_line",
    "entry_line",
    "fault",
    "open_recording",
]
