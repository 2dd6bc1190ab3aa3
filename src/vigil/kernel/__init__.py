"""What the kernel and the disk say; standard library only, for the keeper loads it too."""
