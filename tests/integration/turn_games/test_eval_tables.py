"""`simul eval` of games at a table: figures and replays of every game, and engines that speak GTP, good and bad."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from simul.common.config.loader import load_game
from simul.common.config.schema import NetworkConfig
from simul.common.config.trust import NOTHING
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.base.replays import Replay, actions_of, read_replay
from simul.env_worker.games.loading import game_spec, turn_game
from simul.launch import cli
from tests.support.checkpoints import write_checkpoint
from tests.support.waiting import PATIENCE_SEC

ENGINE = f"{sys.executable} {Path(__file__).parents[2] / 'support' / 'gtp_engine.py'}"


def evaluated(*arguments: str | Path, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "simul.launch.cli", "eval", *map(str, arguments)]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=2.5 * PATIENCE_SEC)


@pytest.mark.slow  # .ci/long runs it
def test_a_replay_of_every_game_and_a_picture_that_watch_shows(tmp_path):
    done = evaluated(
        "blokus", "--opponent", "largest_piece", "--gtp", ENGINE, "--games", "2", "--json", "--replays", str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pairs"][0]["battles"] == 2
    files = sorted(tmp_path.glob("*.json"))
    replays = [read_replay(file) for file in files]
    assert sorted(replay.players for replay in replays) == [["gtp", "largest_piece"], ["largest_piece", "gtp"]]
    assert all(file.with_suffix(".svg").read_text().startswith("<svg") for file in files)
    shown = subprocess.run(
        [sys.executable, "-m", "simul.launch.cli", "watch", "--replay", str(files[0])],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_SEC,
    )  # fmt: skip
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.count("\n14 ") == len(replays[0].turns) + 1, "every position"


SHOWS_SOON = """
import sys
from simul.launch.cli import main
from simul.launch.evaluation import eval_runner
eval_runner.SHOW_EVERY_SEC = 0.2
sys.exit(main())
"""


def test_what_was_played_before_an_interrupt_is_printed(tmp_path):
    arguments = ["openspiel:tic_tac_toe", "--opponent", "random", "--opponent", "random", "--games", "2000000"]
    line = [sys.executable, "-c", SHOWS_SOON, "eval", *arguments]
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as game:
        assert game.stderr is not None
        for said in game.stderr:
            if re.match(r"[1-9]\d* of 2000000 played", said):
                break
        game.send_signal(signal.SIGINT)
        out, err = game.communicate(timeout=PATIENCE_SEC)
    assert game.returncode == 130, err
    assert re.search(r"\d+ of 2,?000,?000 ", out), out
    assert out.startswith("each opening of up to 4 random plies is played from every seat")
    assert "The evaluation was interrupted." in err


def figures_of(replay: Replay) -> dict[str, list[float]]:
    """The game's own figures, of the replay played again; by name, [seats]."""
    game = turn_game(replay.config(NOTHING))()
    game.reset(replay.seed)
    for turn in replay.turns:
        game.apply(actions_of(turn))
    return {name: list(values) for name, values in game.figures().items()}


def test_figures_of_bots_are_those_of_their_games(tmp_path):
    done = evaluated(
        "ofc", "--opponent", "rule_based", "--opponent", "random", "--games", "3", "--json",
        "--replays", tmp_path, "--replay-player", "none", "--set", "seed=3",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    standings = {each["label"]: each for each in json.loads(done.stdout)["standings"]}
    replays = [read_replay(file) for file in tmp_path.glob("*.json")]
    assert len(replays) == 3
    played = [(replay.players, figures_of(replay)) for replay in replays]
    for label in ("rule_based", "random"):
        figures = standings[label]["figures"]
        for name in ("foul_rate", "royalties_per_hand", "fantasyland_entry", "score_per_hand"):
            means = [
                np.mean([own[name][seat] for seat, player in enumerate(players) if player == label])
                for players, own in played
            ]
            assert figures[name] == pytest.approx(np.mean(means))
        assert 0 <= figures["foul_rate"] <= 1
        assert 0 <= figures["fantasyland_entry"] <= 1
        rows = [figures[f"royalties_{row}"] for row in ("top", "middle", "bottom")]
        assert figures["royalties_per_hand"] == pytest.approx(sum(rows))
        assert min(rows) >= 0
    rule_based, random = (standings[label]["figures"] for label in ("rule_based", "random"))
    assert rule_based["foul_rate"] < random["foul_rate"]
    assert rule_based["score_per_hand"] + 2 * random["score_per_hand"] == pytest.approx(0), "random has two seats"
    assert standings["rule_based"]["mean_score"] + 2 * standings["random"]["mean_score"] == pytest.approx(0)


def test_games_without_chance_begin_with_drawn_plies():
    line = ["openspiel", "--opponent", "random", "--opponent", "random", "--games", "40", "--workers", "2", "--json"]
    found = json.loads(evaluated(*line).stdout)
    (pair,) = found["pairs"]
    assert found["openings"] == 4
    assert pair["distinct_games"] > 20
    assert 20 <= pair["effective_games"] <= 40


@pytest.mark.slow  # .ci/long runs it; who is searched, tests/unit/env_worker/search/test_determinized_source.py
def test_a_policy_without_a_memory_searches_drawn_worlds_and_one_with_a_memory_is_refused(tmp_path):
    pytest.importorskip("pyspiel", reason="the extra [openspiel] is not installed")
    leduc, folders = ["game: openspiel", "openspiel: {name: leduc_poker}"], {}
    spec = game_spec(load_game("openspiel:leduc_poker"))
    for memory in (False, True):
        network = NetworkConfig("mlp_lstm", {"hidden": 16, "memory": memory})
        folders[memory] = tmp_path / f"memory-{memory}"
        folders[memory].mkdir()
        text = "\n".join([*leduc, f"network: {json.dumps(msgspec.to_builtins(network))}"])
        (folders[memory] / "config.yaml").write_text(text)
        write_checkpoint(folders[memory] / "checkpoints" / "000000003", spec, 3, network)
    searches = f"{folders[False]}#worlds=8"
    done = evaluated("--checkpoint", searches, "--checkpoint", folders[False], "--games", "40", "--json")
    assert done.returncode == 0, done.stderr
    assert [each["label"] for each in json.loads(done.stdout)["standings"]] == [
        "memory-False@3#worlds=8", "memory-False@3"
    ]  # fmt: skip
    done = evaluated("--checkpoint", searches, "--checkpoint", f"{folders[True]}#worlds=8", "--games", "4")
    assert done.returncode == 2
    assert "memory-True@3#worlds=8 has a memory (LSTM or GRU), and positions of drawn worlds" in done.stderr
    lines = "hint\nresign\n"
    line = [sys.executable, "-m", "simul.launch.cli", "play", "--checkpoint", folders[False], "--seed", "5"]
    played = subprocess.run(line, cwd=ROOT, input=lines, capture_output=True, text=True, timeout=2 * PATIENCE_SEC)
    assert played.returncode == 0, played.stderr
    hint = played.stdout.partition("seat 0> hint\n")[2].partition("seat 0> ")[0]
    assert re.search(r"^ +[+-]\d+\.\d\d \[", hint, re.MULTILINE), "points, not shares"


@pytest.mark.slow  # .ci/long runs it
def test_a_ladder_of_levels_is_one_table_as_the_documentation_says(tmp_path):
    page = (ROOT / "docs" / "blokus.md").read_text()
    ((needed, written),) = re.findall(r'^ENGINE="/opt/pentobi-gtp (.+)"\nsimul eval (.+ --elo .+)$', page, re.MULTILINE)
    engine = f"{ENGINE} {needed}"
    words = shlex.split(written.replace("$ENGINE", engine).replace("--games 200", "--games 2"))
    assert words[:2] == ["--checkpoint", "runs/blokus"]
    line = ["blokus", "--opponent", "largest_piece", *words[2:], "--set", "blokus.best_first_strength=1", "--json"]
    done = evaluated(*line, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    engines = {f"{engine.partition('/bin/')[2]} {level}" for level in (1, 3, 5)}
    assert {each["label"] for each in result["ratings"]} == {"largest_piece", "best_first", *engines}
    pairs = {frozenset((pair["first"], pair["second"])) for pair in result["pairs"] if pair["battles"] == 2}
    bots = ("largest_piece", "best_first")
    assert pairs == {frozenset(bots), *(frozenset((bot, engine)) for bot in bots for engine in engines)}
    kept = (tmp_path / "ladder.json").read_text()
    assert evaluated(*line, folder=tmp_path).stdout == done.stdout
    assert (tmp_path / "ladder.json").read_text() == kept, "nothing was played again"


@pytest.mark.slow  # .ci/long runs it; every fault of an engine, tests/unit/env_worker/games/blokus/test_gtp.py
def test_an_engine_that_dies_is_named_with_what_it_did():
    done = evaluated("blokus", "--opponent", "random", "--gtp", f"{ENGINE} --fault dies", "--games", "2", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["pairs"][0]["battles"] == 0
    assert re.search("ended with exit code 3 at `genmove [bw]`; run it by hand to see why", done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["blokus", "--opponent", "random", "--gtp", "/nowhere/engine -x"], "There is no program '/nowhere/engine'"),
        (["ofc", "--opponent", "random", "--gtp", "engine"], "there is no opponent 'gtp'"),
        (["blokus", "--opponent", "random", "--gtp", "a", "--gtp", "b"], "one after the other: add --elo FILE"),
    ],
)
def test_engines_that_cannot_be_started_are_a_sentence(arguments, says, capfd):
    assert cli.main(["eval", *arguments]) == 2
    assert says in capfd.readouterr().err
