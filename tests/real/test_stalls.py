"""Stalls of real clients: what hangs is named, whatever the client prints meanwhile."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.live.instance import wait_for
from tests.live.silent_agents import told
from tests.real.clients import Client
from tests.real.stage import READY_S, Played, Stage

WATCHDOG = "[watchdog]\nstall_after = 20\nmcp_tool_timeout = 40\n"  # it ticks every 30 s
SERVER = Path(__file__).with_name("deaf_server.py")
TICKED_S = 60.0


def test_a_tool_that_hangs_is_named_although_the_clock_of_its_client_ticks(stage: Stage, claude: Client) -> None:
    stage.vigil.config.write_text(WATCHDOG)
    servers = {"mcpServers": {"deaf": {"command": sys.executable, "args": [str(SERVER)]}}}
    options = ("--mcp-config", json.dumps(servers), "--strict-mcp-config", "--allowedTools", "mcp__deaf__wait")
    command = ["env", "ENABLE_TOOL_SEARCH=false", *claude.asked("look at it", *options)]

    played = stage.run(claude, "deaf-tool", "--runtime", "headless", command=command)
    wait_for(lambda: _ticks(played), READY_S + TICKED_S, "the clock to tick", lambda: played.session)
    assert told(stage.vigil, played.name) == [], "within its time"

    warning = wait_for(lambda: told(stage.vigil, played.name), TICKED_S, "a warning", lambda: played.session)[0]
    assert warning["data"]["verdict"] == "tool-overrun", warning["data"]


def _ticks(played: Played) -> list[str]:
    return [event["tool_name"] for event in played.events() if event.get("type") == "tool_progress"]
