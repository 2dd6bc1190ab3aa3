"""Silence: what an agent that says nothing is judged by, what is found, and what may be done about it (DESIGN 5)."""
