"""Codex: how it starts with hooks and a conversation to resume, and how its terminal looks (0.166).

We give hooks on its command line, where they join the user's own, and touch no file; `notify` would replace the user's."""

from __future__ import annotations

import json
from hashlib import sha256
from shlex import join

from vigil.agents.codex.hooks import read_hook
from vigil.agents.codex.stream import read_stream
from vigil.agents.codex.transcript import read_entry, transcripts
from vigil.agents.contract import Adapter, Beginning, Dialog, Start
from vigil.agents.flags import BAD_ID, NO_HOOKS, NOT_RESUMED, Command, given, is_id, left_alone, unheard

EXEC = frozenset({"exec", "e"})
OTHER_WORK = (
    "agents review login logout mcp plugin app-server remote-control completion update doctor sandbox debug apply a queue"
    " archive delete migrate-rollouts migrate-nfs-db unarchive cloud exec-server features help"
)
OWN_CHOICE = frozenset({"resume", "fork", "review"})
TAKES_VALUE = (
    "-c --config --enable --disable --remote --remote-auth-token-env -m --model --local-provider -p --profile -s --sandbox"
    " -C --cd --add-dir -a --ask-for-approval --thread-source --cyber-access-program --output-schema --color -o"
    " --output-last-message"
)
TAKES_MANY = ("-i", "--image")  # it takes all words that follow, ours too
# Each with Codex's own label. Codex silently skips a hook without review, so we mark ours as reviewed, by the hash that
# Codex computes; --dangerously-bypass-hook-trust would let every other unreviewed hook run too.
HOOK_EVENTS = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "user_prompt_submit",
    "PreToolUse": "pre_tool_use",
    "PermissionRequest": "permission_request",
    "PostToolUse": "post_tool_use",
    "Stop": "stop",
    "SessionEnd": "session_end",
}
HOOK_TIMEOUT_S = 3  # Codex's limit for SessionEnd; it would cut a longer one, and compute another hash
FLAGS_FILE = "/<session-flags>/config.toml"
DAEMON = "daemon_auto_start"  # Codex's daemon would hold the agent itself, and outlive its terminal


def begin(beginning: Beginning) -> Start:
    """Return the start with hooks and, on resume, the conversation."""
    command = beginning.command
    at = _first_word(command, 1)
    if alone := left_alone("codex", command, OTHER_WORK, at):
        return alone
    config, without = _config(beginning)
    resumed, not_resumed = _resumed(beginning, at)
    return Start(
        (*resumed[:1], *config, *resumed[1:]),
        conversation=beginning.conversation if beginning.resume and not not_resumed else "",
        without=(*without, *not_resumed, *unheard(beginning, given(command, "--json", "--experimental-json"), "exec --json")),
        unresumed="".join(not_resumed),
    )


def _resumed(beginning: Beginning, at: int) -> tuple[Command, tuple[str, ...]]:
    """Return the command that resumes a conversation, or why it does not."""
    command = beginning.command
    if not beginning.resume:
        return command, ()
    if not is_id(beginning.conversation):
        return command, (BAD_ID,)
    if given(command, *TAKES_MANY):
        return command, ("resume: what follows --image would be taken for one",)
    prompt_at = _first_word(command, at + 1) if EXEC.issuperset(command[at : at + 1]) else at
    if prompt_at < len(command) and command[prompt_at] in OWN_CHOICE:
        return command, (NOT_RESUMED,)
    return (*command[:prompt_at], "resume", beginning.conversation, *command[prompt_at:]), ()


def _first_word(command: Command, start: int) -> int:
    """Return the place of the first command or prompt, behind flags and their values."""
    at, takes_value = start, {*TAKES_VALUE.split(), *TAKES_MANY}
    while at < len(command) and command[at].startswith("-") and command[at] not in ("-", "--"):
        at += 2 if command[at] in takes_value else 1
    return min(at, len(command))


def _config(beginning: Beginning) -> tuple[Command, tuple[str, ...]]:
    """Return the settings of this launch alone: hooks, and no daemon that would outlive it."""
    keys = _keys(beginning.command)
    chosen = any(DAEMON in said for said in beginning.command)
    daemon = () if beginning.headless or chosen else ("-c", f"features.{DAEMON}=false")
    if not beginning.hook:
        return daemon, (NO_HOOKS,)
    if any(key == "hooks" or key.startswith("hooks.") for key in keys):
        return daemon, ("hooks: the command gives its own",)
    hook = join(beginning.hook)
    if not hook.isprintable():  # TOML cannot hold it
        return daemon, ("hooks: their path has a character that Codex does not take",)
    return (*daemon, *_hooks(hook)), ()


def _keys(command: Command) -> set[str]:
    """Return the keys that the command configures itself."""
    values = [command[i + 1] for i, said in enumerate(command[:-1]) if said in ("-c", "--config")]
    values += [said.partition("=")[2] for said in command if said.startswith("--config=")]
    values += [said[2:].lstrip("=") for said in command if said.startswith("-c") and len(said) > 2]
    return {value.partition("=")[0].strip() for value in values}


def _hooks(hook: str) -> Command:
    group = f'[{{hooks=[{{type="command",command={json.dumps(hook, ensure_ascii=False)},timeout={HOOK_TIMEOUT_S}}}]}}]'
    flags = [said for event in HOOK_EVENTS for said in ("-c", f"hooks.{event}={group}")]
    trusted = (f'"{FLAGS_FILE}:{label}:0:0"={{trusted_hash="{_hash(label, hook)}"}}' for label in HOOK_EVENTS.values())
    return (*flags, "-c", f"hooks.state={{{','.join(trusted)}}}")


def _hash(label: str, hook: str) -> str:
    handler = {"async": False, "command": hook, "timeout": HOOK_TIMEOUT_S, "type": "command"}
    known = json.dumps({"event_name": label, "hooks": [handler]}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(known.encode()).hexdigest()}"


ADAPTER = Adapter(
    "codex",
    command=("codex",),
    processes=("codex",),
    packages=("@openai/codex",),
    begin=begin,
    read_hook=read_hook,
    read_stream=read_stream,
    read_entry=read_entry,
    transcripts=transcripts,
    dialogs=(
        Dialog("trust", ("Trust and continue", "2. Quit")),
        Dialog("trust", ("Do you trust the contents of this directory?",)),
        Dialog("hooks", ("Hooks need review",)),
        Dialog("permission", ("Would you like to", "No, and tell Codex what to do differently")),
        Dialog("login", ("Sign in with ChatGPT",)),
        Dialog("update", ("Update now", "Skip until next version")),
    ),
    composer=(r"^› (?!\d+\. ).*\n(?:\s*\n)* {2}\S.*(?: · |\? for shortcuts|context left)",),  # older prompts look alike
    draft=(r"^› +\S", 2),
    submits=True,
    resumes=True,
    terminal=True,
    has_hooks=True,
    identity=("OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL", "CODEX_HOME"),
)
