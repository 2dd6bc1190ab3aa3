"""What every part of the daemon needs: clock, threads, log, the link to the keeper."""
