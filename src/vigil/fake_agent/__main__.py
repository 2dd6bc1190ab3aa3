"""`python -m vigil.fake_agent SCENARIO`: the fake agent without the rest of Vigil."""

import signal
import sys


def start() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # before the imports: Ctrl-C kills from the beginning
    from vigil.fake_agent.main import main

    return main(sys.argv[1:])


sys.exit(start())
