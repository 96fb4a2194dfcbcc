"""The accelerated simulator says exactly what the plain one says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from simul.env_worker.games.pokemon.formats.teams import read_teams
from simul.env_worker.games.pokemon.install.folder import HOST_FOLDER
from simul.env_worker.games.pokemon.install.node import find_node
from tests.support.pokemon.recorded import TEAMS
from tests.support.pokemon.wild_teams import wild_team

RANDOM = [*(f"gen{gen}randombattle" for gen in range(1, 10)), "gen9randomdoublesbattle"]
FILES = {"gen9ou": "gen9ou", "gen9bssregi": "gen9bssregi", "gen9vgc2025regi": "gen9bssregi"}
WILD = [*(f"gen{gen}customgame" for gen in range(1, 10)), "gen9doublescustomgame"]


def differential(*arguments):
    command = [find_node().path, HOST_FOLDER / "measure" / "differential.mjs", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def write_teams(folder: Path, wild: int) -> Path:
    """Teams of the formats that draw none: those of the team files, and `wild` of any kind of Pokemon."""
    teams = {name: [text.text for text in read_teams(str(TEAMS / f"{file}.txt"))] for name, file in FILES.items()}
    teams |= {name: [wild_team(int(name[3]), (name, number)) for number in range(wild)] for name in WILD}
    path = folder / "teams.json"
    path.write_text(json.dumps(teams))
    return path


@pytest.mark.slow  # .ci/long runs it
def test_same_seeds_and_choices_give_the_same_log_and_requests(tmp_path):
    """In random battles, and where effects change in the middle of one: with abilities, items and moves at will."""
    counts = {name: 8 for name in RANDOM} | {name: 2 for name in FILES} | {name: 1 for name in WILD}
    formats = ",".join(f"{name}:{count}" for name, count in counts.items())
    done = differential("--formats", formats, "--teams", str(write_teams(tmp_path, wild=2)))
    told = [f"{name}: {count} of {count} battles identical" for name, count in counts.items()]
    assert done.stdout.splitlines() == told, done.stderr
    assert done.returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(9000)
def test_same_seeds_and_choices_give_the_same_log_and_requests_long(tmp_path):
    given = ",".join(f"{name}:200" for name in (*FILES, *WILD))
    formats = ",".join((*RANDOM, given))
    teams = str(write_teams(tmp_path, wild=400))
    done = differential("--battles", "2000", "--first", "10000", "--formats", formats, "--teams", teams)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_comparison_notices_a_difference():
    done = differential("--battles", "8", "--formats", "gen9randombattle", "--spoil")
    assert done.returncode == 1
    assert "differs" in done.stdout


def test_another_version_runs_plain_and_says_so(tmp_path):
    accelerate = HOST_FOLDER / "simulate" / "accelerate" / "accelerate.mjs"
    sources = HOST_FOLDER / "node_modules" / "pokemon-showdown" / "dist" / "sim"
    touched = re.search(r"TOUCHED_FILES = \[(.*?)\]", accelerate.read_text(), re.S)
    assert touched is not None
    for name in re.findall(r"'([\w.-]+)'", touched[1]):
        shutil.copy(sources / name, tmp_path / name)
    with (tmp_path / "battle.js").open("a") as file:
        file.write("// changed\n")
    program = f"import {{ accelerate }} from {json.dumps(accelerate.as_uri())};"
    program += f"console.log(JSON.stringify(accelerate({{}}, {json.dumps(str(tmp_path))})))"
    done = subprocess.run(
        [find_node().path, "--input-type=module", "--eval", program], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {
        "accelerated": False,
        "note": "this simulator is not the version that the acceleration is made for",
    }
