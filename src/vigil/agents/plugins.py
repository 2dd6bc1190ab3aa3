"""Plugins: JavaScript that reports an agent's events to our hook, for agents without hooks of their own.

The hook runs beside the agent, one event at a time and in order; no event makes the agent wait.
A plugin reports names, ids and numbers: no prompt, no input and no answer leaves the agent."""

from __future__ import annotations

import json
from collections.abc import Iterable

TELLS = """\
// Written for one launch by Vigil, and gone with it: tells its hook what this agent does.
import { spawn, spawnSync } from "node:child_process"

const HOOK = %HOOK%
const MOST = 200
const waiting = []
let busy = false

function tell(said) {
  waiting.push(JSON.stringify(said))
  if (waiting.length > MOST) waiting.shift()
  if (!busy) next()
}

function next() {
  const said = waiting.shift()
  busy = said !== undefined
  if (!busy) return
  let over = false
  const done = () => {
    if (!over) setImmediate(next)
    over = true
  }
  try {
    const child = spawn(HOOK[0], [...HOOK.slice(1), said], { stdio: "ignore", timeout: 5000 })
    child.once("error", done)
    child.once("close", done)
    child.unref()
  } catch {
    done()
  }
}

process.on("exit", () => {
  for (const said of waiting.splice(0).slice(-20)) {
    try {
      spawnSync(HOOK[0], [...HOOK.slice(1), said], { stdio: "ignore", timeout: 1000 })
    } catch {}
  }
})

const short = (text) => (typeof text === "string" ? text.slice(0, 300) : undefined)
"""


def plugin(hook: Iterable[str], events: str) -> str:
    """Return a plugin that reports to this command what the script `events` picks."""
    return TELLS.replace("%HOOK%", json.dumps(list(hook))) + events
