"""The HTTP API on a unix socket: parses, asks the daemon, answers; decides nothing."""
