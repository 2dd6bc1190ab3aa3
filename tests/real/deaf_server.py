"""A server of the Model Context Protocol on standard input and output whose one tool never answers."""

from __future__ import annotations

import json
import sys

WAIT = {
    "name": "wait",
    "description": "Takes a command, and never answers.",
    "inputSchema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}


def main() -> None:
    """Serve until nobody asks any more."""
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("method") == "initialize":
            version = asked["params"]["protocolVersion"]
            answer = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "deaf", "version": "1"}}
        elif asked.get("method") == "tools/list":
            answer = {"tools": [WAIT]}
        else:
            continue
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)


if __name__ == "__main__":
    main()
