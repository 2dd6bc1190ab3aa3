"""Frozen values without decisions: what there is."""
