"""The shipped policies are as strong as their cards say, and fit the games of today."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.strength.publish import MOST_BYTES, RESULTS
from simul.common.config.checkpoint_meta import WEIGHTS_FILE, read_meta
from simul.common.config.zoo import CARD, ZOO, zoo_names
from simul.common.runtime.installation import ROOT
from simul.launch.supervisor.checkpoint_files import config_of, find_fault

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
    assert read_meta(folder).files.keys() == {WEIGHTS_FILE}


@pytest.mark.slow  # .ci/long runs it
@pytest.mark.parametrize("name", zoo_names())
def test_an_entry_plays_as_its_card_says(name):
    """A change of the encoder orphans entries: train again (`make bench-strength`), then publish."""
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
    assert done.returncode == 0, f"train again with make bench-strength, then publish: {done.stderr}"
    assert json.loads(done.stdout)["win_rate"] >= results[strongest]["wilson_95"][0] - SLACK
