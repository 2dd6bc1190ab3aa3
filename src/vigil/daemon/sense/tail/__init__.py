"""Files that agents write are followed, in turns that no hanging disk can hold up."""
