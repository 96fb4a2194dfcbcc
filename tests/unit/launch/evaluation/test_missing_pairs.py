"""Which games are still to be played, and who is the same player."""

from __future__ import annotations

import pytest

from simul.common.config.games.blokus import BlokusConfig
from simul.common.config.games.openspiel import OpenSpielConfig
from simul.common.config.matchups import Contestant
from simul.common.config.schema import Config, EvaluationConfig, ServerConfig
from simul.common.config.search import SearchConfig
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.file_lock import hold_lock
from simul.launch.evaluation.contestants import Conditions, Contestants
from simul.launch.evaluation.league import _with_engines_named
from simul.launch.evaluation.missing_pairs import missing_pairs, play_missing, players_of
from simul.launch.evaluation.player_keys import checkpoint_key, settings_of
from simul.launch.ratings.pair_results import PairResult, PairResults
from tests.support.checkpoints import write_small_checkpoint

A, B, C = (Contestant(name, bot=name) for name in ("a", "b", "c"))
KEYS = {"a": "bot:a", "b": "bot:b", "c": "bot:c"}
SPEC = GameSpec(name="openspiel/tic_tac_toe", observation_size=27, num_actions=9, seats=2)


def conditions(config: Config = Config(game="openspiel"), seats: int = 2) -> Conditions:  # noqa: B008
    return Conditions(config, seats, mirrored=True)


def known(first: str, second: str, games: int) -> PairResults:
    played = PairResult(first, second, settings_of(conditions()), 2, games, games, 0, 0, 0, float(games))
    return PairResults().with_pair({first: "x", second: "y"}, played)


def orders(results: PairResults, games: int, **options) -> list[tuple[str, str, int, int]]:
    found = missing_pairs(results, [A, B, C], KEYS, options.pop("under", conditions()), games, **options)
    pairings = [order.pairing for order in found]
    return [(each.first.label, each.second.label, each.start, each.battles) for each in pairings]


def test_only_what_a_pair_lacks_is_played_and_behind_its_last_game():
    assert orders(PairResults(), 10) == [("a", "b", 0, 10), ("a", "c", 0, 10), ("b", "c", 0, 10)]
    assert orders(known("bot:a", "bot:b", 6), 10) == [("a", "b", 6, 4), ("a", "c", 0, 10), ("b", "c", 0, 10)]
    assert orders(known("bot:c", "bot:a", 10), 10) == [("a", "b", 0, 10), ("b", "c", 0, 10)]


def test_who_was_first_stays_first_and_every_game_is_played_from_every_seat():
    assert ("b", "a", 4, 8) in orders(known("bot:b", "bot:a", 4), 11)
    assert orders(PairResults(), 10, under=conditions(seats=4), only_first=True) == [
        ("a", "b", 0, 12),
        ("a", "c", 0, 12),
    ]


def test_settings_are_those_that_decide_games():
    def key(**settings) -> str:
        return settings_of(conditions(Config(game="openspiel", **settings)))

    same = key()
    assert same == key(seed=7, openspiel=OpenSpielConfig(reward_scale=2.0))
    assert same != key(openspiel=OpenSpielConfig(name="go"))
    assert same != key(evaluation=EvaluationConfig(openings=2))
    assert same != key(server=ServerConfig(zero_state=True)), "a policy without its memory is another player"


def test_an_engine_is_known_by_its_command_line_which_is_no_setting_of_the_game():
    def of(command: str) -> Contestants:
        config = Config(game="blokus", blokus=BlokusConfig(gtp=command))
        bots = [Contestant(name, bot=name) for name in ("mcts", "gtp")]
        return Contestants(config, frozenset(), {}, bots).with_engines_named()

    weak, strong, none = of("/opt/engine --level 1"), of("/opt/engine --level 3 --book /opt/b"), of("")
    assert [each.label for each in strong.listed] == ["mcts", "engine --level 3 --book /opt/b"]
    assert [each.label for each in none.listed] == ["mcts", "gtp"]
    keys = [players_of(each) for each in (weak, strong)]
    assert keys[0].pop("mcts") == keys[1].pop("mcts")
    assert not set(keys[0].values()) & set(keys[1].values())
    assert len({settings_of(conditions(each.config)) for each in (weak, strong, none)}) == 1


def test_engines_of_one_name_are_told_apart():
    def of(command: str, *bots: str) -> Contestants:
        config = Config(game="blokus", blokus=BlokusConfig(gtp=command))
        return Contestants(config, frozenset(), {}, [Contestant(name, bot=name) for name in (*bots, "gtp")])

    def labels(*groups: Contestants) -> list[list[str]]:
        return [[each.label for each in group.listed] for group in _with_engines_named(groups)]

    assert labels(of("/opt/mcts", "mcts")) == [["mcts", "mcts#2"]]
    assert labels(of("/a/engine -l 1"), of("/a/engine -l 2")) == [["engine -l 1"], ["engine -l 2"]]
    assert labels(of("/a/engine -l 1"), of("/b/engine -l 1")) == [["/a/engine -l 1"], ["/b/engine -l 1"]]


def test_two_commands_do_not_add_to_one_file(tmp_path):
    file = tmp_path / "elo.json"
    contestants = Contestants(Config(game="openspiel"), frozenset(), {}, [A, B])
    with hold_lock(tmp_path / ".elo.json.lock", ""), pytest.raises(ConfigError, match=r"Another command plays games"):
        play_missing(contestants, file, 10)
    assert not file.exists()


def test_a_checkpoint_is_known_by_its_weights_and_search_and_counts_once(tmp_path):
    one = write_small_checkpoint(tmp_path / "one" / "000000003", 3, spec=SPEC)
    copy = write_small_checkpoint(tmp_path / "other" / "000000004", 3, spec=SPEC)
    another = write_small_checkpoint(tmp_path / "one" / "000000005", 5, spec=SPEC)
    assert checkpoint_key(one) == checkpoint_key(copy) != checkpoint_key(another)
    assert len({checkpoint_key(one), *(checkpoint_key(one, SearchConfig(worlds=worlds)) for worlds in (20, 60))}) == 3
    served = {"learner": one, "eval/1": copy, "eval/2": another}
    listed = [Contestant(name, policy=name) for name in served]
    bots = [Contestant("random", bot="random"), Contestant("random#2", bot="random")]
    players = players_of(Contestants(Config(game="openspiel"), frozenset(), served, [*listed, *bots]))
    assert list(players) == ["learner", "eval/2", "random"]
