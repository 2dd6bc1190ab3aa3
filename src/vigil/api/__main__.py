"""Starts the daemon with its API: python -m vigil.api --home FOLDER [--ready-fd N]."""

import sys

from vigil.api.main import main

sys.exit(main(sys.argv[1:]))
