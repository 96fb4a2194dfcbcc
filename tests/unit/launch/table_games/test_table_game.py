"""Who plays a game at a table that has no checkpoint on the command line."""

from __future__ import annotations

import json
import re

import pytest

from simul.common.checkpoints import zoo
from simul.common.checkpoints.meta import WEIGHTS_FILE, read_meta
from simul.common.config.loader import load_game
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import claim
from simul.launch import cli
from simul.launch.commands.page import PORT
from simul.launch.monitoring.page import game_in_page
from simul.launch.table_games import origin as of_table
from simul.launch.table_games import table_game
from simul.launch.table_games.origin import active_run_of, find_origin
from simul.launch.zoo import entries
from tests.support.checkpoints import SMALL, write_checkpoint


@pytest.fixture
def entry(tmp_path, monkeypatch):
    """zoo:hex of a small network, beside a damaged one of the same game; no run is active."""
    monkeypatch.chdir(tmp_path)
    for module in (zoo, entries):
        monkeypatch.setattr(module, "ZOO", tmp_path / "zoo")
    folder = write_checkpoint(tmp_path / "zoo" / "hex", GameSpec("openspiel/hex", 4, 4, seats=2), 1)
    (folder / "results.json").write_text(json.dumps({"random": {"win_rate": 0.9}, "mcts": {"win_rate": 0.25}}))
    damaged = write_checkpoint(tmp_path / "zoo" / "a_hex", GameSpec("openspiel/hex", 4, 4, seats=2), 1)
    (damaged / "results.json").write_text("[]")
    return folder


@pytest.mark.parametrize("fault", ["[]", '{"random": []}', '{"random": {"win_rate": null}}', "{"])
def test_the_zoo_is_listed_with_the_strongest_opponent_and_without_what_is_damaged(entry, fault, capsys):
    (entry.with_name("a_hex") / "results.json").write_text(fault)
    assert cli.main(["zoo"]) == 0
    listed = capsys.readouterr()
    size, date = (entry / WEIGHTS_FILE).stat().st_size / 1e6, read_meta(entry).time[:10]
    assert re.findall(r"^zoo:.*", listed.out, re.M) == [
        f"zoo:hex openspiel:hex won 0.250 against mcts {size:.1f} {date}"
    ]
    assert re.fullmatch(r"The entry zoo:a_hex in .*a_hex is damaged: .+\. Install Simul again\.\n", listed.err)


def test_a_game_without_a_checkpoint_gets_the_zoos_entry_and_says_so(entry, capsys):
    origin = find_origin("openspiel:hex", None, None, ["seed=7"], from_zoo=True)
    assert (origin.checkpoint, origin.what, origin.config.seed) == (entry, "policy zoo:hex", 7)
    assert origin.config.network == SMALL
    origin.say_who_plays()
    assert "no --checkpoint: zoo:hex plays" in capsys.readouterr().err


@pytest.mark.parametrize("same", [True, False])
def test_the_zoos_entry_plays_where_the_settings_of_the_game_leave_what_it_observes(entry, same, monkeypatch, capsys):
    asked = []
    spec = GameSpec("openspiel/hex", 4, 4 if same else 5, seats=2)
    monkeypatch.setattr(of_table, "ask_for_spec", lambda config, command: asked.append(config.openspiel) or spec)
    find_origin("openspiel:hex", None, None, ["seed=7", "openspiel.reward_scale=0.5"], from_zoo=True)
    assert not asked, "these settings do not change the game"
    larger = "openspiel.parameters={board_size: 5}"
    assert find_origin("openspiel:hex", None, None, [larger], from_zoo=True).checkpoint == (entry if same else None)
    assert [each.parameters for each in asked] == [{"board_size": 5}]
    if not same:
        assert cli.main(["watch", "openspiel:hex", "--set", larger]) == 2
        assert "The zoo has no policy for openspiel:hex with these settings." in capsys.readouterr().err


def test_the_zoo_takes_no_place_of_what_is_named(entry, tmp_path, capsys):
    for game, from_zoo in (("openspiel:hex", False), ("openspiel:tic_tac_toe", True), ("ofc", True)):
        origin = find_origin(game, None, None, [], from_zoo=from_zoo)
        assert origin.checkpoint is None
        origin.say_who_plays()
    own = write_checkpoint(tmp_path / "own", GameSpec("openspiel/hex", 4, 4, seats=2), 2)
    assert find_origin("openspiel:hex", own, None, [], from_zoo=True).checkpoint == own
    assert capsys.readouterr().err == ""


def test_an_active_run_of_the_game_comes_before_the_zoo(entry, tmp_path):
    assert active_run_of("openspiel:hex") is None
    run = RunDir(tmp_path / "runs" / "mine")
    run.create()
    run.write_config(load_game("openspiel:hex"))
    claim(run)  # by this process, which lives
    assert active_run_of("openspiel:hex") == run.root
    assert active_run_of("ofc") is None
    with pytest.raises(ConfigError, match="did you mean ofc"):
        active_run_of("ofcc")
    assert find_origin("openspiel:hex", None, run.root, []).run.root == run.root
    with pytest.raises(ConfigError, match=r"mine plays openspiel:hex, not ofc\. Leave --game out"):
        find_origin("ofc", None, run.root, [])
    with pytest.raises(ConfigError, match=r"--set changes nothing of the run in .*mine, which is active"):
        find_origin(None, None, run.root, ["seed=3"])


@pytest.mark.parametrize(
    ("options", "where"), [([], None), (["--page"], PORT), (["--page-port", "0"], 0), (["--page", "--page-port=0"], 0)]
)
def test_a_port_of_the_page_means_the_page(monkeypatch, options, where):
    monkeypatch.setattr(table_game, "run_in_foreground", lambda module, arguments: played.append(None) or 0)
    monkeypatch.setattr(game_in_page, "play_in_page", lambda module, arguments, port: played.append(port) or 0)
    played = []
    assert cli.main(["play", "ofc", "--opponent", "random", *options]) == 0
    assert played == [where]


@pytest.mark.parametrize(("option", "value"), [("--run-dir", "runs/x"), ("--policy", "past/5")])
def test_a_checkpoint_and_a_running_server_are_not_named_together(entry, option, value, capsys):
    assert cli.main(["play", "--checkpoint", str(entry), option, value]) == 2
    assert f"{option} names a server that runs, and --checkpoint is served anew" in capsys.readouterr().err
