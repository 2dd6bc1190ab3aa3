"""Every command by what it is for, with the module that has it; their other names, and those that come later."""

# group: {name: (module, one line of help)}. Only the command that runs is imported: a command must start fast.
GROUPS = {
    "Run": {
        "run": ("run", "Declare a session and launch it."),
        "stop": ("verbs", "Stop a session; it stays stopped until it is started."),
        "start": ("verbs", "Start a session that is over."),
        "restart": ("verbs", "End a session and launch it anew."),
        "reset": ("verbs", "End a session's backoff or saturation."),
        "hibernate": ("verbs", "Put a session to sleep."),
        "wake": ("verbs", "Wake a session, where it was or anew."),
        "archive": ("verbs", "End a session and keep its record."),
        "rm": ("verbs", "End a session and purge its identity."),
    },
    "Look": {
        "ls": ("ls", "List sessions, one a line."),
        "get": ("get", "Show all there is about one session."),
        "why": ("why", "Explain why a session is as it is."),
        "logs": ("logs", "Show what an agent printed."),
        "events": ("events", "Show the event log."),
        "deaths": ("deaths", "List death records, newest first."),
        "death": ("deaths", "Show one death with its evidence."),
        "diag": ("diag", "Show what a session's processes do right now."),
    },
    "Talk": {
        "attach": ("attach", "Show a session's terminal; Ctrl-b d leaves."),
        "send": ("send", "Type a prompt into a session's terminal."),
        "heartbeat": ("heartbeat", "Give a sign of life."),
    },
    "What needs you": {
        "incidents": ("incidents", "List what needs a human, or tell all of one."),
        "ack": ("incidents", "Say that you know of an incident: its reminders end."),
        "notify": ("notify", "Try a way to reach people."),
    },
    "Teams": {
        "up": ("up", "Make the teams of a manifest so."),
        "plan": ("up", "Show what `up` would do, and what waits."),
        "down": ("up", "End and forget what manifests declared."),
        "scale": ("up", "Give a role more replicas, or fewer."),
        "shift": ("shift", "Replace the replicas of a team, one role after another."),
        "schema": ("schema", "Print the JSON Schema of the manifest."),
    },
    "House-keeping": {
        "reap": ("reap", "Look what is idle, orphaned or archived, and deal with it."),
        "adopt": ("adopt", "Watch a tmux session that was started elsewhere."),
        "release": ("adopt", "Give an adopted session back."),
        "daemon": ("daemon", "Start, stop and look at the daemon."),
        "doctor": ("doctor", "Say what is missing or wrong here, and what it means."),
        "replay": ("replay", "Run a recording through today's policy and show what differs."),
        "demo": ("demo", "Show a small fleet of scripted agents live."),
        "fake-agent": ("fake_agent", "Play a scripted agent."),
    },
}
COMMANDS = {name: row for group in GROUPS.values() for name, row in group.items()}
ALIASES = {"ps": "ls", "list": "ls", "kill": "stop"}
WIDEST = max(map(len, COMMANDS))
LATER = ("top", "web", "mcp", "fleet", "service")
