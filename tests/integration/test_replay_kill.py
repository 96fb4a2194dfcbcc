"""A learner killed while it writes samples leaves files whose records are all whole, in order, from the first on."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from simul.common.protocol.specs import GameSpec
from simul.common.runtime.installation import ROOT
from simul.learner.io.samples import ReceivedSamples
from simul.learner.replay.files import ReplayFiles
from simul.learner.replay.sample_layout import SampleLayout
from tests.support.samples import SampleDraw
from tests.support.waiting import PATIENCE_SEC

SPEC = GameSpec("test", observation_size=300, num_actions=2000)
ROWS = 40
WRITER = """
import sys
from pathlib import Path
from tests.integration.test_replay_kill import ReplayFiles, SampleLayout, SPEC, stream
folder, life = Path(sys.argv[1]), int(sys.argv[2])
files = ReplayFiles(folder, SampleLayout(SPEC), 10**9)
first = sum(samples.length for _, samples in files.load([]))
for samples in stream(life):
    assert not files.append(first, samples)
    first += samples.length
"""


def stream(life: int):
    """The endless samples of one life; batches are numbered life * 10**6 + 0, 1, 2, ..."""
    draw = SampleDraw(SPEC, seed=life, most_actions=200)
    columns = [draw.columns(ROWS, version=i) for i in range(5)]
    number = life * 10**6
    while True:
        yield ReceivedSamples(number, columns[number % 5])
        number += 1


@pytest.mark.slow
def test_what_a_killed_learner_wrote_is_a_prefix_of_what_it_received(tmp_path: Path) -> None:
    folder, written = tmp_path / "replay", 0
    for life in range(3):
        line = [sys.executable, "-c", WRITER, str(folder), str(life)]
        process = subprocess.Popen(line, cwd=ROOT, stderr=subprocess.PIPE)
        deadline = time.monotonic() + PATIENCE_SEC
        while not folder.exists() or sum(path.stat().st_size for path in folder.iterdir()) < written + 1_000_000:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(random.Random(life).random() * 0.05)
        process.kill()
        process.communicate()
        written = sum(path.stat().st_size for path in folder.iterdir())
    notes: list[str] = []
    records = list(ReplayFiles(folder, SampleLayout(SPEC), 10**9).load(notes))
    assert [first for first, _ in records] == list(range(0, ROWS * len(records), ROWS))
    lives = [[samples for _, samples in records if samples.batch // 10**6 == life] for life in range(3)]
    assert all(lives)
    for life, found in enumerate(lives):
        for samples, wanted in zip(found, stream(life)):
            assert samples.batch == wanted.batch
            assert all(np.array_equal(samples.columns[name], wanted.columns[name]) for name in wanted.columns)
