"""The loops that feed the machine and carry out its effects: all policy runs here, none is decided here."""
