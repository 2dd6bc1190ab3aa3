"""Runs the command: python -m vigil.cli."""

from vigil.cli.main import main

main()
