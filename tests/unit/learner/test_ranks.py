"""Ranks of a learner make the step that one process would make; how they divide a batch."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from simul.common.runtime.installation import ROOT
from simul.learner.algorithms import ALGORITHMS
from simul.learner.ranks import ALONE, split_steps
from simul.learner.training.sample_trainer import split_columns
from tests.support.rank_process import RANKS, SAMPLES, learn, learn_samples

LIMIT_SEC = 280.0


@pytest.fixture(scope="module")
def learned_by_ranks(tmp_path_factory):
    """By (rank, algorithm): weights and figures of real ranks, in processes of their own."""
    folder = tmp_path_factory.mktemp("ranks")
    line = [sys.executable, "-m", "tests.support.rank_process"]
    of_a_cluster = {"GLOO_SOCKET_IFNAME": "ib7"}  # the interface to other machines
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **of_a_cluster}
    ranks = [
        subprocess.Popen([*line, str(rank), str(folder)], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
        for rank in range(RANKS)
    ]
    try:
        ended = [rank.communicate(timeout=LIMIT_SEC)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert [rank.returncode for rank in ranks] == [0] * RANKS, ended
    names = (*ALGORITHMS, *(f"alphazero{rows}" for rows in SAMPLES))
    return {(rank, name): load_file(folder / f"{rank}-{name}.safetensors") for rank in range(RANKS) for name in names}


@pytest.mark.slow  # .ci/long runs it
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_two_ranks_learn_what_one_process_learns_from_all_their_unrolls(learned_by_ranks, algorithm):
    """float64, 5 updates of unequal unrolls; in some one rank has one step, or nothing."""
    expected = learn(algorithm)
    torch.testing.assert_close(learned_by_ranks[0, algorithm], expected, rtol=0, atol=1e-10)
    weights = [{n: v for n, v in learned_by_ranks[r, algorithm].items() if "figure" not in n} for r in range(RANKS)]
    torch.testing.assert_close(weights[1], weights[0], rtol=0, atol=0)
    assert {name for name in expected if "figure" in name} >= {"figure explained_variance", "figure gradient_norm"}


@pytest.mark.slow  # .ci/long runs it
@pytest.mark.parametrize("rows", SAMPLES)
def test_the_gradient_of_dealt_samples_is_that_of_all_of_them(learned_by_ranks, rows):
    expected = learn_samples(rows)
    for rank in range(RANKS):
        torch.testing.assert_close(learned_by_ranks[rank, f"alphazero{rows}"], expected, rtol=1e-5, atol=1e-6)


@given(st.lists(st.integers(0, 500), min_size=1, max_size=8), st.integers(1, 1000))
def test_a_batch_is_divided_as_equally_as_what_waits_allows(waiting, steps):
    taken = split_steps(waiting, steps)
    assert sum(taken) == min(steps, sum(waiting))
    assert all(0 <= part <= has for part, has in zip(taken, waiting))
    limited = [part for part, has in zip(taken, waiting) if part == has]
    others = [part for part, has in zip(taken, waiting) if part < has]
    assert max(others, default=0) - min(others, default=0) <= 1
    assert all(part <= min(others, default=part) + 1 for part in limited)


def test_samples_are_divided_with_their_targets():
    count = np.array([2, 0, 3, 1, 0])
    columns = {
        "outcome": np.arange(5.0), "target_count": count, "target_action": np.arange(6),
        "target_probability": np.arange(6) / 10, "mask": np.arange(10).reshape(5, 2),
    }  # fmt: skip
    for ranks in (1, 2, 3, 7):
        parts = split_columns(columns, ranks)
        assert len(parts) == ranks
        for name, column in columns.items():
            assert np.array_equal(np.concatenate([part[name] for part in parts]), column)
        for part in parts:
            assert part["target_count"].sum() == len(part["target_action"]) == len(part["target_probability"])
        sizes = [len(part["outcome"]) for part in parts]
        assert all(one >= other for one, other in pairwise(sizes))


def test_a_learner_alone_neither_sends_nor_copies():
    tensor, arrays = torch.ones(3), {"x": np.ones(2)}
    assert ALONE.add(tensor) is tensor
    assert ALONE.deal_arrays([arrays])["x"] is arrays["x"]
    assert ALONE.gather_arrays(arrays)[0]["x"] is arrays["x"]
    assert ALONE.gather_numbers([4, 5]) == [[4, 5]]
    assert ALONE.broadcast_bytes(b"weights") == b"weights"
