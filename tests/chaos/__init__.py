"""Chaos: a real fleet under real faults, and a checker outside that believes only the kernel (docs/chaos.md)."""
