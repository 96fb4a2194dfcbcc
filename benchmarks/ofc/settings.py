"""What `make bench-ofc` compares. Pure.

The peer's env has one learner seat against two scripted players. Random ones, the default, are the fastest for it; a
frozen copy of the policy in each env's process would need torch there.
"""

from __future__ import annotations

from collections.abc import Mapping

ENVS = 4  # of SubprocVecEnv, a process each
WIDTH = 256  # two layers, on both sides


def _mlp(memory: str) -> tuple[str, str]:
    return "network.name=mlp_lstm", f"network.options={{hidden: {WIDTH}, layers: 2, memory: {memory}}}"


OURS: Mapping[str, tuple[str, ...]] = {"mlp": _mlp("false"), "lstm": _mlp("true"), "rows": ()}  # settings of ours
PEERS: Mapping[str, str] = {
    "same": "MaskablePPO with our network, batch, minibatches and epochs, 1 torch thread",
    "same_threads": "the same, torch's own number of threads",
    "sb3": "MaskablePPO with its own defaults, MlpPolicy of 2 x 256",
}
THREADS: Mapping[str, int] = {"same": 1}  # of torch, where it is not torch's own choice
TITLES: Mapping[str, str] = {
    "mlp": "`simul up ofc` with an MLP of 2 x 256",
    "lstm": "`simul up ofc` with an LSTM of 256 behind it",
    "rows": "`simul up ofc` as shipped, network `ofc`",
    **PEERS,
}
