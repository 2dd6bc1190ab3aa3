"""What the keeper refuses, it refuses with a reason, and the event log has it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.live.instance import Instance, wait_for
from tests.live.silent_agents import HOOKS, SOON_S, WATCHDOG, told
from tests.live.test_headless import ask_keeper

CONFIG = f"""
[watchdog]
{WATCHDOG}
[agents.claude.watchdog]
stall_auto_kill = true
"""
# It reads prompts, is deaf to an interruption, and hangs over a silent connection.
HANGS = (
    HOOKS
    + """
signal.signal(signal.SIGINT, signal.SIG_IGN)
hook(hook_event_name="UserPromptSubmit", prompt="x")
server = socket.create_server(("127.0.0.1", 0))
ends = socket.create_connection(server.getsockname()), server.accept()
while sys.stdin.readline(): pass
"""
)


def test_why_an_input_could_not_be_closed_is_in_the_event_log(vigil: Instance, scripts: Path) -> None:
    vigil.config.write_text(CONFIG)
    agent = scripts / "claude"
    agent.write_text(f"#!{sys.executable}\n{HANGS}")
    agent.chmod(0o755)
    wanted = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"]
    session = vigil.run("talks", str(agent), *wanted, agent="claude", runtime="headless")
    held = os.open(
        vigil.home.launch(session["launch"]) / "stdin.fifo", os.O_RDWR
    )  # the agent reads no end while we hold it too

    ask_keeper(vigil, {"do": "close-input", "launch": session["launch"]})

    (outcome,) = wait_for(lambda: told(vigil, "talks", "session.remedied"), SOON_S, "the remedy to fail")
    os.close(held)
    assert outcome["data"] == {"step": "close-stdin", "ok": False, "why": "the keeper does not hold its input open"}
