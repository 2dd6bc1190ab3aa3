"""The process that outlives the daemon: spawns, waits, records. Standard library only; no policy (DESIGN 2)."""
