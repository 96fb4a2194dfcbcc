"""The policies that are served: each a name, a version, a network with its own state table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from simul.common.checkpoints.meta import WEIGHTS_FILE, check_spec, checkpoint_folders, read_meta, read_verified
from simul.common.errors import CheckpointError, ConfigError, WeightsError
from simul.common.nets.io import fingerprint
from simul.common.protocol.messages import LEARNER_POLICY, Weights
from simul.common.protocol.specs import GameSpec
from simul.inference_server.engine.engine import PolicyEngine
from simul.inference_server.policies.engine_factory import EngineFactory, PreparedWeights

MAX_NAME = 100
LATECOMERS_SEC = 5.0  # clients hear of the policies on offer with every PONG, once a second


@dataclass(eq=False)
class NamedPolicy:
    """A named network that is being served. Only `learner` changes its version."""

    name: str
    version: int
    engine: PolicyEngine
    source: str = "league"  # learner | league | opponent (of the run) | checkpoint (loaded over the control socket)
    retired_at: float = 0.0  # not 0: no longer offered; serves the sessions bound to it, and latecomers for a while


class PolicyTable:
    """Policies by name; swaps the learner's weights, loads and retires frozen ones."""

    def __init__(self, spec: GameSpec, engine_factory: EngineFactory) -> None:
        self._spec = spec
        self._engine_factory = engine_factory
        self._policies: dict[str, NamedPolicy] = {}
        self.names: tuple[str, ...] = ()  # those that take new sessions
        self.progress = 0.0  # of the learner's weights, see `Weights`

    def __getitem__(self, name: str) -> NamedPolicy:
        return self._policies[name]

    def __iter__(self) -> Iterator[NamedPolicy]:
        return iter(self._policies.values())

    @property
    def ready(self) -> bool:
        """The learner's policy has weights and is warm."""
        return LEARNER_POLICY in self._policies

    @property
    def learner_version(self) -> int:
        """Version of the learner's policy, -1 before its first weights."""
        return self._policies[LEARNER_POLICY].version if self.ready else -1

    def versions(self) -> dict[str, int]:
        """Served versions by name."""
        return {name: policy.version for name, policy in self._policies.items()}

    def source_of(self, name: str) -> str:
        """Where a served policy comes from, see `NamedPolicy`."""
        return self._policies[name].source

    def install(self, weights: Weights, data: bytes) -> None:
        """`prepare` and `swap_in` at once, before the first session. Raises WeightsError; nothing changed."""
        self.swap_in(self.prepare(weights, data))

    def prepare(self, weights: Weights, data: bytes | NDArray[Any] | None) -> PreparedWeights:
        """Verify weights, uint8 [bytes], or None where they lie in the learner's memory, and make what serves them.

        Changes nothing here; may run beside the main loop, which may change the table: `swap_in` checks it again.

        Raises:
            WeightsError: they do not fit, cannot be read, or are not newer than what is served.
        """
        if not self._wants(weights):
            return PreparedWeights(weights, {})
        return self._engine_factory.prepare_weights(
            weights, data, joins=weights.policy not in self._policies, serving=self.ready
        )

    def keep_for_update(self, weights: Weights) -> None:
        """Weights will be prepared: a retired past self stays until they are swapped in."""
        policy = self._policies.get(weights.policy)
        if policy is not None and policy.source == "league":
            policy.retired_at = 0.0

    def swap_in(self, prepared: PreparedWeights) -> None:
        """Serve what was prepared from the next batch on. Call it between two batches.

        Raises:
            WeightsError: the table has changed since they were prepared, and has no use for them; nothing changed.
        """
        weights, spare = prepared.weights, prepared.new_engine
        try:
            if self._wants(weights):
                policy = self._policies.get(weights.policy)
                if policy is not None:
                    policy.engine.swap(prepared.ready)
                    policy.version = weights.policy_version
                elif spare is not None:
                    source = "learner" if weights.policy == LEARNER_POLICY else "league"
                    self._policies[weights.policy] = NamedPolicy(weights.policy, weights.policy_version, spare, source)
                    spare = None
                else:
                    raise WeightsError(f"{weights.policy} left while its weights were verified")
        finally:
            if spare is not None:
                self._engine_factory.recycle(spare)
        self._keep_resident(weights)
        if weights.policy == LEARNER_POLICY:
            self.progress = weights.progress

    def _wants(self, weights: Weights) -> bool:
        """False for a past self that is served already. Raises WeightsError where these must not be served."""
        policy = self._policies.get(weights.policy)
        if policy is None:
            return True
        if policy.source in ("checkpoint", "opponent"):
            raise WeightsError(f"{policy.name} was loaded from a checkpoint and is frozen; unload it first")
        if weights.policy_version > policy.version:
            return True
        if policy.name != LEARNER_POLICY and weights.policy_version == policy.version:
            return False
        raise WeightsError(f"{policy.name} is at version {policy.version}; got {weights.policy_version}")

    def check_free(self, name: str) -> None:
        """Raises ConfigError where a policy of this name is served, or the name cannot be taken."""
        if name == LEARNER_POLICY or name in self._policies:
            raise ConfigError(f"A policy {name!r} is served already. Choose another name, or unload that one first.")
        if not 0 < len(name) <= MAX_NAME or not name.isprintable():
            raise ConfigError(f"A policy's name has 1 to {MAX_NAME} printable characters; got {len(name)}.")

    def build_external(
        self, name: str, folder: Path, *, trusted: bool = False, source: str = "checkpoint"
    ) -> NamedPolicy:
        """A checkpoint's policy, verified and warm, with the network that the checkpoint names. Changes nothing here.

        May run beside the main loop. `trusted`: the user trusts that network, a class of a module or not.

        Raises:
            CheckpointError: missing, damaged, or of another encoder (both fingerprints are named).
            ConfigError, WeightsError: its network cannot be built, or its weights do not fit it.
        """
        version, engine = self._engine_factory.build_from_checkpoint(folder, trusted=trusted)
        return NamedPolicy(name, version, engine, source)

    def add_policy(self, policy: NamedPolicy) -> None:
        """Serve a policy that `build_external` made."""
        self._policies[policy.name] = policy
        self._list_names()

    def unload(self, name: str, bound: int) -> None:
        """Take no new sessions for a loaded policy; it is freed when its last session is over. Raises ConfigError."""
        policy = self._policies.get(name)
        if policy is None or policy.source != "checkpoint":
            loaded = ", ".join(p.name for p in self if p.source == "checkpoint") or "none"
            raise ConfigError(f"{name!r} is no policy that was loaded from a checkpoint; loaded are: {loaded}.")
        if bound:
            raise ConfigError(f"{bound} sessions are bound to {name!r}. Wait for them, or let them drain (--drain).")
        policy.retired_at = policy.retired_at or time.monotonic()
        self._list_names()

    def install_checkpoint(self, folder: Path) -> None:
        """Serve a checkpoint's weights as the learner's policy, without a learner. Raises CheckpointError."""
        meta = read_meta(folder)
        check_spec(folder, meta, self._spec, "Leave out what --set changes of the game, or name another checkpoint.")
        try:
            self._engine_factory.check_header(folder)
            data = read_verified(folder, meta, WEIGHTS_FILE)
            weights = Weights(policy=LEARNER_POLICY, policy_version=meta.version, fingerprint=fingerprint(data))
            self.install(weights, data)
        except WeightsError as error:
            raise CheckpointError(f"The checkpoint {folder} does not fit the configured network: {error}.") from None

    def install_newest(self, checkpoints: Path) -> list[str]:
        """Serve the newest whole checkpoint of a run, if there is any; sentences about those that are not whole."""
        notes: list[str] = []
        for folder in checkpoint_folders(checkpoints):
            try:
                self.install_checkpoint(folder)
                break
            except CheckpointError as error:
                notes.append(str(error))
        return notes

    def remove_retired(self, sessions_bound_to: Callable[[str], int], now: float) -> None:
        """Free retired policies without sessions, once every client has a list of policies without them."""
        for name, policy in list(self._policies.items()):
            if policy.retired_at and now - policy.retired_at > LATECOMERS_SEC and not sessions_bound_to(name):
                del self._policies[name]
                if policy.source == "league":
                    self._engine_factory.recycle(policy.engine)

    def _keep_resident(self, weights: Weights) -> None:
        if weights.policy != LEARNER_POLICY or weights.resident:
            for policy in self._policies.values():
                if policy.source == "league":
                    resident = policy.name in weights.resident
                    policy.retired_at = 0.0 if resident else policy.retired_at or time.monotonic()
        self._list_names()

    def _list_names(self) -> None:
        self.names = tuple(name for name, policy in self._policies.items() if not policy.retired_at)
