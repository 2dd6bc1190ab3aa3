"""Starts the daemon with its API: python -m vigil.api --home FOLDER [--ready-fd N]."""

import gc
import sys

gc.disable()  # nothing that a start builds is garbage: looking for some takes an eighth of its time

from vigil.api.main import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
