"""The commands: each parses, asks the daemon and prints; none decides anything."""
