"""A question to a server says what its name is worth now, not when it was asked."""

from __future__ import annotations

import socket
from pathlib import Path

from vigil.runtimes.tmux.ping import Pinger, Pong


def test_a_name_that_went_while_its_question_was_open_is_seen_to_be_gone(tmp_path: Path) -> None:
    path, pinger = tmp_path / "server", Pinger(lambda _: None)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen()
        assert [pinger.ask(str(path)) for _ in range(2)] == [None, None]

        path.unlink()

        assert pinger.ask(str(path)) is Pong.NO_SOCKET
    pinger.close()
