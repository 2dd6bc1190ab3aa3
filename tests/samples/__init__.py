"""What real agents printed and wrote, and what their adapters make of it."""
