"""Builds the objects of the server and ties them together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from logging import Logger
from pathlib import Path
from typing import Any

import torch
from msgspec.structs import replace as replace_settings

from simul.common.config.game_description import FROZEN
from simul.common.config.schema import Config, ServerConfig
from simul.common.config.trust import Trust
from simul.common.errors import ConfigError
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.devices import choose_device, choose_precision
from simul.common.protocol.messages import LEARNER_POLICY
from simul.common.protocol.shared_memory import can_share_memory
from simul.common.protocol.specs import GameSpec
from simul.common.protocol.unroll_layout import UnrollLayout
from simul.common.role.lifecycle import RoleArguments, StopFlag
from simul.common.role.reports import Reporter
from simul.common.role.run_directory import RunDir, address_name
from simul.common.role.run_sockets import bind_router
from simul.common.transport import EndpointMonitor, RouterSocket, connectable, server_keys
from simul.inference_server.base.granted_memory import memory_size
from simul.inference_server.base.statistics import Statistics
from simul.inference_server.batching.batch_wait import BatchWait
from simul.inference_server.batching.batcher import Batcher
from simul.inference_server.engine.cuda import CudaGraphs
from simul.inference_server.engine.engine import BUCKETS, PolicyEngine, Staging
from simul.inference_server.engine.graphs import GraphDevice, GraphEngine
from simul.inference_server.frontend.client_socket import ClientSocket
from simul.inference_server.frontend.handshake import Handshake
from simul.inference_server.frontend.status_reply import (
    StatusReply,
    limits_of,
    reserved_sessions,
    sessions_of_client,
    step_row_bytes,
)
from simul.inference_server.ops.control import Control
from simul.inference_server.ops.operations import Operations
from simul.inference_server.ops.prometheus import Exporter
from simul.inference_server.ops.reaper import Reaper
from simul.inference_server.ops.reporting import Reporting, ServerMetrics
from simul.inference_server.ops.watchdog import Watchdog
from simul.inference_server.policies.engine_factory import EngineFactory
from simul.inference_server.policies.table import PolicyTable
from simul.inference_server.policies.weight_updates import WeightUpdates
from simul.inference_server.proxy.framing import Limits
from simul.inference_server.proxy.process import ProxyProcess
from simul.inference_server.server import InferenceServer
from simul.inference_server.serving.actor import Actor
from simul.inference_server.serving.admission_control import AdmissionControl
from simul.inference_server.serving.evaluation import Evaluator
from simul.inference_server.serving.step_admission import StepAdmission
from simul.inference_server.sessions.clients import ClientTable, InFlight
from simul.inference_server.sessions.row_checks import MAX_ROWS
from simul.inference_server.sessions.session_close import SessionCloser
from simul.inference_server.sessions.table import SessionTable
from simul.inference_server.unrolls.buffer import SharedUnrolls, UnrollBuffer
from simul.inference_server.unrolls.learner_link import LearnerLink
from simul.inference_server.unrolls.recorder import Recorder
from simul.inference_server.unrolls.sample_relay import SampleRelay

EVALUATED_ROW_BYTES = 12  # with one legal action; less than a row of ACTIONS has


@dataclass(frozen=True)
class Placement:
    """Where and how networks run. `graphs`: records batches for replays; None: the device has none."""

    device: torch.device
    precision: torch.dtype
    graphs: GraphDevice | None = None


@dataclass(frozen=True)
class LoadedPolicies:
    """The policies to be served, and the source of their weights. `link` None: a checkpoint."""

    config: Config
    spec: GameSpec
    policies: PolicyTable
    link: LearnerLink | None
    weight_updates: WeightUpdates
    statistics: Statistics
    facts: dict[str, Any]


@dataclass(frozen=True)
class _Sockets:
    """Of clients and of the run's owner; `proxy`: where clients that do not belong to the run connect."""

    data: RouterSocket
    control: RouterSocket
    proxy: ProxyProcess | None

    def monitor(self) -> EndpointMonitor:
        """Restores endpoints whose file vanishes."""
        return EndpointMonitor(self.data, self.control, *([self.proxy] if self.proxy else []))


def build_server(
    arguments: RoleArguments, checkpoint: Path | None, reporter: Reporter, stop: StopFlag, log: Logger,
    *, proxy: Limits | None = None,
) -> InferenceServer | None:  # fmt: skip
    """The server with weights and warm, or None when it was asked to stop before.

    `proxy`: limits of the proxy through which peers come that do not belong to the run; None: there is no proxy.
    """
    loaded = _load_policies(arguments, checkpoint, stop, log)
    return _assemble(arguments, loaded, reporter, log, proxy) if loaded.policies.ready else None


def _load_policies(arguments: RoleArguments, checkpoint: Path | None, stop: StopFlag, log: Logger) -> LoadedPolicies:
    """Load the policies onto their device; waits for the first weights."""
    run_dir = arguments.run_dir
    config, trust = run_dir.read_trusted_config()
    spec = run_dir.read_spec()
    config = replace_settings(config, server=config.server_settings(arguments.index))
    torch.set_num_threads(1 if config.server.deterministic else config.server.threads)
    placement = _placement(config.server)
    policies = PolicyTable(spec, engine_factory(config, trust, spec, placement, log))
    link, statistics = None, Statistics()
    if checkpoint is not None:
        policies.install_checkpoint(checkpoint)
    else:
        link = _learner_link(run_dir, config, spec)
    weight_updates = WeightUpdates(link, policies, statistics, log)
    if link is not None:
        weight_updates.wait_for_first(run_dir.checkpoints, stop)
    if policies.ready:
        log.info("serving version %d on %s in %s", policies.learner_version, placement.device, placement.precision)
    if policies.ready and link is not None and config.opponents.frozen > 0:
        frozen = policies.build_external(FROZEN, run_dir.checkpoints / FROZEN, source="opponent")
        policies.add_policy(frozen)
        log.info("policy %s version %d is served", FROZEN, frozen.version)
    facts = {"device": str(placement.device), "precision": str(placement.precision).removeprefix("torch.")}
    return LoadedPolicies(config, spec, policies, link, weight_updates, statistics, facts)


def _placement(server: ServerConfig) -> Placement:
    device = choose_device(server.device)
    exact = server.deterministic and server.precision == "auto"
    precision = choose_precision("float32" if exact else server.precision, device)
    return Placement(device, precision, CudaGraphs(device) if device.type == "cuda" and server.cuda_graphs else None)


def engine_factory(config: Config, trust: Trust, spec: GameSpec, placement: Placement, log: Logger) -> EngineFactory:
    """Builds the engines of every policy, with graphs where the device has them."""
    server = config.server
    options: dict[str, Any] = {
        "spec": spec,
        "max_sessions": server.max_sessions,
        "device": placement.device,
        "precision": placement.precision,
        "deterministic": server.deterministic,
        "staging": Staging(max(server.max_batch, BUCKETS[-1]), spec),
    }
    engine: Callable[[RecurrentNetwork], PolicyEngine] = partial(PolicyEngine, **options)
    if placement.graphs is not None:
        engine = partial(GraphEngine, **options, graphs=placement.graphs, max_batch=server.max_batch, log=log)
    sizes = tuple(size for smaller, size in pairwise((0, *BUCKETS)) if smaller < server.max_batch)
    return EngineFactory(spec, config.network, engine, sizes, trust)


def _learner_link(run_dir: RunDir, config: Config, spec: GameSpec) -> LearnerLink:
    unrolls, weights = run_dir.endpoint("unrolls"), run_dir.endpoint("weights")
    # Samples go to rank 0, which has the replay buffer.
    ranks = 1 if config.learner.algorithm == "alphazero" else config.cluster.learner.ranks
    return LearnerLink(
        unrolls, weights, spec, run_dir.token(),
        shared_memory=config.server.shared_memory and can_share_memory(weights),
        other_ranks=[run_dir.endpoint("unrolls", rank) for rank in range(1, ranks)],
        keys=run_dir.keys_to_connect("unrolls"),
        look_up=lambda rank: (run_dir.endpoint("unrolls", rank), "" if rank else run_dir.endpoint("weights")),
    )  # fmt: skip


def _assemble(
    arguments: RoleArguments, loaded: LoadedPolicies, reporter: Reporter, log: Logger, limits_of_proxy: Limits | None
) -> InferenceServer:
    run_dir, config, spec = arguments.run_dir, loaded.config, loaded.spec
    server, policies, statistics = config.server, loaded.policies, loaded.statistics
    reserved = reserved_sessions(config, spec) if loaded.link is not None else 0  # from a checkpoint: no workers
    limits = limits_of(server, spec, reserved)
    clients = ClientTable(run_dir.token(), server.max_clients)
    sessions = SessionTable(server.max_sessions, config.seed, sessions_of_client(server), reserved)
    without_token = limits["rows_waiting_without_token"]
    in_flight = InFlight(server.max_rows_waiting, server.max_rows_of_client, server.max_batch, without_token)
    recorder = Recorder(_unroll_buffer(run_dir, loaded), loaded.link, statistics)
    sample_relay = SampleRelay(spec, loaded.link, statistics, algorithm=config.learner.algorithm)
    session_closer = SessionCloser(sessions, recorder, statistics)
    sockets = _bind_sockets(arguments, loaded, limits["message_bytes"], limits_of_proxy, reporter)
    handshake = Handshake(spec, clients, policies, limits, _client_memory_bytes(arguments, loaded, sockets))
    status_reply = StatusReply(sessions, clients, policies, in_flight, statistics, limits)
    client_socket = ClientSocket(
        sockets.data, handshake, clients, policies, statistics, limits, status_reply, sockets.proxy
    )
    step_admission = StepAdmission(spec, sessions, policies, recorder, session_closer, statistics)
    evaluator = Evaluator(spec, sessions, policies, client_socket, statistics, server.max_batch)
    batcher = _batcher(config, policies)
    exporter = Exporter(server.prometheus_port) if server.prometheus_port else None
    watchdog = Watchdog(arguments, exporter.correct if exporter else None)
    reaper = Reaper(
        clients, sessions, session_closer, recorder, policies, sockets.monitor(),
        idle_timeout_sec=server.idle_timeout_sec, client_timeout_sec=server.client_timeout_sec,
    )  # fmt: skip
    metrics = ServerMetrics(
        statistics=statistics,
        sessions=sessions,
        clients=clients,
        policies=policies,
        recorder=recorder,
        sample_relay=sample_relay,
        batcher=batcher,
        evaluator=evaluator,
        weight_updates=loaded.weight_updates,
        facts=loaded.facts,
    )
    return InferenceServer(
        client_socket=client_socket,
        admission_control=AdmissionControl(
            spec, client_socket, sessions, step_admission, batcher, evaluator, sample_relay, in_flight, statistics
        ),
        batcher=batcher,
        actor=Actor(
            policies, sessions, recorder, session_closer, client_socket, statistics, log, zero_state=server.zero_state
        ),
        evaluator=evaluator,
        recorder=recorder,
        weight_updates=loaded.weight_updates,
        session_closer=session_closer,
        operations=Operations(
            control=Control(sockets.control, run_dir.token(), policies, sessions, statistics, log),
            reaper=reaper,
            watchdog=watchdog,
            statistics=statistics,
            reporting=Reporting(metrics, watchdog, reporter, exporter),
        ),
    )


def _unroll_buffer(run_dir: RunDir, loaded: LoadedPolicies) -> UnrollBuffer:
    """In memory that the learner can open, if it can be; the link then offers it."""
    config, spec, capacity = loaded.config, loaded.spec, loaded.config.server.max_sessions
    state_size, unroll_length = loaded.policies[LEARNER_POLICY].engine.state_size, config.learner.unroll_length
    memory, local = None, config.server.shared_memory and can_share_memory(run_dir.endpoint("unrolls"))
    if loaded.link is not None and local and config.learner.algorithm != "alphazero":
        with suppress(OSError):
            memory = SharedUnrolls(UnrollLayout(spec, unroll_length, state_size), capacity)
        if memory is not None:
            loaded.link.share(memory)
    return UnrollBuffer(spec, unroll_length, state_size, capacity, memory)


def _bind_sockets(
    arguments: RoleArguments, loaded: LoadedPolicies, message_bytes: int, limits: Limits | None, reporter: Reporter
) -> _Sockets:
    """On several machines, the reports say where the sockets are."""
    run_dir, index = arguments.run_dir, arguments.index
    data, proxy = _data_sockets(arguments, loaded, message_bytes, limits)
    control = bind_router(run_dir, "control", index)
    if run_dir.addresses() is not None:
        bound = {"own": data.endpoint, "control": control.endpoint}
        reporter.endpoints = {address_name(name, index): endpoint for name, endpoint in bound.items()}
    return _Sockets(data, control, proxy)


def _client_memory_bytes(arguments: RoleArguments, loaded: LoadedPolicies, sockets: _Sockets) -> int:
    """Of each client's shared memory; 0: none is granted."""
    run_dir, server = arguments.run_dir, loaded.config.server
    if not server.shared_memory:
        return 0
    reached = sockets.data.endpoint if run_dir.addresses() is not None else server.endpoint
    public = reached or run_dir.endpoint("data", arguments.index)
    return memory_size(public, loaded.spec, min(MAX_ROWS, server.max_rows_of_client))


def _data_sockets(
    arguments: RoleArguments, loaded: LoadedPolicies, message_bytes: int, limits: Limits | None
) -> tuple[RouterSocket, ProxyProcess | None]:
    """The server's own socket, for processes of the run, and the proxy at the public endpoint.

    On several machines there is one endpoint and no proxy: all who connect hold a key of the run. `message_bytes`: of
    the largest message; libzmq decrypts a frame at a time, and no other client is served meanwhile.
    """
    server = loaded.config.server
    keys = server_keys(Path(server.curve_keys)) if server.curve_keys else None
    run_dir, index = arguments.run_dir, arguments.index
    if run_dir.addresses() is not None:
        return bind_router(run_dir, "own", index, counted=True, most_frame_bytes=message_bytes), None
    public, own = server.endpoint or run_dir.endpoint("data", index), run_dir.own_endpoint(server.endpoint, index)
    if limits is None or not own.startswith("ipc://"):
        socket = RouterSocket(public, keys=keys, counted=True, access=server.ipc_access, most_frame_bytes=message_bytes)
        if own != connectable(public):
            socket.bind_also(own)
        return socket, None
    socket = RouterSocket(own, keys=keys, counted=True, most_frame_bytes=message_bytes)
    limits = replace(
        limits,
        message_bytes=min(limits.message_bytes, message_bytes),
        answer_worth=limits.answer_worth + step_row_bytes(loaded.spec) // EVALUATED_ROW_BYTES,
    )
    try:
        return socket, ProxyProcess(public, own, limits, curve=keys is not None, access=server.ipc_access)
    except ConfigError:
        socket.close()
        raise


def _batcher(config: Config, policies: PolicyTable) -> Batcher:
    if config.server.batching == "greedy":
        return Batcher(config.server.max_batch)
    window_sec = config.server.window_us * 1e-6 or policies[LEARNER_POLICY].engine.least_forward_sec
    return Batcher(config.server.max_batch, BatchWait(window_sec))
