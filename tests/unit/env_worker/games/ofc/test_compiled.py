"""The cache of compiled functions: kept, and void where any file of the folder has changed."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path

from simul.env_worker.games.ofc import compiled as module
from simul.env_worker.games.ofc.compiled import sources_digest
from simul.env_worker.games.ofc.evaluator import row_value
from simul.env_worker.games.ofc.heuristic import estimate

FOLDER = Path(inspect.getfile(module)).parent


def test_any_change_of_the_folder_changes_the_digest(tmp_path):
    for file in FOLDER.glob("*.py"):
        shutil.copy(file, tmp_path)
    before = sources_digest(tmp_path)
    assert before == sources_digest(FOLDER)
    text = (tmp_path / "evaluator.py").read_text()
    (tmp_path / "evaluator.py").write_text(text.replace("FOUL = 6", "FOUL = 7"))
    assert sources_digest(tmp_path) != before


def test_functions_of_different_files_are_cached_under_one_state_of_the_folder():
    for function in (row_value, estimate):
        assert function._cache._cache_file._source_stamp == sources_digest(FOLDER)
