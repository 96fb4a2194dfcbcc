"""The session contract through real sockets: START, resend, REDO, ends, reconnect, swap."""

from __future__ import annotations

import random
import time

import msgspec
import pytest

from simul.common.checkpoints.meta import WEIGHTS_FILE
from simul.common.client.steps import pack_step
from simul.common.errors import (
    ERR_NO_SESSION,
    CheckpointError,
)
from simul.common.protocol.decisions import Action
from simul.common.protocol.messages import PROTOCOL, Actions, Hello, Welcome
from simul.learner.checkpoints.checkpoint_store import RunFacts, write_folder
from tests.support.raw_client import RawClient
from tests.support.stall import stalled
from tests.support.stand import Stand, exchange
from tests.support.waiting import PATIENCE_SEC

STEPS = 12


def _play(stand: Stand, name: str, envs: list[int]) -> dict[tuple[int, int], Action]:
    """Every env's actions when its decisions come interleaved at random with those of the other envs."""
    client = stand.client(name)
    progress = dict.fromkeys(envs, 0)
    answers = {}
    rng = random.Random(len(envs))
    while progress:
        chosen = rng.sample(sorted(progress), rng.randint(1, len(progress)))
        for action in exchange(client, [stand.decision(env, progress[env]) for env in chosen]).actions:
            answers[action.env, action.step] = action
            progress[action.env] += 1
            if progress[action.env] == STEPS:
                del progress[action.env]
    client.close()
    return answers


def _play_at_random(stand: Stand, clients: dict[str, list[int]]) -> dict[tuple[str, int, int], Action]:
    """By client, env and step: every client sends some of what is ready whenever it likes, and waits for nobody."""
    lines = {name: stand.client(name) for name in clients}
    ready = {name: dict.fromkeys(envs, 0) for name, envs in clients.items()}
    answers, rng = {}, random.Random(6)
    wanted = STEPS * sum(map(len, clients.values()))
    deadline = time.monotonic() + PATIENCE_SEC
    while len(answers) < wanted:
        for name, line in lines.items():
            if chosen := [env for env in ready[name] if rng.random() < 0.4]:
                line.submit([stand.decision(env, ready[name].pop(env)) for env in chosen])
            for action in line.poll().actions:
                answers[name, action.env, action.step] = action
                if action.step + 1 < STEPS:
                    ready[name][action.env] = action.step + 1
        assert time.monotonic() < deadline
        line.poller.wait(0.002)  # the server is another thread of this process
    for line in lines.values():
        line.close()
    return answers


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_200_sessions_that_arrive_at_random_get_to_the_last_bit_what_each_gets_alone(precision: str) -> None:
    with Stand(deterministic=True, precision=precision, max_sessions=256) as stand:
        names = [f"bot-{number}" for number in range(4)]
        together = _play_at_random(stand, {name: list(range(50)) for name in names})
        sizes = stand.server.metrics()["batch_histogram"]
        assert len(sizes) > 3  # batches of many sizes
        for env, name in enumerate(names * 3):
            alone = _play(stand, name, [env])
            for step in range(STEPS):
                a, b = alone[env, step], together[name, env, step]
                assert (a.action, a.log_prob, a.value) == (b.action, b.log_prob, b.value)


def test_ordinary_rows_and_all_others_share_a_message() -> None:
    with Stand(deterministic=True, unroll_length=3) as stand:
        reference = _play(stand, "a", [0, 1, 2, 3])
        client = stand.client("a", run_id=2)
        for step in range(STEPS):
            rows = [stand.decision(env, step) for env in range(4)]
            late = stand.decision(4, step, flags=0)  # never began
            again = [stand.decision(1, step - 1)] if step else []  # the answer is known
            actions = exchange(client, [rows[0], late, *again, *rows[2:]]).actions
            actions += exchange(client, [rows[1]]).actions
            got = {(a.env, a.step): a for a in actions}
            for env in range(4):
                expected = reference[env, step]
                assert (got[env, step].action, got[env, step].value) == (expected.action, expected.value)
            if step:
                assert got[1, step - 1].value == reference[1, step - 1].value
        metrics = stand.server.metrics()
        assert metrics["rows_errored"] == {ERR_NO_SESSION: STEPS}
        assert metrics["rows_cached"] == STEPS - 1


def test_a_checkpoint_of_another_encoder_is_not_served(tmp_path) -> None:
    with Stand() as stand:
        data, policies = stand.weights(), stand.server._weight_updates._policies
        for spec, version in ((stand.spec, 7), (msgspec.structs.replace(stand.spec, encoder_version=99), 8)):
            facts = RunFacts(spec, stand.config.network, "0" * 16, 1)
            files = {WEIGHTS_FILE: data}
            write_folder(tmp_path / f"{version:09d}", facts.meta(version, 0, 0, files, False), files)
        with pytest.raises(CheckpointError, match=f"{spec.fingerprint()}.*{stand.spec.fingerprint()}"):
            policies.install_checkpoint(tmp_path / "000000008")
        assert "another encoder" in policies.install_newest(tmp_path)[0]
        assert policies.learner_version == 7


def test_the_sessions_of_an_older_life_are_free_for_the_message_after_the_newer_ones_hello() -> None:
    with Stand(max_sessions=2) as stand, RawClient(stand.run_dir.endpoint("data"), stand.spec) as newer:
        older, other = stand.client("worker", run_id=1), stand.client("other")
        assert len(exchange(older, [stand.decision(0, 0)]).actions) == 1
        assert len(exchange(other, [stand.decision(1, 0)]).actions) == 1
        hello = Hello(PROTOCOL, "worker", 2, stand.spec.fingerprint(), training_token=stand.run_dir.token())
        with stalled(stand) as stall:
            other.submit([stand.decision(1, 1)])
            stall.wait_until_inside()
            newer.send(hello)
            newer.send(*pack_step(1, [stand.decision(0, 0)], stand.spec))
            stall.wait_until_arrived(2)
            stall.go.set()
        assert isinstance(newer.receive()[0], Welcome)
        assert isinstance(newer.receive()[0], Actions)
