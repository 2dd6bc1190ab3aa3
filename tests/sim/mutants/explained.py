"""Mutants that nothing can notice: each changes a row and nothing that anybody sees, and the reason is said here.

A reason is true only while nothing notices its mutant: `--mutants` tries these too, and one that is killed has no place here.
"""

from __future__ import annotations

EXPLAINED: dict[str, str] = {}
