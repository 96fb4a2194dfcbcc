"""The recipes of README.md and docs/ are run as they are printed, one after the other, in one folder.

A wrapper in front of `simul` shortens what would take long: runs, evaluations and servers end by themselves.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from simul.common.config.loader import load_config
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import read_json
from simul.common.runtime.installation import ROOT, import_path
from simul.launch.monitoring.accounting import imbalances
from tests.support.documented import PAGES, commands, recipes, runnable_blocks

README, RECIPES = ROOT / "README.md", ROOT / "docs" / "recipes.md"
ELSEWHERE = {  # begin of a command -> the test that runs it: it needs a partner, a terminal of its own, or minutes
    "simul status": "tests/integration/test_supervisor.py",
    "simul down": "tests/integration/test_supervisor.py",
    "simul page": "tests/integration/test_page.py",  # until Ctrl-C
    "simul play": "tests/integration/pokemon/test_play_command.py",
    "simul showdown": "tests/integration/pokemon/test_local_server.py",
    "simul watch": "tests/integration/turn_games/test_table.py",
    "simul serve": "tests/integration/test_serve.py",
    "simul connect": "tests/integration/test_connect.py",
    "simul loadtest": "tests/integration/test_loadtest.py",
    "simul policies": "tests/integration/test_control.py",
    "simul league": "tests/integration/turn_games/test_league.py",  # of a run with past selves: 250,000 decisions
    "simul profile": "tests/integration/test_profile.py",  # of a run that is active
}
PLACEHOLDER = re.compile(r"\b(CONFIG|DIR|CHECKPOINT_OR_RUN|BUCKET|RUN|FILE)\b")
WRAPPER = """#!/bin/sh
case "$1" in
up)
    case " $* " in
    *" blokus --mode test "*) set -- "$@" --plain ;;
    *) set -- "$@" --plain --stop-after-decisions 6000 ;;
    esac
    ;;
eval) set -- "$@" --battles 4 ;;
sweep) set -- "$@" --trials 2 --stop-after-decisions 6000 ;;
zoo) case "$2" in export) set -- "$@" --games 4 ;; esac ;;
logs)  # the lines so far: tests/integration/test_logs.py follows them until Ctrl-C
    for word; do
        shift
        case "$word" in --follow) ;; *) set -- "$@" "$word" ;; esac
    done
    ;;
esac
exec {python} -m simul.launch.cli "$@"
"""


def documented_space() -> str:
    """The space of settings that docs/recipes.md shows under the sweep."""
    (space,) = re.findall(r"^```yaml\n(# space\.yaml: .*?)^```", RECIPES.read_text(), re.MULTILINE | re.DOTALL)
    return space


def _run(folder: Path, script: str) -> None:
    env = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": import_path(),
    }
    done = subprocess.run(["bash", "-euc", script], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{script}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder without a checkout, with `simul` in front of the PATH."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "simul").write_text(WRAPPER.format(python=sys.executable))
    (tmp_path / "bin" / "simul").chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(("page", "fewest"), [(README, 8), (RECIPES, 30)])
def test_every_recipe_is_run_here_or_by_a_test_that_exists(page: Path, fewest: int) -> None:
    assert len(recipes(page)) >= fewest
    for begin, test in ELSEWHERE.items():
        words = begin.removeprefix("simul ")
        assert re.search(rf"\b{words}\b", (ROOT / test).read_text()), (begin, test)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("page", [README, RECIPES], ids=lambda page: page.name)
def test_recipes_run(page: Path, folder: Path) -> None:
    for run in ("a", "b"):  # what the reader of a comparison has
        _run(folder, f"simul up pokemon --mode test --run-dir runs/{run}")
    _run(folder, "simul up cartpole --run-dir runs/mine")  # and who gives a policy away
    (folder / "space.yaml").write_text(documented_space())
    for command in recipes(page):
        if not command.startswith(tuple(ELSEWHERE)) and not PLACEHOLDER.search(command):
            _run(folder, command)


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_marked_blocks_run(folder: Path) -> None:
    blocks = [block for page in PAGES for block in runnable_blocks(page)]
    assert len(blocks) >= 6
    for block in blocks:
        _run(folder, block)


def _processor_sec() -> float:
    """Of all child processes that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow  # 30 s of processor time
@pytest.mark.timeout(1000)
def test_the_test_mode_of_blokus_ends_by_itself_within_two_minutes(folder: Path) -> None:
    """Processor time is what is limited: the time on the clock depends on what else the machine does."""
    (command,) = (
        line for line in commands(ROOT / "docs" / "blokus.md") if line.startswith("simul up blokus --mode test")
    )
    before = _processor_sec()
    _run(folder, f"timeout -s INT 900 {command}")
    assert 5 < _processor_sec() - before < 120
    run = RunDir(folder / "runs" / "blokus-test")
    end = load_config(run.root / "config.yaml").stop_after_decisions
    assert end == 2000
    summary = read_json(run, "summary.json")
    assert end <= summary["decisions"] < 2 * end
    assert summary["policy_version"] >= 2
    assert imbalances(summary) == []
