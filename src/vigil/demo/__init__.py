"""The demo: a small fleet of scripted agents in an instance of their own, removed at its end."""
