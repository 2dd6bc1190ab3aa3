"""Pure policy: no I/O, no clock, no randomness, no asyncio; values in, values out (DESIGN 3)."""
