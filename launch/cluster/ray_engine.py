"""Ray Core finds machines for the bundles of a run, and carries the bytes between the supervisor and its agents.

Only this module imports ray. A placement group holds the bundles; an actor in each of them owns the agent, which is a
process of its own: it and its roles outlive the actor for as long as they need to save. Nothing is put into the object
store: messages are in pieces that Ray passes on with its calls.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray._private.state import available_resources_per_node  # for developers; the public ones are of the whole cluster
from ray.exceptions import ActorUnavailableError, GetTimeoutError, RayError
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from simul.common.errors import ConfigError
from simul.launch.cluster.agent_process import AgentProcess, agent_command
from simul.launch.cluster.links import ChannelLostError
from simul.launch.cluster.placement import Bundle, Machine, lacking_text, machines_of

PIECE_BYTES = 64 * 1024  # Ray passes on up to 100 KiB without its object store
LOOK_SEC = 0.5
CREATED = "CREATED"  # state of a placement group whose bundles all have their machines
ANSWER_SEC = 5.0  # beyond what a call may take by itself


class AgentActor:
    """In a bundle: the agent's process. Each method group has a thread of its own.

    Where a connection fails Ray makes a call again, or reports a call as failed that was made: pieces have numbers.
    """

    def __init__(self, working_directory: str, line: Sequence[str] = ()) -> None:
        """`line`: begin of the agent's command line; empty: the agent of this machine's Simul."""
        self._working_directory = working_directory
        self._line = list(line) or agent_command()
        self._early: dict[int, bytes] = {}  # pieces that came before another one, by number
        self._next = 0  # number of the piece that the agent gets next
        self._read, self._piece = -1, b""  # number of the last piece that was read, and the piece

    def place(self) -> tuple[str, str]:
        """Start the agent. (Name, address) of the machine."""
        host = ray.util.get_node_ip_address()
        more = ["--node", host, "--working-directory", self._working_directory]
        self._agent = AgentProcess([*self._line, *more], host, host)
        return host, host

    @ray.method(concurrency_group="send")
    def send(self, number: int, data: bytes) -> None:
        """To the agent, each number once and in order. Raises ChannelLostError."""
        if number >= self._next:
            self._early[number] = data
        while (piece := self._early.pop(self._next, None)) is not None:
            self._next += 1
            self._agent.send(piece)

    @ray.method(concurrency_group="receive")
    def receive(self, number: int, timeout_sec: float) -> bytes:
        """From the agent; the same number again: the same piece. Raises ChannelLostError."""
        if number != self._read:
            self._piece = self._agent.receive(timeout_sec)
            self._read = number
        return self._piece


class RayChannel:
    """A channel to the agent of an actor."""

    def __init__(self, actor: Any, node: str, host: str) -> None:
        self.node, self.host = node, host
        self._actor = actor
        self._asked: Any = None  # a call of `receive` that has not been answered
        self._sent = self._received = 0  # pieces

    def send(self, data: bytes) -> None:
        """Send in pieces; where they do not arrive, `receive` finds the actor dead."""
        for at in range(0, len(data), PIECE_BYTES):
            self._actor.send.remote(self._sent, data[at : at + PIECE_BYTES])
            self._sent += 1

    def receive(self, timeout_sec: float) -> bytes:
        """What has come; empty also where Ray does not reach the actor for now. Raises ChannelLostError."""
        if self._asked is None:
            self._asked = self._actor.receive.remote(self._received, timeout_sec)
        try:
            data = ray.get(self._asked, timeout=timeout_sec + ANSWER_SEC)
        except GetTimeoutError:
            return b""
        except ActorUnavailableError:
            self._asked = None
            time.sleep(LOOK_SEC)
            return b""
        except (RayError, ChannelLostError) as error:
            raise ChannelLostError(_first_line(error)) from None
        self._asked = None
        self._received += 1
        return bytes(data)

    def close(self) -> None:
        """End the actor; its agent finds its input closed."""
        with contextlib.suppress(RayError, ValueError, RuntimeError):
            ray.kill(self._actor, no_restart=True)


class RayEngine:
    """The cluster at `address`. Raises ConfigError: there is none, or it admits every peer.

    Args:
        address: `auto`: the cluster that this machine belongs to; else as ray.init takes it.
        bundles: of the run; on different machines where possible.
        line: of AgentActor.
    """

    def __init__(self, address: str, bundles: Sequence[Bundle], line: Sequence[str] = ()) -> None:
        connect(address)
        self.host: str = ray.util.get_node_ip_address()
        self._bundles, self._line = bundles, tuple(line)
        self._group = placement_group([bundle.resources for bundle in bundles], strategy="SPREAD")

    def open(self, bundle: int, stopped: Callable[[], bool]) -> RayChannel:
        """An agent in a bundle, once Ray has placed it, or placed it again. Raises ChannelLostError."""
        wanted = self._bundles[bundle]
        placing = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=bundle)
        actor = (
            ray.remote(concurrency_groups={"send": 1, "receive": 1})(AgentActor)
            .options(
                num_cpus=wanted.cpus,
                num_gpus=wanted.gpus,
                max_restarts=0,
                max_task_retries=-1,
                scheduling_strategy=placing,
            )
            .remote(os.getcwd(), self._line)
        )
        try:
            placed = actor.place.remote()
            while not ray.wait([placed], timeout=LOOK_SEC)[0]:
                if stopped():
                    raise ChannelLostError("the run stops")
            node, host = ray.get(placed)
        except RayError as error:
            raise ChannelLostError(_first_line(error)) from None
        return RayChannel(actor, node, host)

    def lacking(self, bundles: Sequence[int]) -> str:
        """See `Engine`."""
        with contextlib.suppress(RayError):
            if placement_group_table(self._group).get("state") == CREATED:
                return ""  # what is not free is reserved for them
            return lacking_text([self._bundles[number] for number in bundles], machines_of_cluster())
        return ""

    def close(self) -> None:
        """Give the bundles back, and leave the cluster."""
        with contextlib.suppress(RayError):
            remove_placement_group(self._group)
        ray.shutdown()


def connect(address: str) -> None:
    """Join the cluster at `address` as a driver. Raises ConfigError."""
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RayError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"There is no Ray cluster at {address}: {_first_line(error)} Start one with `ray start --head`, or name "
            "its address with --address."
        ) from None
    hosts = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    outside = sorted(host for host in hosts if not _loopback(host))
    if outside and os.environ.get("RAY_AUTH_MODE") != "token":
        ray.shutdown()
        raise ConfigError(
            f"The Ray cluster at {address} is reached from other machines ({outside[0]}) without a token: anyone there "
            "could run programs on it and read the keys of this run. Set RAY_AUTH_MODE=token on every machine before "
            "`ray start`, and here (docs/cluster.md says how)."
        )


def machines_of_cluster() -> list[Machine]:
    """The machines of the cluster that this process has joined, with what is free there now."""
    return machines_of(ray.nodes(), available_resources_per_node())


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _first_line(error: Exception) -> str:
    """Of the error that a call raised where it ran, or of Ray's own."""
    return str(getattr(error, "cause", None) or error).strip().partition("\n")[0]
