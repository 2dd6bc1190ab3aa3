"""Agents: small scripts that write down who they are and how they will end, before they do.

A line is `start SESSION LAUNCH PID START UPTIME KIND LIFE END` or `end LAUNCH PID START UPTIME END`; a survivor's is `left`.
When the calm file is there, whoever is born lives on quietly."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

AGENT = """\
# agent.sh KIND LIVES ENDS: the launch's number picks from both lists
here=${0%/*} kind=$1 lives=$2 ends=$3
read -r stat </proc/$$/stat
set -- ${stat##*) }
start=${20}
n=${VIGIL_LAUNCH##*-}
set -- $lives
shift $((n % $#))
life=$1
set -- $ends
shift $((n % $#))
end=$1
[ ! -e "$here/calm" ] || { life=- end=-; }
case $kind in
deaf) trap '' HUP ;;
stubborn) trap '' HUP TERM INT ;;
esac
read -r up _ </proc/uptime
echo "start $VIGIL_SESSION $VIGIL_LAUNCH $$ $start $up $kind $life $end" >>"$here/traces"
if [ "$kind" = leaker ] && [ "$life" != - ]; then setsid -f /bin/sh "$here/survivor.sh" </dev/null >/dev/null 2>&1; fi
case $life in
-) while :; do sleep 5; done ;;
0) ;;
*) sleep "$life" ;;
esac
read -r up _ </proc/uptime
echo "end $VIGIL_LAUNCH $$ $start $up $end" >>"$here/traces"
case $end in
kill:*) kill -"${end#kill:}" $$ ;;
exit:*) exit "${end#exit:}" ;;
esac
"""
SURVIVOR = """\
# survivor.sh: what an agent left behind, apart from its terminal
here=${0%/*}
read -r stat </proc/$$/stat
set -- ${stat##*) }
echo "left $VIGIL_SESSION $VIGIL_LAUNCH $$ ${20}" >>"$here/traces"
i=0
while [ $i -lt 120 ]; do sleep 5; i=$((i + 1)); done
"""
HOG = """\
# hog.py: asks for more memory than it may have, when it is told to
import os, signal, sys, time
here = os.path.dirname(os.path.abspath(sys.argv[0]))
signal.signal(signal.SIGUSR1, lambda *_: globals().update(hoard=b"x" * (200 << 20)))
start = open("/proc/self/stat").read().rpartition(")")[2].split()[19]
up = open("/proc/uptime").read().split()[0]
with open(here + "/traces", "a") as file:
    file.write(f"start {os.environ['VIGIL_SESSION']} {os.environ['VIGIL_LAUNCH']} {os.getpid()} {start} {up} hog - -\\n")
while True:
    time.sleep(5)
"""
RECEIVER = """\
# receiver.sh: a route that keeps what it is handed
read -r line
printf '%s %s\\n' "$(date +%s.%N)" "$line" >>"${0%/*}/notices"
"""
BYSTANDER = """\
# bystander.sh FILE: writes down every signal that it gets, and lives on
for name in HUP INT QUIT TERM USR1 USR2 CONT PIPE ALRM; do trap "echo $name >>'$1'" $name; done
while :; do sleep 5 & wait $!; done
"""
THREADS = """\
# threads.py FILE TID: a process with a thread of that number; it writes down every signal that it gets
import os, signal, sys, threading, time
def note(number, _frame):
    with open(sys.argv[1], "a") as file:
        file.write(signal.Signals(number).name + "\\n")
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, note)
def live():
    time.sleep(100000)
for _ in range(50):
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(int(sys.argv[2]) - 1))
    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    if thread.native_id == int(sys.argv[2]):
        break
print("yes" if thread.native_id == int(sys.argv[2]) else "no", flush=True)
while True:
    time.sleep(100000)
"""
PERSON = """\
# person.sh FILE ANSWER COMMAND...: a person's shell that runs one command, keeps its exit code and lives on
notes=$1 answer=$2
shift 2
"$@" >"$answer.out" 2>&1
echo $? >"$answer"
exec /bin/sh "${0%/*}/bystander.sh" "$notes"
"""
SCRIPTS = {
    "person.sh": PERSON,
    "agent.sh": AGENT,
    "survivor.sh": SURVIVOR,
    "hog.py": HOG,
    "receiver.sh": RECEIVER,
    "bystander.sh": BYSTANDER,
    "threads.py": THREADS,
}


@dataclass(frozen=True)
class Character:
    """What an agent does: for how long it lives, and how it ends; `-` is for ever."""

    kind: str
    lives: str = "-"
    ends: str = "-"

    def command(self, folder: Path) -> list[str]:
        if self.kind == "hog":
            return ["python3", str(folder / "hog.py")]
        return ["/bin/sh", str(folder / "agent.sh"), self.kind, self.lives, self.ends]


CHARACTERS = (
    Character("worker"),
    Character("worker"),
    Character("deaf"),
    Character("stubborn"),
    Character("crasher", "1.5 4 0.4", "exit:3 exit:137 exit:1"),
    Character("crasher", "6 2 9", "kill:9 kill:11 kill:15"),
    Character("finisher", "3 12", "exit:0"),
    Character("mayfly", "0", "exit:0 exit:7 exit:1"),
    Character("mayfly", "0 0 5", "exit:2 kill:9"),
    Character("leaker", "2 7", "exit:4 kill:9"),
    Character("hog"),
)


def write_scripts(folder: Path) -> None:
    for name, text in SCRIPTS.items():
        (folder / name).write_text(text)
    (folder / "traces").touch()
    (folder / "notices").touch()


def shown(command: list[str]) -> str:
    return shlex.join(command)
