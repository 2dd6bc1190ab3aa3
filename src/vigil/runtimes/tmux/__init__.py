"""Sessions in tmux: one server each, on a private socket."""
