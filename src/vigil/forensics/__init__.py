"""Forensics: the bundle that explains a death, the shelf that bounds all bundles, and the log of exits.

It gathers what others recorded and concludes nothing. It blocks on files: call it in a thread."""

from vigil.forensics.bundle import Bundle, assemble, read_bundle
from vigil.forensics.exit_log import ExitLog, line_of, parse
from vigil.forensics.shelf import Limits, Shelf

__all__ = ["Bundle", "ExitLog", "Limits", "Shelf", "assemble", "line_of", "parse", "read_bundle"]
