"""Seed and moves determine a game: taken back, written, read, and played again."""

from __future__ import annotations

import json
import random
import re

import msgspec
import pytest

from simul.common.config.loader import load_game
from simul.common.config.trust import EVERYTHING, NOTHING
from simul.common.errors import ConfigError
from simul.env_worker.games.base.replays import (
    LONGEST_PLAYER,
    RecordedGame,
    ReplayFolder,
    actions_of,
    game_settings,
    read_replay,
)
from simul.env_worker.games.base.turn_game import CHANCE
from simul.env_worker.games.loading import build_source, turn_game
from tests.support.turn_games import HighCard, play

CUSTOM = "tests.support.small_games:TicTacToe"


def play_on(played: RecordedGame, turns: int, draw: random.Random) -> None:
    """Random actions of all seats that act, and of chance."""
    while turns and (acting := played.game.acting()):
        if acting[0] == CHANCE:
            played.apply({CHANCE: played.game.draw_chance(draw)})
        else:
            played.apply({seat: draw.choice(played.game.legal_actions(seat).tolist()) for seat in acting})
        turns -= 1


@pytest.mark.parametrize("kept", [0, 1, 3, 5])
def test_what_is_taken_back_was_never_played(kept):
    played, other = RecordedGame(HighCard(3), 1), RecordedGame(HighCard(3), 1)
    play_on(played, 5, random.Random(1))
    play_on(other, kept, random.Random(1))
    assert len(played.turns) == 5
    played.take_back(kept)
    assert played.turns == other.turns
    assert vars(played.game) == vars(other.game)
    play_on(played, 9, random.Random(2))
    play_on(other, 9, random.Random(2))
    assert played.game.returns() == other.game.returns()


def test_chance_and_seats_that_act_at_once_are_turns():
    played = RecordedGame(HighCard(2), 1)
    play_on(played, 9, random.Random(1))
    assert [[move.seat for move in turn] for turn in played.turns] == [[CHANCE], [CHANCE], [0, 1], [0, 1]]


def test_every_game_of_an_evaluation_is_written_and_plays_again(tmp_path):
    config = load_game(CUSTOM, ["opponents=random:1", "workers.envs=3"])
    source = build_source(
        config, index=4, episodes=5, greedy=True, record=False, replays=tmp_path / "games", trust=EVERYTHING
    )
    source.start()
    draw = random.Random(1)
    play(source, lambda row: draw.choice([a for a, legal in enumerate(row.mask) if legal]))
    source.close()
    files = list((tmp_path / "games").glob("*.json"))
    assert sorted(file.stem.rpartition("-")[2] for file in files) == ["0", "1", "2", "3", "4"]
    assert {file.stem.rsplit("-", 2)[1] for file in files} == {"4"}, "the worker's index"
    with pytest.raises(ConfigError, match="The replay names what would be run, "):
        read_replay(files[0]).config(NOTHING)
    total = 0.0
    for file in files:
        replay = read_replay(file)
        assert (replay.game, replay.outcome) == ("tic_tac_toe", "terminated")
        assert sorted(replay.players) == ["learner", "random"]
        game = turn_game(replay.config(EVERYTHING), trust=EVERYTHING)()
        game.reset(replay.seed)
        for turn in replay.turns:
            game.apply(actions_of(turn))
        assert not game.acting()
        assert list(game.returns()) == replay.returns
        total += replay.returns[replay.players.index("learner")]
        assert file.with_suffix(".txt").read_text() == f"{replay.headline}\n\n{game.render()}\n"
    assert total == pytest.approx(source.metrics()["returns"]["mean"] * 5)


def test_settings_of_a_built_in_game_build_it_again(tmp_path):
    config = load_game("blokus:classic", ["blokus.players=3"])
    played = RecordedGame(turn_game(config, trust=EVERYTHING)(), 7)
    play_on(played, 6, random.Random(1))
    path = ReplayFolder(tmp_path, game_settings(config)).save(played.game, 0, 7, ["a/b", "c<", "d"], played.turns)
    assert path.name == "a-b-vs-c--vs-d-0-0.json"
    assert re.match(
        r"<svg [^>]+><title>blokus/classic, seed 7: seat 0 a/b, seat 1 c&lt;, seat 2 d</title>",
        path.with_suffix(".svg").read_text(),
    )
    replay = read_replay(path)
    assert (replay.outcome, replay.players) == ("unfinished", ["a/b", "c<", "d"])
    assert turn_game(replay.config(NOTHING))().spec == played.game.spec
    assert json.loads(path.read_text())["turns"][0][0]["name"] == played.turns[0][0].name
    only = ReplayFolder(tmp_path / "only", game_settings(config), pictures=False)
    only.save(played.game, 0, 7, ["a", "b", "c"], played.turns)
    assert [file.suffix for file in (tmp_path / "only").iterdir()] == [".json"]


def test_players_names_are_bounded(tmp_path):
    played = RecordedGame(HighCard(2), 1)
    path = ReplayFolder(tmp_path, {}).save(played.game, 0, 1, ["a" * 10_000, "b"], [])
    assert read_replay(path).players == ["a" * LONGEST_PLAYER, "b"]


class OlderMove(msgspec.Struct):
    """As versions read it that knew no drawn openings."""

    seat: int
    action: int
    name: str = ""


class OlderReplay(msgspec.Struct, forbid_unknown_fields=True):
    game: str
    settings: dict
    seed: int
    players: list[str]
    turns: list[tuple[OlderMove, ...]]
    returns: list[float]
    outcome: str


@pytest.mark.parametrize(("drawn", "said"), [(0, ""), (1, "; the first ply was drawn"), (2, "; the first 2 plies w")])
def test_drawn_plies_are_counted_and_versions_without_them_read_the_file(tmp_path, drawn, said):
    played = RecordedGame(HighCard(2), 1)
    play_on(played, 4, random.Random(1))
    turns = [
        tuple(msgspec.structs.replace(move, drawn=0 <= turn - 2 < drawn) for move in moves)  # chance deals two cards
        for turn, moves in enumerate(played.turns)
    ]
    path = ReplayFolder(tmp_path, {}).save(played.game, 0, 1, ["a", "b"], turns)
    assert read_replay(path).drawn_plies == drawn
    assert said in read_replay(path).headline
    assert ("drawn" in path.read_text()) == bool(drawn)
    assert len(msgspec.json.decode(path.read_bytes(), type=OlderReplay).turns) == 4


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"game":"caf\xe9"}', "is no replay of a table game"),
        ('{"game":"ofc","settings":' + "[" * 20_000, "is no replay of a table game"),
        (None, "cannot be read: No such file"),
        ("[]", "is no replay of a table game"),
        ('{"episode": 3}', "is no replay of a table game"),
        ("garbage", "`simul eval --replays DIR` writes them as JSON"),
    ],
)
def test_a_file_that_is_no_replay_is_a_sentence(tmp_path, content, says):
    if content is not None:
        (tmp_path / "game.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError, match=says):
        read_replay(tmp_path / "game.json")


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigError, match="cannot be written"):
        ReplayFolder(tmp_path / "file", {})
