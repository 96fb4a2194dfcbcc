"""The trainer of searched positions: how often each sample is drawn, what an update reports, and what it skips."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from simul.common.config.schema import LearnerConfig, NetworkConfig
from simul.common.nets.build import build_network
from simul.common.protocol.specs import GameSpec
from simul.learner.algorithms import Settings
from simul.learner.build import ending_note
from simul.learner.io.samples import ReceivedSamples
from simul.learner.replay.buffer import ReplayBuffer
from simul.learner.replay.experience_replay import ExperienceReplay
from simul.learner.replay.files import ReplayFiles
from simul.learner.replay.sample_layout import SampleLayout
from simul.learner.replay.schedule import ReplayWindow, UseSchedule
from simul.learner.training.sample_trainer import SampleTrainer, SampleUpdater
from tests.support.samples import SampleDraw

SPEC = GameSpec("test", observation_size=6, num_actions=9)
NETWORK = NetworkConfig("mlp_lstm", {"hidden": 16, "memory": False})


class QueuedSamples:
    """See `SampleQueue`: a message a call, as long as there are any."""

    def __init__(self, messages: list[ReceivedSamples]) -> None:
        self._messages = messages
        self.waiting_rows = 0
        self.duplicates = 0

    def take_all(self, timeout_sec: float) -> list[ReceivedSamples]:
        return [self._messages.pop(0)] if self._messages else []

    def mark_dropped(self, items: list[ReceivedSamples], cause: str) -> None:
        assert cause == "duplicate"
        self.duplicates += sum(samples.length for samples in items)

    def __bool__(self) -> bool:
        return bool(self._messages)


def messages(count: int, rows: int) -> list[ReceivedSamples]:
    draw = SampleDraw(SPEC)
    return [ReceivedSamples(number, draw.columns(rows, version=number)) for number in range(count)]


def trainer_of(folder: Path, receiver: QueuedSamples, **updater) -> SampleTrainer:
    layout = SampleLayout(SPEC)
    replay = ExperienceReplay(
        ReplayBuffer(layout, 10**6, 10), ReplayFiles(folder / "replay", layout, 10**7), ReplayWindow(10**6, 0.75, 0.4)
    )
    network = build_network(NETWORK, SPEC, seed=1)
    settings = {"num_actions": 9, "minibatches": 2, "max_gradient_norm": 1.0, "weight_decay": 0.0} | updater
    schedule = UseSchedule(4.0, 64, min_samples=10)
    return SampleTrainer(SampleUpdater(network, **settings), receiver, replay, schedule)  # type: ignore[arg-type]


def test_an_update_reports_the_age_of_its_samples_and_counts_each_sample_once(tmp_path: Path) -> None:
    receiver = QueuedSamples(messages(3, rows=20))
    trainer = trainer_of(tmp_path, receiver, weight_decay=0.5)
    assert trainer.updater.optimizer.param_groups[0]["weight_decay"] == 0.5
    decisions, losses = 0, []
    while receiver or not trainer.waits_for_data:
        if (numbers := trainer.pull(0.0, version=10)) is None:
            continue
        trained = trainer.train(numbers, 10, 1e-2, Settings())
        assert set(trained.lag.tolist()) <= {8, 9, 10}
        assert trained.lag.size == 64
        assert trained.largest_reward <= 1
        assert trained.result.learned.all()
        decisions += trained.decisions
        losses.append(trained.result.figures["policy_loss"])
    assert decisions == 60
    assert trainer.waiting_steps == 0
    assert len(losses) == 3
    assert trainer.figures()["uses"] == 3 * 64 / 60


def test_a_message_that_came_before_is_a_duplicate(tmp_path: Path) -> None:
    (message,) = messages(1, rows=5)
    receiver = QueuedSamples([message, message])
    trainer = trainer_of(tmp_path, receiver)
    for _ in range(2):
        assert trainer.pull(0.0, version=0) is None
    assert (receiver.duplicates, trainer.waiting_steps, trainer.figures()["total"]) == (5, 5, 5)


def test_a_gradient_that_is_not_finite_makes_no_step_and_its_samples_stay_unlearned(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, QueuedSamples(messages(1, rows=40)))
    network = trainer.updater.network
    next(network.parameters()).data.fill_(torch.inf)
    before = [parameter.clone() for parameter in network.parameters()]
    numbers = trainer.pull(0.0, version=0)
    trained = trainer.train(numbers, 0, 1e-2, Settings())
    assert (trained.result.skipped, trainer.updater.skipped_in_a_row) == (2, 2)
    assert "gradients are not finite" in trained.result.cause
    assert (trained.decisions, trained.lag.size, trained.result.learned.any()) == (0, 0, False)
    assert trainer.waiting_steps == 40
    assert all(torch.equal(*pair) for pair in zip(network.parameters(), before))


@pytest.mark.parametrize("shared", [True, False])
def test_how_a_game_ends_is_learned_only_where_it_is_asked_for_and_said_where_it_cannot_be(shared) -> None:
    spec = GameSpec(
        "board", 9, 9, "uint8", observation_shape=(1, 3, 3), observation_axes="CHW", ending_planes=1, ending_numbers=2
    )
    options = {"channels": 4, "blocks": 1, "hidden": 8}
    network = build_network(NetworkConfig("board_resnet", options, shared=shared), spec)
    predicts = (network if shared else network.policy).ending_planes.weight
    updater = SampleUpdater(network, num_actions=9, minibatches=1, max_gradient_norm=1.0, weight_decay=0.0)
    columns, asked = SampleDraw(spec).columns(30), Settings(ending_coefficient=1.0)
    columns["ending"][:] = 255
    before = predicts.clone()
    assert "ending_loss" not in updater.update([columns], 1e-2, Settings())[0].figures
    assert torch.equal(before, predicts)
    first, *_, last = [updater.update([columns], 1e-2, asked)[0].figures["ending_loss"] for _ in range(40)]
    assert last < first / 2
    wants, silent = LearnerConfig(ending_coefficient=1.0), GameSpec("silent", 9, 9)
    other = build_network(NetworkConfig("mlp_lstm", {"memory": False}), silent)
    assert ending_note(wants, spec, network) == ending_note(LearnerConfig(), silent, other) == ""
    assert "the game silent does not tell it" in ending_note(wants, silent, other)
    assert "the network has no part that does" in ending_note(wants, spec, other)
