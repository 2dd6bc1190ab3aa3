"""What a new daemon finds, and how it takes that over (P10)."""
