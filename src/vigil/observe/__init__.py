"""Sensors: read the world and say what they saw and how sure they are; they conclude and write nothing (P7)."""
