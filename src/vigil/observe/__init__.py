"""Sensors: they read the world and say what they saw and how sure they are; they conclude nothing and write nothing (P7)."""
