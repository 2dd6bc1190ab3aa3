"""From the world to events: what reads, and never concludes (P7)."""
