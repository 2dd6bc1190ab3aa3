"""Seeds: what each client finds in its throw-away home, so that it asks nothing, meets nobody but the model on loopback.

Every dialog of a fresh home can eat a prompt, and some answer themselves with what nobody wanted; a seed says what a person
would have answered. Keys are dummies.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

KEY = "sk-dummy-" + "0" * 40
MODEL = "scripted"


@dataclass(frozen=True)
class Seat:
    """Where one client sits: its home, the folder it works in, the model it talks to."""

    home: Path
    cwd: Path
    url: str
    patient: bool = True  # False: it is told to give up at the first refusal, if it is a client that can be told


def seed_claude(seat: Seat) -> dict[str, str]:
    """No onboarding, a trusted folder, an approved key, no nudge to another permission mode."""
    _write(
        seat.home / ".claude.json",
        {
            "hasCompletedOnboarding": True,
            "projects": {str(seat.cwd): {"hasTrustDialogAccepted": True}},
            "customApiKeyResponses": {"approved": [KEY[-20:]]},
            "hasSeenAutoDefaultNudge": True,
            "hasSeenAutoDefaultNotice": True,
            "hasSeenAutoModeEntryWarning": True,
        },
    )
    told = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    if not seat.patient:
        told["CLAUDE_CODE_MAX_RETRIES"] = "0"  # else it tries for three minutes
    _write(seat.home / ".claude/settings.json", {"permissions": {"defaultMode": "default"}, "env": told})
    return {"ANTHROPIC_BASE_URL": seat.url, "ANTHROPIC_API_KEY": KEY, "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1"}


def seed_codex(seat: Seat) -> dict[str, str]:
    """A provider of its own, a trusted folder, no daemon that outlives the terminal."""
    config = f"""
model = "{MODEL}"
model_provider = "loopback"
check_for_update_on_startup = false

[model_providers.loopback]
name = "loopback"
base_url = "{seat.url}/v1"
wire_api = "responses"
env_key = "LOOPBACK_KEY"

[features]
daemon_auto_start = false

[projects."{seat.cwd}"]
trust_level = "trusted"
"""
    _write(seat.home / ".codex/config.toml", config)
    return {"LOOPBACK_KEY": KEY, "CODEX_HOME": str(seat.home / ".codex")}


def seed_gemini(seat: Seat) -> dict[str, str]:
    """A key as the way to log in; one process instead of two."""
    _write(
        seat.home / ".gemini/settings.json",
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        },
    )
    return {
        "GEMINI_API_KEY": KEY,
        "GOOGLE_GEMINI_BASE_URL": seat.url,
        "GEMINI_CLI_NO_RELAUNCH": "true",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def seed_opencode(seat: Seat) -> dict[str, str]:
    """A provider of its own; nothing is fetched."""
    _write(
        seat.home / ".config/opencode/opencode.json",
        {
            "autoupdate": False,
            "share": "disabled",
            "model": f"loopback/{MODEL}",
            "small_model": f"loopback/{MODEL}",
            "provider": {
                "loopback": {
                    "npm": "@ai-sdk/openai-compatible",
                    "options": {"baseURL": f"{seat.url}/v1", "apiKey": KEY},
                    "models": {MODEL: {"name": MODEL}},
                }
            },
        },
    )
    return {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "npm_config_registry": f"{seat.url}/npm",
    }


def seed_pi(seat: Seat) -> dict[str, str]:
    """A provider of its own."""
    provider = {
        "baseUrl": f"{seat.url}/v1",
        "api": "openai-completions",
        "apiKey": KEY,
        "models": [{"id": MODEL, "name": MODEL, "input": ["text"], "contextWindow": 100_000, "maxTokens": 4_000}],
    }
    _write(seat.home / ".pi/agent/models.json", {"providers": {"loopback": provider}})
    return {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}


def seed_qwen(seat: Seat) -> dict[str, str]:
    """A key as the way to log in; one process instead of two."""
    _write(
        seat.home / ".qwen/settings.json",
        {
            "security": {"auth": {"selectedType": "openai"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        },
    )
    return {
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{seat.url}/v1",
        "OPENAI_MODEL": MODEL,
        "QWEN_CODE_NO_RELAUNCH": "true",
    }


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2), "utf-8")
