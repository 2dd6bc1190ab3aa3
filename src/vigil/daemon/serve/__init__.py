"""What callers may ask of the daemon."""
