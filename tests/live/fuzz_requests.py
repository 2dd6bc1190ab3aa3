"""Mutated requests against every route of the API, seeded: `python -m tests.live.fuzz_requests SOCKET SEED COUNT ROLE OUT`.

It runs below the keeper as an agent would, or outside as the operator; then it leaves out what would truly stop the daemon.
"""

from __future__ import annotations

import json
import random
import socket
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

ONLY_FOR_AGENTS = {"/v1/daemon:stop", "/v1/teams:down", "/v1/reap", "/v1/adopt", "/v1/manifest:apply"}
WORDS = [
    *["", "a", "victim", "victim:stop", "vic\0tim", "../../etc/passwd", "%00", "%2e%2e%2f", "é", "\u202e", "\udcff", "x" * 300],
    *["-1", "0", "1e400", "NaN", "18446744073709551616", "true", "null", "[]", "{}", "'; drop table sessions", "#{pane_pid}"],
    *["$(id)", "/dev/zero", "/dev/stdin", "/proc/self/mem", "\x1b]52;c;x\x07", "\r\nX-Evil: 1", ".", "..", "/", "a/b/c", "10m"],
    *["-5s", "99999999999d", "x" * 70_000],
]
VALUES: list[Any] = [None, True, False, 0, -1, 2**63, 2**70, 1e308, -0.0, [], {}, [[]], {"": ""}, [None] * 50, *WORDS]
VERBS = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "BREW"]


class Fuzz:
    """Makes requests from the API's own description, and sends them."""

    def __init__(self, path: str, seed: int, role: str) -> None:
        self.path = path
        self.role = role
        self.patience_s = 60.0  # the description of the API takes a busy machine long to make
        self.random = random.Random(seed)
        self.sock: socket.socket | None = None
        document = json.loads(self.ask(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")[1])
        self.patience_s = 0.5  # spoilt requests end within it: they leave the daemon waiting for more
        self.schemas = document["components"]["schemas"]
        self.routes = [
            (method.upper(), path, operation)
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
            if role == "agent" or (path not in ONLY_FOR_AGENTS and method != "delete")
        ]

    def request(self) -> bytes:
        """Return one request, somewhere between right and garbage."""
        method, path, operation = self.random.choice(self.routes)
        if self.random.random() < 0.03:
            method = self.random.choice(VERBS)
        query = []
        for parameter in operation.get("parameters", []):
            safe = "" if self.random.random() < 0.9 else "/?#%&= \r\n\0"
            value = quote(self.word(parameter), safe, errors="surrogateescape")
            if parameter["in"] == "path":
                path = path.replace("{" + parameter["name"] + "}", value)
            elif self.random.random() < 0.5:
                query.append(f"{parameter['name']}={value}")
        target = path + ("?" + "&".join(query) if query else "")
        body = b""
        if "requestBody" in operation or self.random.random() < 0.02:
            body = self.body(operation)
        head = f"{method} {target} HTTP/1.1\r\nHost: x\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        data = head.encode("utf-8", "surrogateescape") + b"\r\n" + body
        return self.spoilt(data) if self.random.random() < 0.1 else data

    def word(self, parameter: dict[str, Any]) -> str:
        """Return a value for a place in a path or a query; half of them are what the route expects."""
        if self.random.random() < 0.5:
            if parameter["name"] in ("name", "session", "which"):
                return "victim"
            if "schema" in parameter:
                return str(self.value(parameter["schema"]))
        return self.random.choice(WORDS) if self.random.random() < 0.8 else str(self.random.randrange(-(10**12), 10**12))

    def body(self, operation: dict[str, Any]) -> bytes:
        """Return a body of the route's own shape with some of its values exchanged."""
        if self.random.random() < 0.05:
            deep = self.random.choice([10, 1_000, 100_000])
            return self.random.choice([b"[", b'{"a":']) * deep
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        value = self.value(content)
        return json.dumps(value).encode("utf-8", "surrogatepass")

    def value(self, schema: dict[str, Any], depth: int = 0) -> Any:
        """Return a value of a schema, or of none."""
        if self.random.random() < 0.25 or depth > 4:
            return self.random.choice(VALUES)
        if "$ref" in schema:
            return self.value(self.schemas[schema["$ref"].rpartition("/")[2]], depth + 1)
        if "anyOf" in schema:
            return self.value(self.random.choice(schema["anyOf"]), depth + 1)
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object" or "properties" in schema:
            fields = schema.get("properties", {})
            given = {name: self.value(field, depth + 1) for name, field in fields.items() if self.random.random() < 0.8}
            if self.random.random() < 0.1:
                given[self.random.choice(WORDS)] = self.random.choice(VALUES)
            return given
        if kind == "array":
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(self.random.randrange(4))]
        return {"integer": self.random.randrange(-5, 99), "number": self.random.uniform(-1, 99), "boolean": True}.get(
            str(kind), self.random.choice(WORDS)
        )

    def spoilt(self, data: bytes) -> bytes:
        """Return bytes with some of them exchanged, doubled or lost."""
        spoilt = bytearray(data)
        for _ in range(self.random.randrange(1, 6)):
            at = self.random.randrange(len(spoilt))
            match self.random.randrange(3):
                case 0:
                    spoilt[at] = self.random.randrange(256)
                case 1:
                    spoilt[at:at] = self.random.randbytes(self.random.randrange(8))
                case _:
                    del spoilt[at : at + self.random.randrange(8)]
        return bytes(spoilt)

    def ask(self, data: bytes) -> tuple[int, bytes]:
        """Send a request and return status and body; 0 if the daemon hung up, or waits for more and was hung up on."""
        if self.sock is None:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(self.patience_s)
            self.sock.connect(self.path)
        try:
            self.sock.sendall(data)
            status, body, goes_on = self.answer(b"HEAD " in data[:6])
        except (OSError, ValueError):
            status, body, goes_on = 0, b"", False
        if not goes_on:
            self.sock.close()
            self.sock = None
        return status, body

    def answer(self, headless: bool) -> tuple[int, bytes, bool]:
        """Read one answer; a stream is hung up on after its head."""
        assert self.sock is not None
        with self.sock.makefile("rb") as stream:
            status = int(stream.readline().split()[1])
            length = -1
            close = False
            while line := stream.readline().strip():
                name, _, value = line.lower().partition(b":")
                length = int(value) if name == b"content-length" else length
                close = close or (name == b"connection" and b"close" in value)
            if headless or length < 0:
                return status, b"", False
            return status, stream.read(length), not close


def main(path: str, seed: str, count: str, role: str, out: str) -> None:
    """Send so many requests, and write down what came back."""
    fuzz = Fuzz(path, int(seed), role)
    statuses: Counter[int] = Counter()
    bad: list[dict[str, Any]] = []
    began = time.monotonic()
    slowest = 0.0
    for _ in range(int(count)):
        data = fuzz.request()
        at = time.monotonic()
        status, body = fuzz.ask(data)
        slowest = max(slowest, time.monotonic() - at) if status else slowest
        statuses[status] += 1
        if status >= 500 or b"Traceback" in body:
            bad.append({"request": repr(data[:2000]), "status": status, "answer": repr(body[:2000])})
    took_s = round(time.monotonic() - began, 1)
    found = {"statuses": statuses, "bad": bad[:20], "bad_count": len(bad), "took_s": took_s, "slowest_s": round(slowest, 3)}
    Path(out + ".tmp").write_text(json.dumps(found))
    Path(out + ".tmp").rename(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
