"""The ways to evaluate, the games, and what their windows say."""

from __future__ import annotations

import random
import sys
import time
from math import isnan, nan

import numpy as np
import pytest
import torch

from benchmarks.search import main as bench
from benchmarks.search.games import BegunBlokus, search_source
from benchmarks.search.network import NetworkEvaluator
from benchmarks.search.player import Player, one_game
from benchmarks.search.results import (
    Repeat,
    Window,
    against_hybrid,
    moves_of_a_game,
    promises,
    ratio,
    table,
)
from simul.common.config.loader import load_config
from simul.common.nets.base import example_observation
from simul.common.nets.build import build_network
from simul.common.protocol.masks import pack_masks
from simul.env_worker.games.base.players import RandomPlayer
from simul.env_worker.games.blokus.board import duo
from simul.env_worker.games.loading import game_spec
from simul.env_worker.search.evaluators import UniformEvaluator

SMALL = (
    "search.simulations=2", "search.cheap_simulations=1", "workers.envs=4",
    "network.options={channels: 4, blocks: 1, hidden: 8}", "server.precision=float32",
)  # fmt: skip


def _window(rate: float, *, batch: float = 1.0, cpu: float = 2.0, lengths: tuple[int, ...] = ()) -> Window:
    return Window(2.0, rate / 10, 2 * rate, 2 * rate, 2 * rate / batch, cpu, cpu / 2, lengths)


def _repeat(server: float, alone: tuple[float, float], hybrid: float, bare_us: float) -> Repeat:
    windows = {"alone1": _window(alone[0], lengths=(30,)), "alone2": _window(alone[1]), "hybrid": _window(hybrid)}
    return Repeat({**windows, "server": _window(server, batch=32.0, lengths=(28, 32))}, bare_us, bare_us / 2)


def test_promises_are_medians_of_ratios_within_a_repeat() -> None:
    repeats = [
        _repeat(800.0, (400.0, 500.0), 1600.0, 1000.0),
        _repeat(900.0, (300.0, 200.0), 900.0, 1000.0),
        _repeat(700.0, (700.0, 100.0), 1400.0, 1000.0),
    ]
    bare, alone = promises(repeats, cpu=True)
    assert (bare.found, bare.kept) == (pytest.approx(0.8), True)
    assert bare.by_cpu == pytest.approx(0.8)  # 500 us of 1 s of the server's for 1,600 leaves
    assert (alone.found, alone.kept) == (pytest.approx(1.6), True)
    assert ratio(repeats, ["hybrid"]) == pytest.approx(0.5)
    assert promises(repeats, cpu=False) == []
    assert "our server / hybrid: 0.50 of its leaf evaluations a second" in against_hybrid(repeats)
    missed = promises([_repeat(700.0, (500.0, 500.0), 1.0, 1000.0)], cpu=True)
    assert [promise.kept for promise in missed] == [False, False]


def test_the_table_names_every_way_and_says_what_was_not_run() -> None:
    repeats = [_repeat(800.0, (400.0, 500.0), 1600.0, 1000.0)]
    assert moves_of_a_game(repeats) == 30
    told = table(repeats, {"alone_cuda": "not run: no GPU", "contexts": "not run: no GPU"}).splitlines()
    assert len(told) == 2 + 6
    (server,) = (line for line in told if "our server" in line)
    assert "| 4,800 | 800 | 800 | 800 to 800 | 32.0 | 1,250 |" in server
    (contexts,) = (line for line in told if "CUDA context" in line)
    assert "| not run: no GPU | - | - | - | - | - |" in contexts
    none = Repeat({name: _window(100.0) for name in ("alone1", "alone2", "hybrid", "server")}, nan, nan)
    assert isnan(moves_of_a_game([none]))
    assert "nan" not in table([none], {"alone_cuda": "", "contexts": ""})


def test_games_begin_at_different_stages_once() -> None:
    lengths: list[int] = []
    game = BegunBlokus(duo(), 7, random.Random(1), lengths)
    game.reset(5)
    assert len(game.moves) == 7
    player, draw = RandomPlayer(), random.Random(2)
    while acting := game.acting():
        game.apply({acting[0]: player.choose(game, acting[0], draw)})
    game.reset(6)
    assert (game.moves, lengths) == ([], [])  # one that was begun for it says nothing about lengths
    while acting := game.acting():
        game.apply({acting[0]: player.choose(game, acting[0], draw)})
    played = len(game.moves)
    game.reset(7)
    assert lengths == [played]
    longest = BegunBlokus(duo(), 1000, random.Random(1), lengths)
    longest.reset(0)
    assert longest.acting()


def test_a_network_of_its_own_answers_as_the_network() -> None:
    config = load_config("blokus", SMALL)
    spec = game_spec(config)
    draw = torch.Generator().manual_seed(1)
    observation = example_observation(spec, torch.rand(3, spec.observation_size, generator=draw))
    mask = torch.rand(3, spec.num_actions, generator=draw) < 0.01
    evaluator = NetworkEvaluator(config.network, spec)
    number = evaluator.submit(observation.numpy(), pack_masks(mask.numpy()), spec.num_actions)
    (answer,) = evaluator.poll()
    assert (answer.id, evaluator.poll()) == (number, [])
    network = build_network(config.network, spec)
    with torch.no_grad():
        logits, value, _ = network(observation, mask, network.initial_state(3))
    wanted = torch.where(mask, logits, -torch.inf).softmax(1)
    np.testing.assert_allclose(answer.priors, wanted.numpy(), atol=1e-5)
    np.testing.assert_allclose(answer.value, value.numpy(), atol=1e-5)


@pytest.mark.parametrize("alone", [False, True])
def test_a_player_searches_with_any_evaluator(alone: bool) -> None:
    config = load_config("blokus", SMALL)
    if alone:
        config = one_game(config)
    source = search_source(config, 0, [])
    source.start()
    player = Player(source, UniformEvaluator(), rows=256)
    while player.counts()["moves"] < 20:
        player.play(time.monotonic() + 0.1)
    counts = player.counts()
    rows = counts["evaluations"] / counts["requests"]
    assert rows == 1.0 if alone else 1.0 < rows <= 2.0  # four games in two groups
    assert counts["simulations"] > 0
    source.close()


def test_one_core_is_too_few(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["bench-search", "--cores", "1"])
    with pytest.raises(SystemExit):
        bench.main()
    assert "two cores" in capsys.readouterr().err


@pytest.mark.slow
def test_the_script_runs_from_one_end_to_the_other(monkeypatch, capsys, tmp_path) -> None:
    settings = [part for setting in SMALL[:-1] for part in ("--set", setting)]
    report = tmp_path / "found.json"
    monkeypatch.setattr(
        sys, "argv",
        ["bench-search", "--repeats", "1", "--seconds", "1", "--device", "cpu", "--markdown", "--json", str(report),
         *settings],
    )  # fmt: skip
    assert bench.main() in (0, 1)  # whether the promises are kept depends on the machine
    printed = capsys.readouterr().out
    for words in ("sequential: one game after the other, 1 torch thread", "not run: no GPU", "our server / hybrid",
                  "at least 0.75", "at least 1.50"):  # fmt: skip
        assert words in printed
    assert b'"server_cpu_sec"' in report.read_bytes()
