"""Starts the keeper as a plain file, without site packages: they would double its memory."""

import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from vigil.keeper.main import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
