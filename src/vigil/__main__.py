"""`python -m vigil`: the command, where its script is not in the PATH."""

from vigil.cli.main import main

main()
