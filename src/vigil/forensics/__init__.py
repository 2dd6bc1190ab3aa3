"""Forensics: the bundle that explains a death, the shelf that keeps bundles within bounds, and the log of all exits.

It gathers what others wrote down and concludes nothing. Reading and writing of files only: call it in a thread.
"""

from vigil.forensics.bundle import Bundle, assemble, read_bundle
from vigil.forensics.exit_log import ExitLog, line_of, parse
from vigil.forensics.shelf import Limits, Shelf, remove, tidy

__all__ = ["Bundle", "ExitLog", "Limits", "Shelf", "assemble", "line_of", "parse", "read_bundle", "remove", "tidy"]
