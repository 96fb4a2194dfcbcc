"""Verifies weights and builds engines for them, on a thread beside the loop: nothing that is served is written to.

Engines of the configured network are twins of the first one, with weights and a table of their own: nothing is recorded
or compiled again when a past self joins.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from simul.common.checkpoints.folders import checkpoint_trust
from simul.common.checkpoints.meta import check_spec, read_meta
from simul.common.config.schema import NetworkConfig
from simul.common.config.trust import EVERYTHING, NOTHING, Trust
from simul.common.errors import UnreadableWeightsError, WeightsError
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.build import build_network, network_outline
from simul.common.nets.io import bytes_to_state, check_header, check_state, file_to_state, read_weights
from simul.common.protocol.messages import MOST_VERSION, Weights
from simul.common.protocol.shared_memory import open_sealed
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.throttle import CpuThrottle, Throttle, no_throttle
from simul.inference_server.engine.engine import PolicyEngine, Ready

PIECE_BYTES = 512 * 1024  # hashed between two rests


def verify(
    weights: Weights, data: bytes | NDArray[Any] | None, network: nn.Module, rest: Throttle = no_throttle
) -> dict[str, Tensor]:
    """Weights of `network` out of `data`, uint8 [bytes] as they were announced; None: out of the learner's memory.

    Out of memory nothing is copied: what comes back are views of it.

    Raises:
        UnreadableWeightsError: they do not lie there.
        WeightsError: the bytes are torn, names or shapes differ, a value is not finite, or the version is none.
    """
    if not 0 <= weights.policy_version <= MOST_VERSION:
        raise WeightsError(f"expected a version of 0 to {MOST_VERSION}, got {weights.policy_version}")
    if data is None:
        state = _from_memory(weights)
    else:
        if _fingerprint(np.frombuffer(data, np.uint8).data, rest) != weights.fingerprint:
            raise WeightsError(f"the fingerprint of {len(data)} bytes differs from the announced one: torn on the way")
        state = bytes_to_state(bytes(data))
    rest()
    check_state(state, network)
    rest()
    return state


def _from_memory(weights: Weights) -> dict[str, Tensor]:
    try:
        file = open_sealed(weights.path, weights.file_number)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UnreadableWeightsError(f"the memory cannot be read: {reason}") from None
    try:
        return file_to_state(f"/proc/self/fd/{file}")
    finally:
        os.close(file)


def _fingerprint(data: memoryview, rest: Throttle) -> str:
    digest = hashlib.sha256()
    for start in range(0, len(data), PIECE_BYTES):
        digest.update(data[start : start + PIECE_BYTES])  # other threads run meanwhile
        rest()
    return digest.hexdigest()


@dataclass(frozen=True)
class PreparedWeights:
    """Verified weights, `ready` for the engine that serves their policy; empty where they are no longer needed.

    `new_engine`: for a policy that is not served yet; it has the weights already.
    """

    weights: Weights
    ready: Ready
    new_engine: PolicyEngine | None = None


class EngineFactory:
    """Builds engines, `build_engine` around a network. Writes to nothing that is served."""

    def __init__(
        self,
        spec: GameSpec,
        network: NetworkConfig,
        build_engine: Callable[[RecurrentNetwork], PolicyEngine],
        warm_up_sizes: tuple[int, ...],
        trust: Trust = NOTHING,
    ) -> None:
        """`trust`: in the classes that the configuration and checkpoints name as networks."""
        self._trust = trust
        self._spec = spec
        self._network = network
        self._build_engine = build_engine
        self._warm_up_sizes = warm_up_sizes
        self._first: PolicyEngine | None = None  # of the configured network
        self._spare: list[PolicyEngine] = []  # they and their tables serve again, so that memory stays flat

    def prepare_weights(
        self, weights: Weights, data: bytes | NDArray[Any] | None, *, joins: bool, serving: bool
    ) -> PreparedWeights:
        """Verify weights, uint8 [bytes]; None: they lie in the learner's memory.

        Args:
            joins: make an engine that has them, for a policy that is not served yet.
            serving: clients are served meanwhile; pause between pieces of work.

        Raises:
            WeightsError: they are damaged, do not fit the configured network, or are not where they should lie.
        """
        if self._first is None:
            state = verify(weights, data, network_outline(self._network, self._spec, trust=self._trust))
            network = build_network(self._network, self._spec, trust=self._trust)
            network.load_state_dict(state)
            self._first = self._build_engine(network)
            self._first.warm_up(self._warm_up_sizes)
            return PreparedWeights(weights, self._first.network.state_dict(), self._first)
        rest = _rests(serving)
        state = verify(weights, data, self._first.network, rest)
        if joins:
            return PreparedWeights(weights, state, self._additional_engine(state, serving))
        return PreparedWeights(weights, self._first.prepare(state, rest))

    def build_from_checkpoint(self, folder: Path, *, trusted: bool = False) -> tuple[int, PolicyEngine]:
        """A checkpoint's version, and a warm engine for its weights with the network that it names.

        `trusted`: the user trusts the class that it names.

        Raises:
            CheckpointError: missing, damaged, or of another encoder (both fingerprints are named).
            ConfigError, WeightsError: its network cannot be built, or its weights do not fit it.
        """
        meta = read_meta(folder)
        check_spec(folder, meta, self._spec)
        if meta.network == self._network and self._first is not None:
            return meta.version, self._twin(read_weights(folder, meta, self._first.network), serving=True)
        trust = EVERYTHING if trusted else checkpoint_trust(folder, self._trust)
        state = read_weights(folder, meta, network_outline(meta.network, meta.spec, trust=trust))
        network = build_network(meta.network, meta.spec, trust=trust)
        network.load_state_dict(state)
        engine = self._build_engine(network)
        engine.warm_up(self._warm_up_sizes)
        return meta.version, engine

    def check_header(self, folder: Path) -> None:
        """Compare the header of a checkpoint's weights with the configured network.

        Raises ConfigError, WeightsError.
        """
        if self._first is not None:
            check_header(folder, self._first.network)
        else:
            check_header(folder, network_outline(self._network, self._spec, trust=self._trust))

    def recycle(self, engine: PolicyEngine) -> None:
        """Keep an engine of the configured network that serves no policy any longer."""
        self._spare.append(engine)

    def _additional_engine(self, state: Mapping[str, Tensor], serving: bool) -> PolicyEngine:
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
            engine = self._build_engine(build_network(self._network, self._spec, trust=self._trust))
        engine.load(state, _rests(serving))
        if serving:
            engine.warm_up_beside()
        else:
            engine.warm_up(self._warm_up_sizes)
        return engine


def _rests(serving: bool) -> Throttle:
    return CpuThrottle() if serving else no_throttle
