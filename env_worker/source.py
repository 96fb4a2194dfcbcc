"""EnvSource: the interface of a game, through which a worker hosts many of its envs at once.

The worker's loop calls it like this:

    source.start()
    while running:
        decisions = source.poll()           # all ready decisions of all envs; never blocks
        client.submit(decisions)            # one STEP message
        source.act(client.poll().actions)   # those that have arrived
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from simul.common.client.evaluation import Evaluation
from simul.common.config.matchups import Pairing
from simul.common.config.trust import NOTHING, Trust
from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.samples import Sample
from simul.common.protocol.specs import GameSpec

SERVER_LOST = "server_lost"  # the worker's cause when no session is left on the server's side
ReplayPlayer = Literal["own", "showdown", "none"]


class EnvSource(Protocol):
    """Hosts many envs; numbers envs 0..n-1, their seats, and each env's episodes 0, 1, 2, ..."""

    spec: GameSpec
    envs: int  # number of envs it hosts

    def start(self) -> None:
        """Start every env. Raises ConfigError where the game cannot run at all."""

    def poll(self) -> list[Decision]:
        """Decisions and ends that became ready since the last call. Never blocks.

        A finished env starts its next episode, unless the source is draining.
        """

    def act(self, actions: Sequence[Action]) -> None:
        """Apply actions. Those of an episode that is over, and acknowledged ends (-1), are ignored."""

    def episode(self, env: int) -> int:
        """Number of the env's running episode, -1 where none runs."""

    def abort(self, envs: Iterable[int], cause: str) -> None:
        """Count these envs' episodes as aborted by `cause` and start new ones.

        The seats' sessions end as ABORTED; none with the cause `server_lost`: the server has lost them.
        """

    def set_policies(self, names: Sequence[str]) -> None:
        """The policies that the server offers; a source draws opponents from them when an episode starts."""

    def drain(self) -> None:
        """Start no new episodes. Running ones continue until `close`."""

    def idle(self) -> bool:
        """True when no episode is running (after `drain`, or when a fixed number of episodes is done)."""

    def files(self) -> list[int]:
        """File descriptors that become readable when poll() has something new (may change after a restart)."""

    def metrics(self) -> dict[str, Any]:
        """Counters since start. At least `episodes`: {started, finished, aborted: {cause: n}, alive}.

        `recent`, made by `simul.env_worker.recent_episodes`, adds curves of returns, lengths and win rates.
        `encode_sec`: seconds spent on observations so far; `simul profile` then shows them apart from the step.
        """

    def close(self) -> None:
        """Stop everything; running episodes count as aborted by `shutdown`."""


class EvaluationRequest(NamedTuple):
    """Rows for EVALUATE with zero state: wire dtype [N, D], and uint8 [N, ceil(A / 8)], masks as bits."""

    number: int
    policy: str
    observation: NDArray[Any]
    mask: NDArray[np.uint8]


@runtime_checkable
class SearchingSource(EnvSource, Protocol):
    """An EnvSource that also asks for evaluations and gives samples. The worker's loop, after `poll`:

    for request in source.evaluations(most_rows):       # EVALUATE
        ...
    source.take_evaluation(number, evaluation)          # of each answer
    client.submit_samples(source.take_samples())
    """

    def evaluations(self, most_rows: int) -> list[EvaluationRequest]:
        """New requests, of at most `most_rows` rows each; `number` is their own. Never blocks."""

    def take_evaluation(self, number: int, evaluation: Evaluation) -> None:
        """The answer to the request `number`; refused rows included."""

    def take_samples(self) -> list[Sample]:
        """Samples that became ready since the last call."""


@runtime_checkable
class CurriculumSource(EnvSource, Protocol):
    """An EnvSource whose games may change while the policy learns."""

    def set_progress(self, share: float) -> None:
        """The share of the run's horizon (`learner.total_decisions`) that is learned, for games that begin now."""


class ShownPosition(NamedTuple):
    """A position for people: text, a picture as SVG, and lines of a battle of Pokémon; empty what the game has not."""

    text: str = ""
    svg: str = ""
    battle: str = ""


@runtime_checkable
class SpectatedSource(EnvSource, Protocol):
    """An EnvSource that shows its games while they run (`simul.env_worker.spectator`)."""

    def spectate(self, env: int | None) -> None:
        """The env that is watched from now on; None: none is."""

    def position(self, env: int) -> ShownPosition:
        """Where the running episode of the watched env is, as replays show it: hidden information included."""

    def action_name(self, env: int, seat: int, action: int) -> str:
        """An action that is legal now, as a person writes it."""

    def searched_decisions(self) -> list[Decision]:
        """Decisions and ends of the watched env since the last call that `poll` left out, because a search answers."""


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """What a source is built with beside the configuration of its game.

    Attributes:
        index: of the worker.
        envs: number of envs to host.
        seed: of everything drawn; no other worker has it.
        record, greedy: flags of every session.
        episodes: finish exactly this many, then be idle; None: no end.
        mirror_seed: seed of episodes that are played again with exchanged seats; the same for all workers.
        pairings: schedule of an evaluation; empty: opponents are drawn by the shares of the configuration.
        replays: folder for replays; None: none are written.
        replay_player: `own`: with what shows them, a page or a video; `showdown`: a page that loads Showdown's player;
            `none`: only their data.
        trust: in the opponents of the user's own that the configuration names.
    """

    index: int
    envs: int
    seed: int
    record: bool
    greedy: bool
    episodes: int | None
    mirror_seed: int = 0
    pairings: Sequence[Pairing] = ()
    replays: Path | None = None
    replay_player: ReplayPlayer = "own"
    trust: Trust = NOTHING

    def of_envs(self) -> dict[str, Any]:
        """The keyword arguments that every source takes."""
        return {
            "envs": self.envs, "seed": self.seed, "record": self.record, "greedy": self.greedy,
            "episodes": self.episodes,
        }  # fmt: skip
