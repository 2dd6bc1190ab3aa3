"""Tell: carries incidents to people, on a clock of its own (P6)."""
