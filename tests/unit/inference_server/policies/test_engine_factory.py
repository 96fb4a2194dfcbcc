"""Engines that are copies of others: their own weights, the same numbers; and networks that cannot be copied."""

from __future__ import annotations

import logging
import threading
import time
from functools import partial

import pytest
import torch
from torch import Tensor

from simul.common.checkpoints.meta import WEIGHTS_FILE
from simul.common.config.schema import NetworkConfig
from simul.common.config.trust import EVERYTHING, Trust, network_values
from simul.common.errors import ConfigError, SimulError, WeightsError
from simul.common.nets.build import build_network
from simul.common.nets.io import fingerprint, weights_to_bytes
from simul.common.nets.models.mlp_lstm import MlpLstm
from simul.common.protocol.messages import Weights
from simul.common.protocol.specs import GameSpec
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.engine.engine import PolicyEngine
from simul.inference_server.policies import engine_factory
from simul.inference_server.policies.engine_factory import EngineFactory
from simul.inference_server.policies.table import LATECOMERS_SEC, PolicyTable
from simul.inference_server.policies.weight_updates import WeightUpdates
from simul.learner.checkpoints.checkpoint_store import RunFacts, write_folder

SPEC = GameSpec(name="test", observation_size=6, num_actions=3)
NETWORK = NetworkConfig(options={"hidden": 8})


class Uncopyable(MlpLstm):
    """A user's network with something in it that belongs to one process."""

    def __init__(self, spec: GameSpec) -> None:
        super().__init__(spec, hidden=8)
        self.lock = threading.Lock()


def _engine(network, precision=torch.float32) -> PolicyEngine:
    return PolicyEngine(network, SPEC, max_sessions=4, device=torch.device("cpu"), precision=precision)


def _trust(network: NetworkConfig) -> Trust:
    return Trust(values=network_values(network))


def _table(network: NetworkConfig = NETWORK) -> PolicyTable:
    table = PolicyTable(SPEC, EngineFactory(SPEC, network, _engine, (1, 2), _trust(network)))
    _install(table, "learner", 1, network)
    return table


def _install(table: PolicyTable, name: str, version: int, network: NetworkConfig = NETWORK, resident=()) -> None:
    data = weights_to_bytes(build_network(network, SPEC, seed=version, trust=EVERYTHING))
    weights = Weights(policy=name, policy_version=version, fingerprint=fingerprint(data), resident=resident)
    table.install(weights, data)


def _value(engine: PolicyEngine) -> float:
    rows = engine.stage(1)
    rows.observation[:1], rows.mask[:1], rows.noise[:1] = 0.5, 1, 0
    rows.read_rows[:1], rows.write_rows[:1] = engine.zero_row, 0
    engine.forward(1)
    return float(engine.sample().value[0])


def _alone(version: int, network: NetworkConfig = NETWORK) -> float:
    own = build_network(network, SPEC, seed=version, trust=EVERYTHING)
    with torch.no_grad():
        return float(own(torch.full((1, 6), 0.5), torch.ones(1, 3, dtype=torch.bool), own.initial_state(1))[1])


@pytest.mark.parametrize("name", ["mlp_lstm", f"{__name__}:Uncopyable"])
def test_past_selves_join_leave_and_make_room_for_others(name, monkeypatch) -> None:
    network = NETWORK if name == "mlp_lstm" else NetworkConfig(name=name)
    table = _table(network)
    if network is NETWORK:
        monkeypatch.setattr("simul.inference_server.engine.engine.trace_network", None)  # nothing is recorded again
    for version in (2, 3):
        _install(table, f"past/{version}", version, network, resident=(f"past/{version}",))
    engines = [policy.engine for policy in table]
    assert [_value(engine) for engine in engines] == pytest.approx([_alone(v, network) for v in (1, 2, 3)])
    table.remove_retired(lambda name: 0, time.monotonic() + 2 * LATECOMERS_SEC)
    assert set(table.versions()) == {"learner", "past/3"}
    _install(table, "past/4", 4, network, resident=("past/3", "past/4"))
    assert table["past/4"].engine is engines[1]  # a spare one, so that memory stays flat
    assert _value(engines[1]) == pytest.approx(_alone(4, network))
    _install(table, "learner", 9, network)
    assert _value(engines[0]) == pytest.approx(_alone(9, network))


def test_what_was_prepared_in_vain_is_not_lost() -> None:
    table = _table()
    data = weights_to_bytes(build_network(NETWORK, SPEC, seed=2))
    message = Weights(policy="past/2", policy_version=2, fingerprint=fingerprint(data), resident=("past/2",))
    twice = [table.prepare(message, data) for _ in range(2)]  # the learner has sent it again meanwhile
    assert twice[0].new_engine is not twice[1].new_engine
    for prepared in twice:
        table.swap_in(prepared)
    assert table["past/2"].engine is twice[0].new_engine
    _install(table, "past/3", 3)
    assert table["past/3"].engine is twice[1].new_engine
    newer = table.prepare(Weights(policy="learner", policy_version=5, fingerprint=fingerprint(data)), data)
    _install(table, "learner", 6)
    with pytest.raises(WeightsError, match="learner is at version 6; got 5"):
        table.swap_in(newer)
    assert table.versions()["learner"] == 6


def test_a_past_self_that_is_named_again_stays_while_its_weights_are_verified() -> None:
    table = _table()
    _install(table, "past/2", 2, resident=("past/2",))
    _install(table, "learner", 3, resident=("learner",))
    data = weights_to_bytes(build_network(NETWORK, SPEC, seed=2))
    again = Weights(policy="past/2", policy_version=2, fingerprint=fingerprint(data), resident=("past/2",))
    table.keep_for_update(again)
    prepared = table.prepare(again, data)
    assert prepared.new_engine is None, "it is served already"
    table.remove_retired(lambda name: 0, time.monotonic() + 2 * LATECOMERS_SEC)
    table.swap_in(prepared)
    assert "past/2" in table.names


def test_whoever_prepares_weights_rests_after_every_piece_while_others_are_served(monkeypatch) -> None:
    rested = []
    monkeypatch.setattr(engine_factory, "CpuThrottle", lambda: lambda: rested.append(True))
    table = _table()
    assert not rested, "nobody was served yet"
    _install(table, "learner", 3)
    assert len(rested) == 4, "hashed, read, checked, copied"
    _install(table, "past/3", 3, resident=("past/3",))
    assert len(rested) == 8


class OneOffer:
    """A link on which the learner offers its first weights once."""

    def __init__(self, weights: Weights, data: bytes) -> None:
        self._offers, self.refusals = [(weights, data)], []

    def sockets(self):
        return []

    def poll(self, _now, _version):
        offers, self._offers = self._offers, []
        return offers

    def acknowledge(self, _weights, reason="", **_):
        self.refusals.append(reason)


class OneTypeOnly(MlpLstm):
    """A user's network that mixes types of numbers once it is lowered."""

    def encode(self, observation: Tensor) -> Tensor:
        return observation.float() @ self.body[0].weight.T


class Refusing(MlpLstm):
    """A user's network that is not built everywhere."""

    def __init__(self, *_: object, **__: object) -> None:
        raise ValueError("not in this process")


@pytest.mark.parametrize(
    ("network", "sentence"),
    [
        (OneTypeOnly, r"cannot be served here: RuntimeError: .*set server\.precision=float32"),
        (Refusing, r"^The network .*Refusing cannot be built .*not in this process\.$"),
    ],
)
def test_a_network_that_raises_ends_the_start_with_one_sentence(network, sentence, tmp_path, caplog):
    config = NetworkConfig(name=f"{__name__}:{network.__name__}", options={"hidden": 8})
    engine = partial(_engine, precision=torch.bfloat16)
    table = PolicyTable(SPEC, EngineFactory(SPEC, config, engine, (1, 2), _trust(config)))
    data = weights_to_bytes(build_network(NETWORK, SPEC))
    link = OneOffer(Weights(policy="learner", policy_version=0, fingerprint=fingerprint(data)), data)
    updates = WeightUpdates(link, table, Statistics(), logging.getLogger())
    with pytest.raises(ConfigError, match=sentence):
        updates.wait_for_first(tmp_path, stop=[])
    assert len(link.refusals) == 1
    assert ("Traceback" in caplog.text) == (network is OneTypeOnly)


def test_shapes_are_compared_before_a_network_takes_memory(tmp_path, monkeypatch):
    """`simul serve` and `simul policies load` of a checkpoint that names a network which its weights do not fit."""
    wide, folder = NetworkConfig(options={"hidden": 6000}), tmp_path / "theirs"
    files = {WEIGHTS_FILE: weights_to_bytes(build_network(NETWORK, SPEC))}
    write_folder(folder, RunFacts(SPEC, wide, "0" * 16, 1).meta(1, 0, 0, files, False), files)
    served, fresh = _table(), PolicyTable(SPEC, EngineFactory(SPEC, wide, _engine, (1, 2)))
    monkeypatch.setattr(engine_factory, "build_network", lambda *arguments, **options: pytest.fail("it was built"))
    for load in (partial(served.build_external, "theirs"), fresh.install_checkpoint):
        with pytest.raises(SimulError, match=r"body.0.weight: expected \[6000, 6\], got \[8, 6\]"):
            load(folder)
    with pytest.raises(WeightsError, match=r"body.0.weight: expected \[6000, 6\], got \[8, 6\]"):
        _install(fresh, "learner", 1)


def test_the_network_of_a_stranger_is_loaded_only_where_the_user_trusts_it(tmp_path):
    """`simul policies load`, of a checkpoint that names a class which neither the run nor a signature trusts."""
    table, folder = _table(), tmp_path / "theirs" / "checkpoints" / "000000001"
    network = NetworkConfig(name=f"{__name__}:Uncopyable")
    files = {WEIGHTS_FILE: weights_to_bytes(build_network(network, SPEC, trust=EVERYTHING))}
    write_folder(folder, RunFacts(SPEC, network, "0" * 16, 1).meta(1, 0, 0, files, False), files)
    with pytest.raises(ConfigError, match=r'network.name: ".*:Uncopyable".*--trust'):
        table.build_external("theirs", folder)
    assert table.build_external("theirs", folder, trusted=True).version == 1


def test_the_opponent_of_a_run_cannot_be_unloaded_and_stays_when_past_selves_leave(tmp_path):
    table, folder = _table(), tmp_path / "frozen"
    files = {WEIGHTS_FILE: weights_to_bytes(build_network(NETWORK, SPEC))}
    write_folder(folder, RunFacts(SPEC, NETWORK, "0" * 16, 1).meta(7, 0, 0, files, False), files)
    table.add_policy(table.build_external("frozen", folder, source="opponent"))
    with pytest.raises(ConfigError, match=r"'frozen' is no policy that was loaded from a checkpoint; loaded are: none"):
        table.unload("frozen", 0)
    _install(table, "learner", 9, resident=("learner",))
    assert "frozen" in table.names
