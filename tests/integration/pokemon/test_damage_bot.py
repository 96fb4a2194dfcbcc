"""The damage bot in real battles, against poke-env's players."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.matchups import Contestant, Pairing
from simul.common.runtime.installation import ROOT
from tests.support.battles import make_source, seated

TEAMS = str(ROOT / "tests" / "golden" / "pokemon" / "teams")


def play(battle_format: str, foe: str, battles: int, teams: str = "") -> dict:
    pairing = Pairing(Contestant("damage", bot="damage"), Contestant(foe, bot=foe), battles)
    config = PokemonConfig(format=battle_format, teams=teams)
    table, metrics = seated(make_source(config, seed=7, episodes=battles, pairings=[pairing]))
    assert table.decisions == 0
    return metrics


@pytest.mark.slow  # .ci/long runs it; what the bot chooses stands in test_bot_choices.py
def test_it_clearly_beats_the_greatest_base_power_and_eval_shows_it_without_a_checkpoint():
    arguments = ("eval", "--opponent=damage", "--opponent=max", "--battles=20", "--json")
    line = [sys.executable, "-m", "simul.launch.cli", *arguments]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    matrix = msgspec.json.decode(done.stdout)
    assert [each["opponent"] for each in matrix["contestants"]] == ["damage", "max_base_power"]
    (pair,) = matrix["pairs"]
    assert pair["battles"] == 20
    assert pair["wins"] > 10  # 92% over hundreds


@pytest.mark.parametrize(
    ("battle_format", "teams"),
    [
        ("gen1randombattle", ""),
        ("gen9randombattle", ""),
        ("gen9randomdoublesbattle", ""),
        ("gen9bssregi", f"{TEAMS}/gen9bssregi.txt"),
    ],
)
def test_it_plays_every_kind_of_format_and_answers_nothing_illegal(battle_format, teams):
    metrics = play(battle_format, "damage", 3, teams)
    assert metrics["episodes"]["finished"] == 3
    assert metrics["episodes"]["truncated"] == metrics["scripted"]["invalid"] == metrics["scripted"]["defaults"] == 0
    assert metrics["scripted"]["decisions"] > 30
    assert metrics["parse_errors"] == {}
