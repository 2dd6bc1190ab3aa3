"""The demo: a small fleet of scripted agents in an instance of their own, which goes when the demo does."""
