"""The stage: real clients run by a Vigil instance as a person would, each in a home of its own, against the scripted model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.live.instance import Instance, Json, wait_for
from tests.real.clients import Client
from tests.real.model_api import ModelApi, Request
from tests.real.seeds import Seat

PROMPT = "look at it"
READY_S = 60.0  # the slowest needs 15 s to its first request where two cores are busy with other things


@dataclass(frozen=True)
class Played:
    """One client that was run."""

    name: str  # of its session, and of the client in the model's log
    seat: Seat
    vigil: Instance
    api: ModelApi

    @property
    def session(self) -> Json:
        """What Vigil says of it, as `vigil get` prints it."""
        found: Json = self.vigil.json("get", self.name)
        return found

    @property
    def asked(self) -> list[Request]:
        """What it has asked of the script."""
        return self.api.scripted(self.name)

    def wait_asked(self, count: int = 1) -> Request:
        """Wait until it has asked so often, and return that request."""
        wait_for(
            lambda: len(self.asked) >= count, READY_S, f"request {count} of {self.name}", lambda: self.vigil.get(self.name)
        )
        return self.asked[count - 1]

    def wait_hung_up(self) -> None:
        """Wait until nobody listens any more to what the model says: the client has really gone."""
        wait_for(lambda: all(request.ended for request in self.asked), READY_S, f"{self.name} to hang up")
        assert self.asked[-1].ended == "hung up"

    def events(self) -> list[Json]:
        """Return what it printed when headless, as far as that is JSON."""
        path = self.vigil.home.launch(str(self.vigil.get(self.name)["launch"])) / "stdout.jsonl"
        return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.startswith("{")]


class Stage:
    """Where clients are played."""

    def __init__(self, vigil: Instance, api: ModelApi, folder: Path) -> None:
        self.vigil = vigil
        self._api = api
        self._folder = folder

    def seat(self, client: Client, scenario: str, patient: bool = True) -> Seat:
        """Return where a client sits in a scenario."""
        name = f"{client.name}-{scenario}-{self._folder.name}"  # the model serves many tests
        home = self._folder / name
        return Seat(home, home / "work", self._api.url(scenario, name), patient)

    def run(self, client: Client, scenario: str, *options: str, command: Sequence[str] = (), patient: bool = True) -> Played:
        """Run a client by `vigil run`, with these options of it: headless and asked the prompt unless a command says more."""
        seat = self.seat(client, scenario, patient)
        name = seat.home.name
        environment = client.settle(seat, proxy=self._api.address)
        words = ["run", "--name", name, "--agent", client.name, "--cwd", str(seat.cwd), *options]
        words += [] if command else ["--runtime", "headless"]
        self.vigil.start()  # with an environment of its own: no client's
        done = self.vigil.run_cli(*words, "--", *(command or client.asked(PROMPT)), env=environment)
        assert done.returncode == 0, done.stderr
        return Played(name, seat, self.vigil, self._api)


def below_a_shell(command: Sequence[str]) -> list[str]:
    """Return a command that outlives its agent, as a shell in a terminal does."""
    return ["sh", "-c", '"$@"; exec sleep 1000', "sh", *command]
