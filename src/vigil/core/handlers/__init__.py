"""What follows: each handler takes the book and an event, asks the rules, and writes what changed back."""
