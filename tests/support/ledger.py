"""Reads the books of players that were killed: what they sent, what they heard, and whether it was meant for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from simul.common.nets.build import build_network
from tests.support.player import ANSWERED, ENTRY, FAILED, SENT, STEPS, observe
from tests.support.stand import Stand

Row = tuple[int, int, int]  # env, episode, step


@dataclass
class Book:
    """One player's life. `answered` holds the value of every answer."""

    run_id: int
    sent: Counter[Row]
    answered: dict[Row, float]
    failed: int

    @classmethod
    def read(cls, path: Path, run_id: int) -> Book:
        """Fails where a row was answered twice, or never sent."""
        written = path.read_bytes() if path.exists() else b""  # killed before the first page
        entries = np.frombuffer(written[: len(written) // ENTRY.itemsize * ENTRY.itemsize], ENTRY)  # killed in a write
        rows = [(int(e["env"]), int(e["episode"]), int(e["step"])) for e in entries]
        sent = Counter(row for row, kind in zip(rows, entries["kind"]) if kind == SENT)
        heard = [(row, float(e["value"])) for row, e in zip(rows, entries) if e["kind"] == ANSWERED]
        assert len(dict(heard)) == len(heard)
        assert sent.keys() >= dict(heard).keys()
        assert set(sent.values()) <= {1}
        return cls(run_id, sent, dict(heard), int((entries["kind"] == FAILED).sum()))

    @property
    def lost(self) -> int:
        """Rows that were neither answered nor refused."""
        return len(self.sent) - len(self.answered) - self.failed


@torch.inference_mode()
def assert_own_answers(stand: Stand, books: list[Book]) -> None:
    """Every answer has the value of its own observations, seen one after the other by the network alone."""
    network = build_network(stand.config.network, stand.spec).eval()
    games = sorted({(book.run_id, *row[:2]) for book in books for row in book.answered})
    answered = {(book.run_id, *row): value for book in books for row, value in book.answered.items()}
    state = network.initial_state(len(games))
    legal = torch.ones(len(games), stand.spec.num_actions) > 0
    for step in range(STEPS):
        seen = np.stack([observe(*game, step, stand.spec.observation_size) for game in games])
        _, value, state = network(torch.from_numpy(seen), legal, state)
        wanted = [answered.get((*game, step), alone) for game, alone in zip(games, value.tolist())]
        assert np.allclose(wanted, value.numpy(), atol=1e-4)
