"""Serve until standard input ends, which it does with the parent: python -m tests.real.model_api LOG; prints the address."""

import asyncio
import sys
from pathlib import Path

from tests.real.model_api.log import Log
from tests.real.model_api.server import Server


async def main(log: Path) -> None:
    """Serve on a free port of 127.0.0.1 and say which."""
    parent_gone = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), parent_gone.set)  # nothing is written to it: it can only end
    listening = await asyncio.start_server(Server(Log(log)).serve, "127.0.0.1", 0)
    host, port = listening.sockets[0].getsockname()
    print(f"http://{host}:{port}", flush=True)
    await parent_gone.wait()
    listening.close()  # who is still being served is broken off


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
