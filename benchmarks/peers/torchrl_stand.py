"""TorchRL's inference server in a process of its own, and its client processes; runs in .venv-peers.

TorchRL hands its clients' ends of the transport down to the processes that are started, so one process starts them all.
With its shared-memory transports a request is one slot that holds all envs of a client.
Takes {"precision", "transport", "min_batch", "timeout", "clients", "envs", "server_core", "client_core"} as its
argument; prints `ready` and {"server_pid"}, then runs orders like `closed_loop.run_orders`, one result a client in each
list.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import sys
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict
from torchrl.modules.inference_server import InferenceServer

from benchmarks.harness.cores import pin
from benchmarks.peers.acting import Acting
from benchmarks.peers.closed_loop import EPISODE, measure
from benchmarks.peers.wire import STATE_SIZE
from benchmarks.serving.client import Games
from benchmarks.serving.policy import SPEC


class Policy:
    """[N] requests of E envs each, as one forward over N x E rows."""

    def __init__(self, precision: str) -> None:
        self._act = Acting(precision)

    def __call__(self, requests: TensorDict) -> TensorDict:
        """Inference server's model: batched TensorDict in, batched TensorDict out."""
        observation, mask, state = (requests.get(name) for name in ("observation", "mask", "state"))
        count, envs = mask.shape[:2]
        packed, new_state = self._act(observation.flatten(0, 1), mask.flatten(0, 1), state.flatten(0, 1))
        return TensorDict(
            {
                "decision": packed.view(3, count, envs).transpose(0, 1),  # (N, 3, E)
                "state": new_state.view(count, envs, STATE_SIZE),
                "batch": torch.full((count,), count * envs),
            },
            batch_size=[count],
        )


class TorchrlClient:
    """One slot; carries the state of its envs."""

    def __init__(self, client: Any, envs: int) -> None:
        self._client = client
        self._state = torch.zeros(envs, STATE_SIZE)

    def decide(
        self, observation: NDArray[np.float32], mask: NDArray[np.uint8], start: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float32], int]:
        """As `closed_loop.Decide`."""
        if start.any():
            self._state = torch.where(torch.from_numpy(start)[:, None], 0.0, self._state)
        request = {
            "observation": torch.from_numpy(observation),
            "mask": torch.from_numpy(mask),
            "state": self._state,
        }
        reply = self._client(TensorDict(request, batch_size=[]))
        self._state = reply.get("state")
        return reply.get("decision").numpy(), int(reply.get("batch"))


def play(client: Any, envs: int, orders: Connection) -> None:
    """A client process: one window for each order."""
    torch.set_num_threads(1)
    orders.send("ready")
    while True:
        try:
            order = orders.recv()
        except EOFError:
            return
        decide = TorchrlClient(client, envs).decide
        orders.send(measure(decide, Games(envs, EPISODE, False), order["begin"], order["end"]))


def make_server(setting: dict[str, Any]) -> Any:
    """The server's owner in this process, not started yet."""
    envs = setting["envs"]
    request = {
        "observation": torch.zeros(envs, SPEC.observation_size),
        "mask": torch.zeros(envs, SPEC.num_actions, dtype=torch.uint8),
        "state": torch.zeros(envs, STATE_SIZE),
    }
    response = {
        "decision": torch.zeros(3, envs),
        "state": torch.zeros(envs, STATE_SIZE),
        "batch": torch.zeros((), dtype=torch.int64),
    }
    return InferenceServer(
        policy_factory=functools.partial(Policy, setting["precision"]),
        service_backend="process",
        transport=setting["transport"],
        request_spec=TensorDict(request, batch_size=[]),
        response_spec=TensorDict(response, batch_size=[]),
        num_clients=setting["clients"],
        # a slot that belongs to one client for good need not be copied out of
        transport_options={"copy_result": False} if setting["transport"] == "process_slot" else None,
        max_batch_size=setting["clients"],
        min_batch_size=setting["min_batch"],
        timeout=setting["timeout"],
        collect_stats=False,
        policy_version_key=None,
    )


def main() -> None:
    """See the module's docstring."""
    setting = json.loads(sys.argv[1])
    pin(os.getpid(), setting["server_core"])  # the server's process inherits it
    server = make_server(setting)
    clients = server.clients(setting["clients"])
    server.start()
    pin(os.getpid(), setting["client_core"])
    context = multiprocessing.get_context("spawn")
    ends = []
    for client in clients:
        ours, theirs = context.Pipe()
        context.Process(target=play, args=(client, setting["envs"], theirs), daemon=True).start()
        theirs.close()
        ends.append(ours)
    for end in ends:
        end.recv()
    print("ready", json.dumps({"server_pid": server.health()["pid"]}), sep="\n", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        for end in ends:
            end.send(order)
        print(json.dumps([end.recv() for end in ends]), flush=True)
    server.shutdown()


if __name__ == "__main__":
    main()
