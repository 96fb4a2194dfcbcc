"""Builds the objects of the server and ties them together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from logging import Logger
from pathlib import Path
from typing import Any

import torch
from msgspec.structs import replace as replace_settings

from simul.common.config.schema import Config, ServerConfig
from simul.common.config.trust import Trust
from simul.common.errors import ConfigError
from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.devices import choose_device, choose_precision
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
from simul.inference_server.frontend.status_reply import StatusReply, limits_of, reserved_sessions, sessions_of_client
from simul.inference_server.ops.control import Control
from simul.inference_server.ops.operations import Operations
from simul.inference_server.ops.prometheus import Exporter
from simul.inference_server.ops.reaper import Reaper
from simul.inference_server.ops.reporting import Reporting
from simul.inference_server.ops.watchdog import Watchdog
from simul.inference_server.policies.engine_factory import EngineFactory
from simul.inference_server.policies.table import LEARNER, PolicyTable
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

STEP_ROW_BYTES = 51  # besides observation and mask; more than a row of EVALUATE has
EVALUATED_ROW_BYTES = 12  # with one legal action; less than a row of ACTIONS has


@dataclass
class ServedPolicies:
    """The policies that are served, and the source of their weights. `link` None: a checkpoint."""

    config: Config
    spec: GameSpec
    policies: PolicyTable
    link: LearnerLink | None
    weight_updates: WeightUpdates
    statistics: Statistics
    facts: dict[str, Any]


def build_server(
    arguments: RoleArguments, checkpoint: Path | None, reporter: Reporter, stop: StopFlag, log: Logger,
    *, proxy: Limits | None = None,
) -> InferenceServer | None:  # fmt: skip
    """The server with weights and warm, or None when it was asked to stop before.

    `proxy`: limits of the proxy through which peers come that do not belong to the run; None: there is no proxy.
    """
    served = _serve(arguments, checkpoint, stop, log)
    return _assemble(arguments, served, reporter, log, proxy) if served.policies.ready else None


def _serve(arguments: RoleArguments, checkpoint: Path | None, stop: StopFlag, log: Logger) -> ServedPolicies:
    """Load the policies onto their device; waits for the first weights."""
    run_dir = arguments.run_dir
    config, trust = run_dir.read_trusted_config()
    spec = run_dir.read_spec()
    config = replace_settings(config, server=config.server_settings(arguments.index))
    torch.set_num_threads(1 if config.server.deterministic else config.server.threads)
    device = choose_device(config.server.device)
    exact = config.server.deterministic and config.server.precision == "auto"
    precision = choose_precision("float32" if exact else config.server.precision, device)
    graphs = CudaGraphs(device) if device.type == "cuda" and config.server.cuda_graphs else None
    policies = _policies(config, trust, spec, device, precision, graphs, log)
    link, statistics = None, Statistics()
    if checkpoint is not None:
        policies.install_checkpoint(checkpoint)
    else:
        unrolls, weights = run_dir.endpoint("unrolls"), run_dir.endpoint("weights")
        reads_memory = config.server.shared_memory and can_share_memory(weights)
        # Samples go to rank 0, which has the replay buffer.
        ranks = 1 if config.learner.algorithm == "alphazero" else config.cluster.learner.ranks
        others = [run_dir.endpoint("unrolls", rank) for rank in range(1, ranks)]
        link = LearnerLink(
            unrolls, weights, spec, run_dir.token(), shared_memory=reads_memory, other_ranks=others,
            keys=run_dir.keys_to_connect("unrolls"),
            look_up=lambda rank: (run_dir.endpoint("unrolls", rank), "" if rank else run_dir.endpoint("weights")),
        )  # fmt: skip
    weight_updates = WeightUpdates(link, policies, statistics, log)
    if link is not None:
        weight_updates.wait_for_first(run_dir.checkpoints, stop)
    if policies.ready:
        log.info("serving version %d on %s in %s", policies.learner_version, device, precision)
    facts = {"device": str(device), "precision": str(precision).removeprefix("torch.")}
    return ServedPolicies(config, spec, policies, link, weight_updates, statistics, facts)


def _assemble(
    arguments: RoleArguments, served: ServedPolicies, reporter: Reporter, log: Logger, limits_of_proxy: Limits | None
) -> InferenceServer:
    run_dir, server = arguments.run_dir, served.config.server
    spec, policies, statistics = served.spec, served.policies, served.statistics
    clients = ClientTable(run_dir.token(), server.max_clients)
    reserved = reserved_sessions(served.config, spec) if served.link is not None else 0  # from a checkpoint: no workers
    limits = limits_of(server, spec, reserved)
    sessions = SessionTable(server.max_sessions, served.config.seed, sessions_of_client(server), reserved)
    state_size, unroll_length = policies[LEARNER].engine.state_size, served.config.learner.unroll_length
    memory = _unroll_memory(run_dir, served, UnrollLayout(spec, unroll_length, state_size))
    buffer = UnrollBuffer(spec, unroll_length, state_size, server.max_sessions, memory)
    recorder = Recorder(buffer, served.link, statistics)
    sample_relay = SampleRelay(spec, served.link, statistics, algorithm=served.config.learner.algorithm)
    session_closer = SessionCloser(sessions, recorder, statistics)
    step_admission = StepAdmission(spec, sessions, policies, recorder, session_closer, statistics)
    in_flight = InFlight(server.max_rows_waiting, server.max_rows_of_client, server.max_batch)
    status_reply = StatusReply(sessions, clients, policies, in_flight, statistics, limits)
    socket, proxy = _data_sockets(server, arguments, spec, limits["message_bytes"], limits_of_proxy)
    control = bind_router(run_dir, "control", arguments.index)
    if run_dir.addresses() is not None:
        bound = {"own": socket.endpoint, "control": control.endpoint}
        reporter.endpoints = {address_name(name, arguments.index): endpoint for name, endpoint in bound.items()}
    keeper = EndpointMonitor(socket, control, *([proxy] if proxy else []))
    reached = socket.endpoint if run_dir.addresses() is not None else server.endpoint
    public = reached or run_dir.endpoint("data", arguments.index)
    memory_bytes = memory_size(public, spec, min(MAX_ROWS, server.max_rows_of_client)) if server.shared_memory else 0
    handshake = Handshake(spec, clients, policies, limits, memory_bytes)
    client_socket = ClientSocket(socket, handshake, clients, policies, statistics, limits, status_reply, proxy)
    evaluator = Evaluator(spec, sessions, policies, client_socket, statistics, server.max_batch)
    batcher = _batcher(served.config, policies)
    exporter = Exporter(server.prometheus_port) if server.prometheus_port else None
    watchdog = Watchdog(arguments, exporter.correct if exporter else None)
    reaper = Reaper(
        clients, sessions, session_closer, recorder, policies, keeper,
        idle_timeout_sec=server.idle_timeout_sec, client_timeout_sec=server.client_timeout_sec,
    )  # fmt: skip
    reporting = Reporting(
        statistics, sessions, clients, policies, recorder, sample_relay, batcher, evaluator, served.weight_updates,
        watchdog, reporter, exporter, served.facts,
    )  # fmt: skip
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
        weight_updates=served.weight_updates,
        operations=Operations(
            control=Control(control, run_dir.token(), policies, sessions, statistics, log),
            reaper=reaper,
            watchdog=watchdog,
            statistics=statistics,
            reporting=reporting,
        ),
    )


def _unroll_memory(run_dir: RunDir, served: ServedPolicies, layout: UnrollLayout) -> SharedUnrolls | None:
    """Unroll tables that the learner can open; None without a learner that uses them, or with one elsewhere."""
    server = served.config.server
    if served.config.learner.algorithm == "alphazero":
        return None
    if served.link is None or not server.shared_memory or not can_share_memory(run_dir.endpoint("unrolls")):
        return None
    try:
        memory = SharedUnrolls(layout, server.max_sessions)
    except OSError:
        return None
    served.link.share(memory)
    return memory


def _data_sockets(
    server: ServerConfig, arguments: RoleArguments, spec: GameSpec, message_bytes: int, limits: Limits | None
) -> tuple[RouterSocket, ProxyProcess | None]:
    """The server's own socket, for processes of the run, and the proxy at the public endpoint.

    On several machines there is one endpoint and no proxy: all who connect hold a key of the run. `message_bytes`: of
    the largest message; libzmq decrypts a frame at a time, and nobody else is served meanwhile.
    """
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
    row_bytes = spec.observation_size * spec.dtype().itemsize + spec.num_actions + STEP_ROW_BYTES
    limits = replace(
        limits,
        message_bytes=min(limits.message_bytes, message_bytes),
        answer_worth=limits.answer_worth + row_bytes // EVALUATED_ROW_BYTES,
    )
    try:
        return socket, ProxyProcess(public, own, limits, curve=keys is not None, access=server.ipc_access)
    except ConfigError:
        socket.close()
        raise


def _batcher(config: Config, policies: PolicyTable) -> Batcher:
    if config.server.batching == "greedy":
        return Batcher(config.server.max_batch)
    window_sec = config.server.window_us * 1e-6 or policies[LEARNER].engine.least_forward_sec
    return Batcher(config.server.max_batch, BatchWait(window_sec))


def _policies(
    config: Config,
    trust: Trust,
    spec: GameSpec,
    device: torch.device,
    precision: torch.dtype,
    graphs: GraphDevice | None,
    log: Logger,
) -> PolicyTable:
    server = config.server
    options: dict[str, Any] = {
        "spec": spec,
        "max_sessions": server.max_sessions,
        "device": device,
        "precision": precision,
        "deterministic": server.deterministic,
        "staging": Staging(max(server.max_batch, BUCKETS[-1]), spec),
    }
    engine: Callable[[RecurrentNetwork], PolicyEngine] = partial(PolicyEngine, **options)
    if graphs is not None:
        engine = partial(GraphEngine, **options, graphs=graphs, max_batch=server.max_batch, log=log)
    sizes = tuple(size for smaller, size in pairwise((0, *BUCKETS)) if smaller < config.server.max_batch)
    return PolicyTable(spec, EngineFactory(spec, config.network, engine, sizes, trust))
