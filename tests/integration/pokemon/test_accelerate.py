"""The accelerated simulator says exactly what the plain one says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from env_worker.games.pokemon.host import HOST_SCRIPT
from env_worker.games.pokemon.node import find_node

FORMATS = [*(f"gen{gen}randombattle" for gen in range(1, 10)), "gen9randomdoublesbattle"]


def differential(*arguments):
    command = [find_node().path, HOST_SCRIPT.with_name("differential.mjs"), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_same_seeds_and_choices_give_the_same_log_and_requests():
    done = differential("--battles", "5", "--formats", ",".join(FORMATS[:-1]))
    assert done.stdout.splitlines() == [f"{name}: 5 of 5 battles identical" for name in FORMATS[:-1]], done.stderr
    assert done.returncode == 0


def test_doubles_are_the_same_too():
    done = differential("--battles", "20", "--formats", FORMATS[-1])
    assert done.stdout.splitlines() == [f"{FORMATS[-1]}: 20 of 20 battles identical"], done.stderr


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_same_seeds_and_choices_give_the_same_log_and_requests_long():
    done = differential("--battles", "2000", "--first", "10000")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_comparison_notices_a_difference():
    done = differential("--battles", "8", "--formats", "gen9randombattle", "--spoil")
    assert done.returncode == 1
    assert "differs" in done.stdout


def test_another_version_runs_plain_and_says_so(tmp_path):
    folder = HOST_SCRIPT.parent
    sources = folder / "node_modules" / "pokemon-showdown" / "dist" / "sim"
    touched = re.search(r"TOUCHED_FILES = \[(.*?)\]", (folder / "accelerate.mjs").read_text(), re.S)
    assert touched is not None
    for name in re.findall(r"'([\w.-]+)'", touched[1]):
        shutil.copy(sources / name, tmp_path / name)
    with (tmp_path / "battle.js").open("a") as file:
        file.write("// changed\n")
    program = f"import {{ accelerate }} from {json.dumps((folder / 'accelerate.mjs').as_uri())};"
    program += f"console.log(JSON.stringify(accelerate({{}}, {json.dumps(str(tmp_path))})))"
    done = subprocess.run(
        [find_node().path, "--input-type=module", "--eval", program], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {
        "accelerated": False,
        "note": "this simulator is not the version that the acceleration is made for",
    }
