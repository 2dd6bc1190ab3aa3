"""Tails the files that agents write, in turns that no hanging disk can hold up."""
