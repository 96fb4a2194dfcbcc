"""The shipped policies are as strong as their cards say, and fit the games of today."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from simul.common.checkpoints.meta import CONFIG_FILE, WEIGHTS_FILE, file_hash, read_meta
from simul.common.checkpoints.zoo import CARD, RESULTS, ZOO, zoo_names
from simul.common.config.games import game_called
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.launch.supervisor.checkpoint_files import config_of, find_fault
from simul.launch.zoo.card import card_facts

MOST_BYTES = 4 << 20  # of weights
GAMES = 200
SLACK = 0.08  # below the lower end of the card's interval, for 200 games instead of 3,000


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "simul.launch.cli", *arguments]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)


@pytest.mark.parametrize("name", zoo_names())
def test_an_entry_is_whole_small_and_described(name):
    folder = ZOO / name
    assert find_fault(folder) == ""
    assert (folder / WEIGHTS_FILE).stat().st_size <= MOST_BYTES
    assert f"zoo:{name}" in (folder / CARD).read_text()
    assert read_meta(folder).files.keys() <= {WEIGHTS_FILE, CONFIG_FILE}


@pytest.mark.parametrize("name", ["pokemon", "pokemon_doubles"])
def test_pokemon_is_observed_as_the_entry_has_learned_it(name):
    """The words of a field count, too: a change of any orphans every checkpoint of Pokemon."""
    config = config_of(ZOO / name, [])
    assert pokemon_spec(config.pokemon).fingerprint() == read_meta(ZOO / name).spec.fingerprint()


@pytest.mark.parametrize("name", zoo_names())
def test_a_card_states_licence_and_origin(name):
    """Of the weights, and of what went into them: the game's code and data, each with its licence."""
    facts = dict(re.findall(r"^- (\w[\w ]*): (.+)$", (ZOO / name / CARD).read_text(), re.MULTILINE))
    assert "MIT" in facts["licence"]
    assert re.search(r"from (random weights|the weights of)", facts["origin"])
    assert re.search(r"; game: .+ \(MIT.*?\)", facts["origin"])
    game = game_called(config_of(ZOO / name, []).game)
    assert game.data in facts["origin"]


@pytest.mark.parametrize("name", zoo_names())
def test_a_card_names_the_very_file_and_the_commit_of_its_training(name):
    facts = card_facts((ZOO / name / CARD).read_text())
    assert facts["weights"] == f"SHA-256 {file_hash(ZOO / name / WEIGHTS_FILE)}"
    assert re.search(r"torch \S+, commit [0-9a-f]{12}", facts["made with"])


@pytest.mark.slow  # .ci/long runs it
@pytest.mark.parametrize("name", zoo_names())
def test_an_entry_plays_as_its_card_says(name):
    """A change of the encoder orphans entries: train again (`make bench-strength`), then `simul zoo export`."""
    results = json.loads((ZOO / name / RESULTS).read_text())
    config = config_of(ZOO / name, [])
    if "" in results:
        done = run("eval", "--checkpoint", f"zoo:{name}", "--games", "50", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["mean_return"] >= 0.9 * results[""]["mean_return"]
        return
    strongest = min(results, key=lambda opponent: results[opponent]["win_rate"])
    line = ["--opponent", strongest, "--games", str(GAMES), "--set", f"seed={config.seed}"]
    done = run("eval", "--checkpoint", f"zoo:{name}", *line, "--json")
    assert done.returncode == 0, f"train again with make bench-strength, then simul zoo export: {done.stderr}"
    assert json.loads(done.stdout)["win_rate"] >= results[strongest]["wilson_95"][0] - SLACK


@pytest.mark.slow  # a server and games
def test_an_exported_entry_is_a_checkpoint_also_from_a_store(tmp_path):
    folder = tmp_path / "pole"
    done = run("zoo", "export", "zoo:cartpole", str(folder), "--licence", "MIT", "--games", "5")
    assert done.returncode == 0, done.stderr
    assert "| 500.000 | [500.000, 500.000] | 5 |" in (folder / CARD).read_text()
    assert run("zoo", "show", str(folder)).stdout.startswith("# pole\n")
    done = run("eval", "--checkpoint", f"file://{folder}", "--games", "2", "--json")
    assert json.loads(done.stdout)["mean_return"] == 500.0
