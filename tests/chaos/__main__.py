"""Chaos by hand: `python -m tests.chaos --minutes 30 --seed 4711`; 1 if a promise broke."""

from __future__ import annotations

import argparse
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from random import Random, SystemRandom

from tests.chaos import room
from tests.chaos.checks import judge
from tests.chaos.faults import FAULTS
from tests.chaos.faults.cgroups import remove_cages, remove_folders
from tests.chaos.history import History
from tests.chaos.place import VIGIL, Place, make_place
from tests.chaos.report import lines
from tests.chaos.stage import end_all
from tests.chaos.storm import weather
from tests.chaos.story import tell

INTERRUPTED = 130
NO_ROOM = "not root: no room of our own, so no pid is recycled and no disk is filled"


def main() -> int:
    """Do what was asked for, in a room of our own where we may have one."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long the storm lasts; calm follows")
    parser.add_argument("--seed", type=int, help="what is drawn; a new one if none is given")
    parser.add_argument("--sessions", type=int, help="how many (default: 20 to 40, by the seed)")
    parser.add_argument("--keep", action="store_true", help="keep the home also if no promise broke")
    parser.add_argument("--judge", type=Path, metavar="FOLDER", help="judge a kept run again")
    parser.add_argument("--story", metavar="NAME", help="with --judge: all that is known of a session or launch, in order")
    parser.add_argument("--only", metavar="RE", default="", help="only faults whose name matches")
    parser.add_argument("--base", type=Path, help=argparse.SUPPRESS)
    parser.add_argument(room.INSIDE, action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.judge is not None:
        return _judge_again(asked.judge, asked.story)
    if asked.inside:
        return room.be_first(lambda: _run(asked))
    asked.seed = SystemRandom().randrange(10**6) if asked.seed is None else asked.seed
    print(f"seed {asked.seed}", flush=True)
    asked.base = Path(tempfile.mkdtemp(prefix="vgc-", dir="/tmp"))
    try:
        if not room.can_enter():
            print(NO_ROOM, flush=True)
            return _run(asked)
        words = ["--minutes", str(asked.minutes), "--seed", str(asked.seed), "--base", str(asked.base), "--only", asked.only]
        words += ["--sessions", str(asked.sessions)] if asked.sessions else []
        return room.enter([*words, *(["--keep"] if asked.keep else [])])
    finally:
        remove_cages(asked.base)
        if not (asked.base / "kept").exists():
            shutil.rmtree(asked.base, ignore_errors=True)


def _run(asked: argparse.Namespace) -> int:
    """Weather one storm, judge it, and leave nothing running."""
    rng = Random(asked.seed)
    small = asked.inside and rng.random() < 0.5  # a disk of memory is never slow: the other half has a real one
    sessions = asked.sessions or rng.randint(20, 40)
    place = make_place(asked.base, small)
    code = 1
    try:
        faults = tuple(fault for fault in FAULTS if re.search(asked.only, fault.name))
        history = weather(place, asked.seed, asked.minutes, sessions, faults)
        (asked.base / "history.pickle").write_bytes(pickle.dumps(history))
        code = _judge(history)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        code = INTERRUPTED
    except Exception:
        traceback.print_exc()
        code = 3
    finally:
        _leave(place, keep=asked.keep or code not in (0, INTERRUPTED))
    return code


def _judge_again(folder: Path, name: str | None) -> int:
    history = pickle.loads((folder / "history.pickle").read_bytes())
    if name is None:
        return _judge(history)
    print("\n".join(tell(history, name)))
    return 0


def _judge(history: History) -> int:
    verdicts = judge(history)
    print("\n".join(lines(history, verdicts)), flush=True)
    return int(any(verdict.violations for verdict in verdicts))


def _leave(place: Place, keep: bool) -> None:
    """End everything, and keep a copy of the home if it is worth a look."""
    for home in (place.home, place.other):
        subprocess.run([*VIGIL, "daemon", "stop", "--kill-sessions"], env=place.env_of(home), capture_output=True, timeout=120)
    end_all(place)
    for home in (place.home, place.other):
        remove_folders(home)
    if keep:
        copy = place.base / "kept"
        shutil.copytree(place.home, copy, symlinks=True, ignore=_special, dirs_exist_ok=True)
        print(f"kept: {place.base} (the home is {copy.name}; python -m tests.chaos --judge {place.base})", flush=True)


def _special(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if not ((path := Path(folder) / name).is_file() or path.is_dir()) or name == "filler"}


if __name__ == "__main__":
    sys.exit(main())
