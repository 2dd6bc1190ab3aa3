"""Sense: reads the world and feeds events; it never concludes (P7)."""
