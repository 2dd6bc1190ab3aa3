"""Simulated worlds: the real core lives through thousands of hours of bad luck, from a seed (docs/simulator.md)."""
