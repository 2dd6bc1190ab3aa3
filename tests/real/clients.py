"""The real clients: where each is installed, how it is started, what it is called (scripts/real-clients installs them)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.real import seeds
from tests.real.seeds import MODEL, Seat

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "real"


@dataclass(frozen=True)
class Client:
    """One real agent."""

    name: str  # also of its kind of agent, its folder of packages, and its process
    program: str  # below its folder of the cache; a pattern
    headless: tuple[str, ...]  # what follows the program; {} is the prompt
    seed: Callable[[Seat], dict[str, str]]

    @property
    def path(self) -> Path:
        """Where its program is; there is none when it is not installed."""
        return next((CACHE / self.name).glob(self.program), CACHE / self.name / self.program)

    @property
    def missing(self) -> str:
        """Why it cannot be run here; empty when it can."""
        if self.path.exists():
            return ""
        why = CACHE / f"{self.name}.why"
        return f"{self.name} is not installed: " + (why.read_text().strip() if why.exists() else "run scripts/real-clients")

    def asked(self, prompt: str, *more: str) -> list[str]:
        """Return the command of a headless run."""
        return [str(self.path), *(word.format(prompt) for word in self.headless), *more]

    def settle(self, seat: Seat, proxy: str) -> dict[str, str]:
        """Write what it needs into its home, and return the whole environment it is to have."""
        temporary = seat.home / "tmp"
        for folder in (seat.home, seat.cwd, temporary):
            folder.mkdir(parents=True, exist_ok=True)
        return {
            "PATH": os.pathsep.join(dict.fromkeys([_folder_of("node"), _folder_of("python3"), "/usr/bin", "/bin"])),
            "HOME": str(seat.home),
            "TMPDIR": str(temporary),
            "LANG": "C.UTF-8",
            "SHELL": "/bin/sh",
            "HTTPS_PROXY": proxy,  # whoever would talk to anybody else is refused there, and seen
            "HTTP_PROXY": proxy,
            "NO_PROXY": "127.0.0.1,localhost",
        } | self.seed(seat)


def _folder_of(program: str) -> str:
    return os.path.dirname(shutil.which(program) or "/usr/bin/")


CLIENTS = {
    client.name: client
    for client in (
        Client(
            "claude",
            "node_modules/@anthropic-ai/claude-code-linux-x64/claude",
            ("-p", "{}", "--output-format", "stream-json", "--verbose"),
            seeds.seed_claude,
        ),
        Client(
            "codex",
            "node_modules/codex-native/vendor/*/bin/codex",
            ("exec", "--json", "--skip-git-repo-check", "{}"),
            seeds.seed_codex,
        ),
        Client(
            "gemini",
            "node_modules/.bin/gemini",
            ("-m", "gemini-2.5-flash", "-y", "-o", "stream-json", "-p", "{}"),
            seeds.seed_gemini,
        ),
        Client(
            "opencode",
            "node_modules/opencode-linux-x64/bin/opencode",
            ("run", "--format", "json", "{}"),
            seeds.seed_opencode,
        ),
        Client(
            "pi",
            "node_modules/.bin/pi",
            ("--mode", "json", "--provider", "loopback", "--model", MODEL, "-p", "{}"),
            seeds.seed_pi,
        ),
        Client("qwen", "node_modules/.bin/qwen", ("-y", "-o", "stream-json", "-p", "{}"), seeds.seed_qwen),
    )
}
