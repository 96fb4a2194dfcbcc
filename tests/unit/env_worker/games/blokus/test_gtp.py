"""The GTP player with a small engine: whole games, and engines that die, lie or hang."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simul.common.config.trust import EVERYTHING
from simul.common.errors import ConfigError, EnvError
from simul.env_worker.games.blokus.board import Variant, classic, duo
from simul.env_worker.games.blokus.players.gtp import GtpPlayer, engine_command
from simul.env_worker.games.blokus.turn_game import Blokus

ENGINE = [sys.executable, str(Path(__file__).parents[4] / "support" / "gtp_engine.py")]


@pytest.fixture
def players() -> Iterator[list[GtpPlayer]]:
    """Players to be closed when the test is over."""
    opened: list[GtpPlayer] = []
    yield opened
    for player in opened:
        player.close()


def engine(players: list[GtpPlayer], *arguments: str) -> GtpPlayer:
    players.append(GtpPlayer([*ENGINE, *arguments], timeout_sec=600, trust=EVERYTHING))
    return players[-1]


def play(variant: Variant, player: GtpPlayer, seats: set[int], seed: int, most: int = 1000) -> Blokus:
    """The engine at `seats`, random actions at the others."""
    draw, game = random.Random(seed), Blokus(variant)
    while (acting := game.acting()) and len(game.moves) < most:
        seat = acting[0]
        chosen = player.choose(game, seat, draw) if seat in seats else int(draw.choice(game.legal_actions(seat)))
        game.apply({seat: chosen})
    return game


def test_whole_games_of_duo_with_a_fresh_seed_each(players, tmp_path):
    log = tmp_path / "commands"
    player = engine(players, "--log", str(log))
    for seed in range(3):
        assert not play(duo(), player, {seed % 2}, seed).acting()
    commands = log.read_text().splitlines()
    assert commands[0] == "set_game Blokus Duo"
    assert commands[1] == "all_legal b"
    assert commands.count("set_game Blokus Duo") == 1 + 3
    seeds = [command for command in commands if command.startswith("set_random_seed")]
    assert len(set(seeds)) == len(seeds) == 3
    assert not [command for command in commands if "pass" in command]
    plays = [command.split()[:2] for command in commands if command.startswith(("play", "genmove"))]
    assert ["genmove", "b"] in plays
    assert ["genmove", "w"] in plays


def test_classic_is_set_up_by_its_number_of_players(players, tmp_path):
    log = tmp_path / "commands"
    player = engine(players, "--log", str(log))
    play(classic(3), player, {0, 1, 2}, seed=1, most=5)
    commands = log.read_text().splitlines()
    assert commands[0] == "set_game Blokus Three-Player"
    assert [line for line in commands if line.startswith("genmove")] == [f"genmove {c}" for c in (1, 2, 3, 4, 1)]


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("dies", "ended with exit code 3 at `genmove b`"),
        ("silent_end", "closed its output at `genmove b`"),
        ("floods", "answered `genmove b` with more than 8192 lines"),
        ("garbage", "chose 'e99' for purple: expected squares from a1 to n14"),
        ("illegal", "chose a1 for purple, which is not legal there"),
        ("no_piece", "chose 'a1,b2' for purple: expected the squares of one piece"),
        ("pass", "passed for purple, which is not legal there"),
        ("resign", "resigned; games are played to their ends, start it with --noresign"),
        ("refuses", "refused `genmove b`: player failed to generate a move"),
        ("wrong_start", "lists 58 first moves of purple in duo, of which 0 are legal; expected 414"),
    ],
)
def test_a_faulty_engine_is_one_sentence(fault, sentence, players, monkeypatch):
    monkeypatch.setattr("simul.env_worker.games.blokus.players.gtp_engine.END_SEC", 0.5)
    player = engine(players, "--fault", fault)
    with pytest.raises(EnvError) as caught:
        play(duo(), player, {0}, seed=1)
    assert str(caught.value).startswith("the GTP engine ")
    assert sentence in str(caught.value)


def test_an_engine_that_hangs_is_stopped(players):
    player = engine(players, "--fault", "hangs")
    game, draw = Blokus(duo()), random.Random(1)
    player._synchronised(game, draw)  # the start of the program does not count
    assert player._engine is not None
    player._engine._timeout_sec = 0.3
    with pytest.raises(EnvError, match=r"did not answer `genmove b` within 0.3 s and was stopped; raise blokus.gtp_t"):
        player.choose(game, 0, draw)


def test_after_a_fault_the_next_game_has_a_new_engine(players):
    player = engine(players, "--fault", "wrong_score")
    for seed in range(2):
        with pytest.raises(EnvError, match="gives the final score"):
            play(duo(), player, {0, 1}, seed)


def test_a_program_that_cannot_be_started_is_one_sentence(tmp_path):
    with pytest.raises(EnvError, match="cannot be started: No such file or directory"):
        play(duo(), GtpPlayer([str(tmp_path / "missing")], 1, trust=EVERYTHING), {0}, seed=1)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Set blokus.gtp to its path and arguments"),
        ("no-such-engine --level 1", "There is no program 'no-such-engine'"),
        ("'unclosed", "is not a command line"),
    ],
)
def test_a_command_line_that_does_not_do_is_one_sentence(text, sentence):
    with pytest.raises(ConfigError, match=sentence):
        engine_command(text)


def test_pentobi_is_asked_for_its_options(tmp_path):
    program = tmp_path / "pentobi-gtp"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with pytest.raises(ConfigError, match="add --noresign"):
        engine_command(f"{program} --nobook --level 1")
    assert engine_command(f"{program} --nobook --noresign") == [str(program), "--nobook", "--noresign"]
