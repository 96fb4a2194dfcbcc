"""Makes what will be served out of weights and checkpoints. All of it may run beside the main loop.

Engines of the configured network are twins of the first one, with weights and a table of their own: nothing is
recorded or compiled again when a past self joins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from simul.common.config.schema import NetworkConfig
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.build import build_network
from simul.common.nets.io import WEIGHTS_FILE, bytes_to_state, check_spec, check_state, read_meta, read_verified
from simul.common.protocol.messages import Weights
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.throttle import CpuThrottle, Throttle, no_throttle
from simul.inference_server.engine.engine import PolicyEngine, Ready
from simul.inference_server.policies.verification import verify


@dataclass(frozen=True)
class Prepared:
    """Verified weights, `ready` for the engine that serves their policy. `newcomer`: one more, which has them already.

    `ready` is empty where nobody wants the weights any more.
    """

    weights: Weights
    ready: Ready
    newcomer: PolicyEngine | None = None


class Workshop:
    """Builds engines, `build_engine` around a network. Writes to nothing that is served."""

    def __init__(
        self,
        spec: GameSpec,
        network: NetworkConfig,
        build_engine: Callable[[RecurrentNetwork], PolicyEngine],
        warm_up_sizes: tuple[int, ...],
    ) -> None:
        self._spec = spec
        self._network = network
        self._build_engine = build_engine
        self._warm_up_sizes = warm_up_sizes
        self._first: PolicyEngine | None = None  # of the configured network
        self._spare: list[PolicyEngine] = []  # they and their tables serve again, so that memory stays flat

    def prepare(self, weights: Weights, data: bytes | NDArray[Any] | None, *, joins: bool, serving: bool) -> Prepared:
        """Verify weights, uint8 [bytes]; None: they lie in the learner's memory.

        Args:
            joins: make an engine that has them, for a policy that is not served yet.
            serving: somebody is served meanwhile, and shall not notice.

        Raises:
            WeightsError: they are damaged, do not fit the configured network, or are not where they should lie.
        """
        if self._first is None:
            network = build_network(self._network, self._spec)
            network.load_state_dict(verify(weights, data, network))
            self._first = self._build_engine(network)
            self._first.warm_up(self._warm_up_sizes)
            return Prepared(weights, self._first.network.state_dict(), self._first)
        rest = _rests(serving)
        state = verify(weights, data, self._first.network, rest)
        if joins:
            return Prepared(weights, state, self._newcomer(state, serving))
        return Prepared(weights, self._first.prepare(state, rest))

    def external(self, folder: Path) -> tuple[int, PolicyEngine]:
        """A checkpoint's version, and a warm engine for its weights with the network that it names.

        Raises:
            CheckpointError: missing, damaged, or of another encoder (both fingerprints are named).
            ConfigError, WeightsError: its network cannot be built, or its weights do not fit it.
        """
        meta = read_meta(folder)
        check_spec(folder, meta, self._spec)
        state = bytes_to_state(read_verified(folder, meta, WEIGHTS_FILE))
        if meta.network == self._network and self._first is not None:
            check_state(state, self._first.network)
            return meta.version, self._twin(state, serving=True)
        network = build_network(meta.network, meta.spec)
        check_state(state, network)
        network.load_state_dict(state)
        engine = self._build_engine(network)
        engine.warm_up(self._warm_up_sizes)
        return meta.version, engine

    def take_back(self, engine: PolicyEngine) -> None:
        """An engine of the configured network that serves nobody any longer."""
        self._spare.append(engine)

    def _newcomer(self, state: Mapping[str, Tensor], serving: bool) -> PolicyEngine:
        try:
            engine = self._spare.pop()
        except IndexError:
            return self._twin(state, serving)
        engine.load(state, _rests(serving))
        return engine

    def _twin(self, state: Mapping[str, Tensor], serving: bool) -> PolicyEngine:
        assert self._first is not None
        try:
            engine = self._first.twin()
        except (RuntimeError, TypeError):  # a user's network that cannot be copied
            engine = self._build_engine(build_network(self._network, self._spec))
        engine.load(state, _rests(serving))
        if serving:
            engine.warm_up_beside()
        else:
            engine.warm_up(self._warm_up_sizes)
        return engine


def _rests(serving: bool) -> Throttle:
    return CpuThrottle() if serving else no_throttle
