"""`python -m benchmarks.search.study`: how good the values and the first choices of a Blokus policy are.

The policy plays greedy games against itself from drawn openings. The values of the network and of the search are
compared with the outcomes. Some of the positions are then searched long. The choices of the bare policy and of short
searches are compared with the choice of that search, the truth. A choice is worth what a search of the position behind
it finds, a quarter as long as the truth's: every choice is measured alike. Finished games and positions stay in
`--folder`; the same command again continues there.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from benchmarks.harness.processes import interruptible
from benchmarks.harness.report import conditions, in_one_line
from benchmarks.search.network import NetworkEvaluator
from benchmarks.search.study_results import (
    POLICY,
    TRUTH,
    Choices,
    calibration_table,
    choices_table,
    rank_line,
    variance_table,
)
from simul.common.config.search import SearchConfig
from simul.common.nets.io import load_policy
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.base.openings import PLIES
from simul.env_worker.games.base.players import RandomPlayer
from simul.env_worker.games.base.turn_game import position_of
from simul.env_worker.games.blokus.game import variant_of
from simul.env_worker.games.blokus.turn_game import Blokus
from simul.env_worker.search.batched_search import run_searches
from simul.env_worker.search.evaluation_cache import CachedEvaluation, EvaluationCache, position_key
from simul.env_worker.search.outcomes import outcome_of
from simul.env_worker.search.search import Search
from simul.launch.option_types import count, local_checkpoint
from simul.launch.supervisor.checkpoint_files import config_of, newest_checkpoint

BUDGETS = (32, 64, 256)
STAGES = ((PLIES, 11), (12, 19), (20, 99))  # first and last ply
GOLDEN = (5**0.5 - 1) / 2  # its multiples, modulo 1, are spread evenly
AT_ONCE = 32  # games, or positions that are searched: a forward takes a leaf of each
CACHED = 50_000  # positions
GAMES, CHOICES = "games.jsonl", "choices.jsonl"


class Place(NamedTuple):
    """A position: its game, and the moves before it."""

    game: int
    moves: Sequence[int]


class Study:
    """Games and searches of one policy.

    Args:
        simulations: of the games; truth: of the search that is taken for the truth.
        truth_actions: actions of the root that the truth considers.
    """

    def __init__(self, checkpoint: Path, simulations: int, truth: int, truth_actions: int) -> None:
        config = config_of(checkpoint, [])
        policy = load_policy(checkpoint)
        self.search = msgspec.structs.replace(config.search, simulations=simulations, reuse_tree=False)
        self._truth = msgspec.structs.replace(self.search, simulations=truth, considered_actions=truth_actions)
        self._variant = variant_of(config.blokus)
        self._spec = policy.spec
        self._evaluator = NetworkEvaluator(policy.network, policy.spec)
        self._cache = EvaluationCache(CACHED)

    def play(self, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        """The games of these numbers, each from an opening that its number draws."""
        games = [self._opened(number) for number in numbers]
        positions: list[list[tuple[int, int, float, float]]] = [[] for _ in games]
        while running := [at for at, game in enumerate(games) if game.acting()]:
            for at, search in zip(running, self._searched(self.search, [games[at] for at in running])):
                game, result = games[at], search.result()
                seat = game.acting()[0]
                if result.value is not None:  # else one action was legal
                    value = self._evaluation(game).values[seat]
                    positions[at].append((len(game.moves), seat, float(value), float(result.value[seat])))
                game.apply({seat: result.action})
        for number, game, noted in zip(numbers, games, positions):
            outcome = outcome_of(game.learned_returns(), self.search).tolist()
            moves = [action for _, action in game.moves]
            yield {"game": number, "moves": moves, "positions": noted, "outcome": outcome}

    def choose(self, places: Sequence[Place]) -> Iterator[dict[str, Any]]:
        """What is chosen in these positions, and what each choice is worth."""
        games = [self._after(place.moves) for place in places]
        chosen: list[dict[str, int]] = [{} for _ in games]
        ranked: list[list[int]] = []
        configs = {str(budget): msgspec.structs.replace(self.search, simulations=budget) for budget in BUDGETS}
        for name, config in {**configs, TRUTH: self._truth}.items():
            searches = self._searched(config, games)
            if not ranked:  # now: the cache will have dropped these positions
                ranked = [self._by_prior(game) for game in games]
                chosen = [{POLICY: actions[0]} for actions in ranked]
            for each, search in zip(chosen, searches):
                each[name] = search.result().action
        behind = [(at, action) for at, each in enumerate(chosen) for action in sorted(set(each.values()))]
        values = self._values([self._after([*places[at].moves, action]) for at, action in behind])
        worth: list[dict[int, float]] = [{} for _ in games]
        for (at, action), value in zip(behind, values):
            worth[at][action] = float(value[games[at].acting()[0]])
        for at, place in enumerate(places):
            rank = ranked[at].index(chosen[at][TRUTH])
            yield {"game": place.game, "ply": len(place.moves), "chosen": chosen[at], "worth": worth[at],
                   "rank": rank, "legal": len(ranked[at])}  # fmt: skip

    def _values(self, games: Sequence[Blokus]) -> list[Sequence[float]]:
        """What each position is worth to both seats, by a quarter of the truth's simulations."""
        for game in games:
            while game.acting() and game.count_legal(game.acting()[0]) == 1:
                game.apply({game.acting()[0]: int(game.legal_actions(game.acting()[0])[0])})
        config = msgspec.structs.replace(self.search, simulations=self._truth.simulations // 4)
        searches = iter(self._searched(config, [game for game in games if game.acting()]))
        values: list[Sequence[float]] = []
        for game in games:
            value = next(searches).result().value if game.acting() else None
            values.append((outcome_of(game.learned_returns(), config) if value is None else value).tolist())
        return values

    def _searched(self, config: SearchConfig, games: Sequence[Blokus]) -> list[Search]:
        """A finished search of each position, without noise."""
        searches = [Search(config, self._spec, np.random.default_rng(0), self._cache) for _ in games]
        for search, game in zip(searches, games):
            search.begin(game, full=True, move=len(game.moves), noise=False)
        run_searches(searches, self._evaluator, config.symmetries)
        return searches

    def _evaluation(self, game: Blokus) -> CachedEvaluation:
        """The network's, of a position that was just searched."""
        position = position_of(game)
        found = self._cache.find(position_key(position.acting[0], position.actions, position.observation[None]))
        assert found is not None
        return found

    def _by_prior(self, game: Blokus) -> list[int]:
        """Legal actions, the policy's first choice first."""
        order = np.argsort(-self._evaluation(game).priors, kind="stable")
        return [int(action) for action in position_of(game).actions[order]]

    def _opened(self, number: int) -> Blokus:
        game, draw, player = Blokus(self._variant), random.Random(number), RandomPlayer()
        for _ in range(PLIES):
            game.apply({game.acting()[0]: player.choose(game, game.acting()[0], draw)})
        return game

    def _after(self, moves: Sequence[int]) -> Blokus:
        game = Blokus(self._variant)
        for action in moves:
            game.apply({game.acting()[0]: action})
        return game


def main() -> int:
    """Exit code 0."""
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    checkpoint = newest_checkpoint(options.checkpoint)
    study = Study(checkpoint, options.simulations, options.truth, options.truth_actions)
    key = [str(checkpoint), options.simulations]
    games = _read(options.folder / GAMES, key)
    while sum(len(game["positions"]) for game in games) < options.positions:
        _say(f"{len(games)} games")
        _write(options.folder / GAMES, key, study.play(range(len(games), len(games) + AT_ONCE)))
        games = _read(options.folder / GAMES, key)
    choices_key = [*key, options.truth, options.truth_actions]
    chosen = _read(options.folder / CHOICES, choices_key)
    known = {(line["game"], line["ply"]) for line in chosen}
    places = _spread(games, options.searched)
    missing = [place for place in places if (place.game, len(place.moves)) not in known]
    for first in range(0, len(missing), AT_ONCE):
        _say(f"{len(places) - len(missing) + first} of {len(places)} positions searched")
        part = missing[first : first + AT_ONCE]
        _write(options.folder / CHOICES, choices_key, study.choose(part))
    _print(games, _read(options.folder / CHOICES, choices_key), study.search.considered_actions)
    facts = conditions(
        checkpoint=checkpoint.name, simulations=options.simulations, truth=options.truth,
        truth_actions=options.truth_actions, games=len(games),
    )  # fmt: skip
    sys.stdout.write(f"{in_one_line(facts)}\n")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=local_checkpoint, default="zoo:blokus_duo", help="default: %(default)s")
    parser.add_argument("--positions", type=count, default=2000, help="of games (default: %(default)s)")
    parser.add_argument("--simulations", type=count, default=32, help="of a move of the games (default: %(default)s)")
    parser.add_argument("--searched", type=count, default=150, help="positions searched (default: %(default)s)")
    parser.add_argument("--truth", type=count, default=2000, help="its simulations (default: %(default)s)")
    parser.add_argument("--truth-actions", type=count, default=64, help="that it considers (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "study", help="default: %(default)s")
    return parser.parse_args()


def _spread(games: Sequence[dict[str, Any]], wanted: int) -> list[Place]:
    """About so many positions, spread over the plies; those of a smaller number come first, and stay."""
    places = [Place(game["game"], game["moves"][:ply]) for game in games for ply, *_ in game["positions"]]
    random.Random(0).shuffle(places)
    places.sort(key=lambda place: len(place.moves))
    shares = (number * GOLDEN % 1 for number in range(min(wanted, len(places))))
    return [places[at] for at in dict.fromkeys(int(share * len(places)) for share in shares)]


def _print(games: Sequence[dict[str, Any]], chosen: Sequence[dict[str, Any]], considered: int) -> None:
    of = np.array([game["game"] for game in games for _ in game["positions"]])
    plies, _, network, root = np.array([position for game in games for position in game["positions"]]).T
    outcome = np.array([game["outcome"][seat] for game in games for _, seat, *_ in game["positions"]])
    choices = [
        Choices(
            line["game"], line["ply"], line["chosen"], {int(action): value for action, value in line["worth"].items()},
            line["rank"], line["legal"],
        )
        for line in chosen
    ]  # fmt: skip
    values = {"network": network, "search": root}
    for title, text in (
        *((f"value of the {name}", calibration_table(of, value, outcome)) for name, value in values.items()),
        ("explained variance", variance_table(of, plies.astype(int), values, outcome)),
        ("choices", choices_table(choices, STAGES)),
    ):
        sys.stdout.write(f"{title}\n\n{text}\n\n")
    sys.stdout.write(f"{rank_line(choices, considered)}\n")


def _read(file: Path, key: Sequence[Any]) -> list[dict[str, Any]]:
    """The lines of these settings."""
    lines = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return [line for line in lines if line["key"] == key]


def _write(file: Path, key: Sequence[Any], lines: Iterator[dict[str, Any]]) -> None:
    with file.open("a") as stream:
        stream.writelines(json.dumps({"key": key, **line}) + "\n" for line in lines)


def _say(sentence: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {sentence}\n")


if __name__ == "__main__":
    sys.exit(interruptible(main))
