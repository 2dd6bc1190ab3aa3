"""Stalls: what a silent agent is judged by, what the watchdog finds, and what it may do about it (DESIGN 5)."""
