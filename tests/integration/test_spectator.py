"""A watched game through real sockets: the network's own numbers, in a run whose actions stay the same."""

from __future__ import annotations

import logging
import os
import time
from typing import Any

import gymnasium
import pytest
import torch

from simul.common.errors import ConfigError
from simul.common.nets.build import build_network
from simul.common.nets.io import bytes_to_state
from simul.common.protocol.decisions import Action, Decision
from simul.common.protocol.messages import DECISION
from simul.common.role.lifecycle import StopFlag
from simul.common.role.run_directory import RunDir
from simul.common.role.spectating import (
    LEASE_SEC,
    TOO_LARGE,
    RequestReader,
    SpectatorRecord,
    SpectatorSubscription,
    request_path,
)
from simul.env_worker.games.gymnasium.source import GymnasiumSource
from simul.env_worker.spectator import Spectator
from simul.env_worker.worker import Worker
from tests.support.stand import Stand
from tests.support.waiting import wait_for
from tests.unit.env_worker.test_worker import ScriptedReporter

pytestmark = pytest.mark.usefixtures("patience")
EPISODES = 6
Key = tuple[int, int, int]  # env, episode, step


class Recorded(GymnasiumSource):
    """Keeps what was decided and done."""

    def __init__(self) -> None:
        super().__init__(lambda: gymnasium.make("CartPole-v1"), name="x", envs=2, seed=3, episodes=EPISODES)
        self.decisions: dict[Key, Decision] = {}
        self.actions: dict[Key, Action] = {}

    def poll(self) -> list[Decision]:
        decisions = super().poll()
        self.decisions |= {(each.env, each.episode, each.step): each for each in decisions if each.kind == DECISION}
        return decisions

    def act(self, actions: Any) -> None:
        self.actions |= {(each.env, each.episode, each.step): each for each in actions if each.action >= 0}
        super().act(actions)


def play(stand: Stand, name: str, spectator: bool) -> Recorded:
    source, client = Recorded(), stand.client(name)
    watching = Spectator(RequestReader(stand.run_dir, 0), source, client) if spectator else None
    log = logging.getLogger("test")
    Worker(source, client, ScriptedReporter(due=True), log, spectator=watching).run(StopFlag())  # type: ignore[arg-type]
    return source


@torch.inference_mode()
def test_values_are_those_of_a_direct_forward_and_nothing_is_evaluated_when_nobody_watches(monkeypatch) -> None:
    monkeypatch.setattr("simul.env_worker.spectator.DECISIONS_PER_SEC", 1e9)
    monkeypatch.setattr("simul.env_worker.spectator.MOST_SHARE", 1e9)
    monkeypatch.setattr("simul.common.role.spectating.QUEUE", 10_000)
    with Stand(Recorded().spec, deterministic=True) as stand:
        subscription = SpectatorSubscription(stand.run_dir, 0, 1)
        watched = play(stand, "a", True)
        records = subscription.records()
        subscription.close()
        evaluations = stand.server.metrics()["evaluations"]
        play(stand, "b", True)
        assert stand.server.metrics()["evaluations"] == evaluations, "evaluated without a request"
        network = build_network(stand.config.network, stand.spec)
        network.load_state_dict(bytes_to_state(stand.weights()))
        network.eval()
    decisions = [record for record in records if record.kind == "decision"]
    assert len(decisions) == sum(env == 1 for env, _, _ in watched.decisions) - 1, "all but what came before the look"
    assert [record.kind for record in records].count("terminated") == EPISODES / 2
    for record in decisions:
        state = network.initial_state(1)
        for step in range(record.step + 1):
            one = watched.decisions[1, record.episode, step]
            logits, value, state = network(
                torch.from_numpy(one.observation)[None], torch.from_numpy(one.mask)[None] > 0, state
            )
        assert record.value == pytest.approx(float(value), abs=1e-5)
        priors = torch.softmax(logits, dim=1)[0].numpy()
        assert dict(record.actions) == pytest.approx({str(i): float(p) for i, p in enumerate(priors)}, abs=2e-5)
        assert record.chosen == str(watched.actions[1, record.episode, record.step].action)
        assert record.observation == pytest.approx(one.observation.tolist(), abs=1e-4)


def test_a_watched_worker_draws_the_same_actions(monkeypatch) -> None:
    monkeypatch.setattr("simul.env_worker.spectator.DECISIONS_PER_SEC", 1e9)
    monkeypatch.setattr("simul.env_worker.spectator.MOST_SHARE", 1e9)
    played = []
    for watch in (True, False):
        with Stand(Recorded().spec, deterministic=True) as stand:
            subscription = SpectatorSubscription(stand.run_dir, 0, 0) if watch else None
            source = play(stand, "a", watch)
            played.append({key: each.action for key, each in source.actions.items()})
            if subscription is not None:
                assert subscription.records()
                subscription.close()
    assert played[0] == played[1]


@pytest.fixture
def run_dir(tmp_path) -> RunDir:
    run_dir = RunDir(tmp_path / "run")
    run_dir.create()
    return run_dir


def test_a_request_counts_while_it_is_renewed_and_the_last_one_of_a_worker(run_dir) -> None:
    reader, other = RequestReader(run_dir, 0), RequestReader(run_dir, 1)
    assert reader.read() is None
    first = SpectatorSubscription(run_dir, 0, 3)
    assert reader.read() == first.request
    assert other.read() is None
    old = time.time() - LEASE_SEC - 1.0
    os.utime(request_path(run_dir, 0), (old, old))
    assert reader.read() is None
    assert first.renew()
    assert reader.read() == first.request
    second = SpectatorSubscription(run_dir, 0, 4, 1)
    assert not first.renew()
    first.close()
    assert reader.read() == second.request
    second.close()
    assert reader.read() is None
    assert list(run_dir.sockets.iterdir()) == []


def test_records_are_dropped_while_nobody_reads(run_dir) -> None:
    subscription = SpectatorSubscription(run_dir, 0, 0)
    sender = RequestReader(run_dir, 0).connect(subscription.request)
    for step in range(1000):
        sender.send(SpectatorRecord("decision", step=step, observation=[0.5] * 1000))
    time.sleep(0.3)
    assert 0 < len(subscription.records()) < 1000
    sender.close()
    subscription.close()


def test_texts_and_sizes_that_cannot_be_sent_do_not_stop_the_worker(run_dir) -> None:
    subscription = SpectatorSubscription(run_dir, 0, 0)
    sender = RequestReader(run_dir, 0).connect(subscription.request)
    sender.send(SpectatorRecord("decision", step=0, text="\ud800\x1b<b>", actions=[("\udfff", 0.5)]))
    sender.send(SpectatorRecord("decision", step=1, value=0.5, battle="\u4e00" * 400_000))
    records: list[SpectatorRecord] = []
    wait_for(lambda: records.extend(subscription.records()) or len(records) == 2)
    assert (records[0].text, records[0].actions) == ("?\x1b<b>", [("?", 0.5)])
    assert (records[1].value, records[1].battle, records[1].said) == (0.5, "", TOO_LARGE)
    sender.close()
    subscription.close()


@pytest.mark.parametrize(
    "text", [b"", b"{", b'{"id":"../../x","env":0,"seat":0}', b'{"id":"0123abcd","env":-1,"seat":0}', b"[]" * 1000]
)
def test_a_request_that_is_none_is_not_read(run_dir, text) -> None:
    request_path(run_dir, 0).write_bytes(text)
    assert RequestReader(run_dir, 0).read() is None


def test_a_link_is_not_read(run_dir, tmp_path) -> None:
    (tmp_path / "theirs").write_text('{"id":"0123abcd","env":0,"seat":0}')
    request_path(run_dir, 0).symlink_to(tmp_path / "theirs")
    assert RequestReader(run_dir, 0).read() is None


def test_without_an_active_run_of_this_user_nothing_can_be_asked(tmp_path) -> None:
    with pytest.raises(ConfigError, match="while a run is active, by the user whose run it is"):
        SpectatorSubscription(RunDir(tmp_path), 0, 0)
