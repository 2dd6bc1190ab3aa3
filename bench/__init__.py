"""Measures Vigil side by side with other supervisors, on this machine, in one run (docs/performance.md)."""
