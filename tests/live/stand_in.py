"""A program that behaves as Claude Code does where sleep and wake are concerned: hooks, transcripts, a composer, resume.

It is installed as `claude`: flags, settings and files are read and written as the real one does, and no model is asked.
It writes each prompt that it takes into `prompts` in its folder, with the conversation it was given in.
"""

from __future__ import annotations

import stat
import sys
from pathlib import Path

PROGRAM = r"""
import json, os, re, signal, socket, subprocess, sys, time, uuid

words = sys.argv[1:]
def value(flag):
    return words[words.index(flag) + 1] if flag in words else ""
resumed = value("--resume")
conversation = resumed or value("--session-id") or str(uuid.uuid4())
cwd = os.getcwd()
project = os.path.join(os.environ["HOME"], ".claude", "projects", re.sub("[^a-zA-Z0-9]", "-", cwd))
transcript = os.path.join(project, conversation + ".jsonl")
hooks = json.load(open(value("--settings")))["hooks"] if value("--settings") else {}

def hook(event, **more):
    payload = {"session_id": conversation, "hook_event_name": event, "cwd": cwd, **more}
    for group in hooks.get(event, []):
        for one in group["hooks"]:
            subprocess.run(one["command"], shell=True, input=json.dumps(payload).encode(), check=False)

def write(kind, **more):
    os.makedirs(project, exist_ok=True)
    at = time.time()
    now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at * 1000) % 1000:03}Z"
    entry = {"type": kind, "uuid": str(uuid.uuid4()), "sessionId": conversation, "cwd": cwd, "timestamp": now, **more}
    with open(transcript, "a") as file:
        file.write(json.dumps(entry) + "\n")

def composer():
    print("\n" + "─" * 40 + "\n❯ ", end="", flush=True)

if resumed and not os.path.exists(transcript):
    sys.exit("No conversation found with session ID: " + resumed)
if os.path.exists(os.path.join(cwd, "comes-to-nothing")) and resumed:
    sys.exit(0)
hook("SessionStart", source="resume" if resumed else "startup")
while os.path.exists(os.path.join(cwd, "not-ready")):
    time.sleep(0.02)
composer()
for line in iter(sys.stdin.readline, ""):
    prompt = line.rstrip("\n")
    if not prompt:
        composer()
        continue
    print("\x1b[2J\x1b[H", end="", flush=True)  # no composer until it reads again: an echo stands in one then
    hook("UserPromptSubmit", prompt=prompt)
    with open(os.path.join(cwd, "prompts"), "a") as file:
        file.write(conversation + " " + prompt + "\n")
    write("user", message={"role": "user", "content": prompt})
    if prompt == "crash":
        sys.exit(3)
    if prompt == "hang after a tool":
        listener = socket.create_server(("127.0.0.1", 0))
        model = socket.create_connection(listener.getsockname())
        hook("PreToolUse", tool_name="Read", tool_use_id="t1", tool_input={})
        asked = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
        write("assistant", message={"role": "assistant", "id": str(uuid.uuid4()), "model": "m", "content": [asked]})
        write("user", message={"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": ""}]})
        hook("PostToolUse", tool_name="Read", tool_use_id="t1", tool_input={}, tool_response={})
    if prompt == "hang in an outage":  # it was to try again long ago
        write("system", subtype="api_error", error={"status": 503}, retryInMs=-600000, retryAttempt=1, maxRetries=10)
    if prompt.startswith("hang"):
        signal.pause()
    usage = {"input_tokens": 10, "output_tokens": 5}
    said = [{"type": "text", "text": "All done."}]
    write("assistant", message={"role": "assistant", "id": str(uuid.uuid4()), "model": "m", "content": said, "usage": usage})
    print("All done.", flush=True)
    hook("Stop")
    if prompt == "finish":
        sys.exit(0)
    composer()
"""


def install(folder: Path) -> str:
    """Write the program into a folder, and return its path."""
    path = folder / "claude"
    path.write_text(f"#!{sys.executable} -u\n# -*- coding: utf-8 -*-\n{PROGRAM}", "utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)
