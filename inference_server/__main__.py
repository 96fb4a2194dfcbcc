"""`python -m inference_server`: builds the objects of the server and runs it."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable
from functools import partial
from logging import Logger
from pathlib import Path
from typing import Any

import torch

from common import logs
from common.config import Config
from common.errors import CheckpointError, ConfigError, SimulError
from common.lifecycle import Reporter, RoleArguments, StopFlag, add_role_arguments, role_arguments
from common.nets.base import RecurrentNetwork
from common.nets.build import build_network
from common.nets.devices import choose_device, choose_precision
from common.specs import GameSpec
from common.transport import RouterSocket, server_keys
from inference_server.actor import Actor
from inference_server.admission import Admission
from inference_server.batcher import Batcher
from inference_server.clients import ClientTable
from inference_server.control import Control
from inference_server.engine.cuda import CudaGraphs
from inference_server.engine.engine import BUCKETS, PolicyEngine
from inference_server.engine.graph_device import GraphDevice
from inference_server.engine.graphs import GraphEngine
from inference_server.engine.staging import Staging
from inference_server.evaluation import Evaluator
from inference_server.figures import FiguresOf, limits_of
from inference_server.fill import Fill
from inference_server.gateway import Gateway
from inference_server.housekeeping import Housekeeping
from inference_server.intake import Intake
from inference_server.learner_link import LearnerLink
from inference_server.limits import InFlight
from inference_server.policies import PolicyTable
from inference_server.prometheus import Exporter
from inference_server.recorder import Recorder
from inference_server.reporting import Reporting
from inference_server.server import Server
from inference_server.sessions import SessionTable
from inference_server.statistics import Statistics
from inference_server.swaps import Swaps
from inference_server.unrolls import UnrollBuilder
from inference_server.watchdog import Watchdog


def main() -> int:
    """Exit code 0 after a clean stop, 2 after a sentence about what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m inference_server")
    add_role_arguments(parser)
    parser.add_argument("--checkpoint", type=Path, help="serve these frozen weights, without a learner")
    options = parser.parse_args()
    arguments = role_arguments(options)
    log = logs.set_up(f"simul-inference-{arguments.index}")
    try:
        stop = StopFlag(arguments.parent).install()
        reporter = Reporter(arguments, "inference_server")
        server = build_server(arguments, options.checkpoint, reporter, stop, log)
        if server is not None:
            gc.collect()
            gc.freeze()
            with torch.inference_mode():  # once, not around every batch
                server.run(stop)
            server.close()
        reporter.close()
    except (ConfigError, CheckpointError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except SimulError as error:
        log.error("%s", error)
        return 1
    return 0


def build_server(
    arguments: RoleArguments, checkpoint: Path | None, reporter: Reporter, stop: StopFlag, log: Logger
) -> Server | None:
    """The server with weights and warm, or None when it was asked to stop before."""
    run_dir = arguments.run_dir
    config, spec = run_dir.read_config(), run_dir.read_spec()
    torch.set_num_threads(1 if config.server.deterministic else config.server.threads)
    device = choose_device(config.server.device)
    exact = config.server.deterministic and config.server.precision == "auto"
    precision = choose_precision("float32" if exact else config.server.precision, device)
    graphs = CudaGraphs(device) if device.type == "cuda" and config.server.cuda_graphs else None
    policies = _policies(config, spec, device, precision, graphs, log)
    link, statistics = None, Statistics()
    if checkpoint is not None:
        policies.install_checkpoint(checkpoint)
    else:
        link = LearnerLink(run_dir.endpoint("unrolls"), run_dir.endpoint("weights"), spec)
    swaps = Swaps(link, policies, statistics, log)
    if link is not None:
        swaps.find_first(run_dir.checkpoints, stop)
    if not policies.ready:
        return None
    log.info("serving version %d on %s in %s", policies.learner_version, device, precision)
    clients = ClientTable(run_dir.token())
    sessions = SessionTable(config.server.max_sessions, config.seed)
    state_size = policies["learner"].engine.state_size
    builder = UnrollBuilder(spec, config.learner.unroll_length, state_size, config.server.max_sessions)
    recorder = Recorder(builder, link, statistics)
    admission = Admission(spec, sessions, policies, recorder, statistics)
    in_flight = InFlight(config.server.max_rows_waiting, config.server.max_rows_of_client, config.server.max_batch)
    limits = limits_of(config.server)
    figures = FiguresOf(sessions, clients, policies, in_flight, statistics, limits)
    keys = server_keys(Path(config.server.curve_keys)) if config.server.curve_keys else None
    socket = RouterSocket(config.server.endpoint or run_dir.endpoint("data"), keys=keys)
    gateway = Gateway(socket, spec, clients, policies, statistics, limits, figures)
    evaluator = Evaluator(spec, sessions, policies, gateway, statistics, config.server.max_batch)
    batcher = _batcher(config, policies)
    actor = Actor(
        policies, sessions, recorder, admission, gateway, statistics, log, zero_state=config.server.zero_state
    )
    watchdog = Watchdog(arguments)
    exporter = Exporter(config.server.prometheus_port) if config.server.prometheus_port else None
    facts = {"device": str(device), "precision": str(precision).removeprefix("torch.")}
    return Server(
        gateway=gateway,
        intake=Intake(gateway, sessions, admission, batcher, evaluator, in_flight, statistics),
        in_flight=in_flight,
        sessions=sessions,
        batcher=batcher,
        actor=actor,
        evaluator=evaluator,
        recorder=recorder,
        swaps=swaps,
        control=Control(RouterSocket(run_dir.endpoint("control")), policies, sessions, log),
        housekeeping=Housekeeping(
            clients, sessions, admission, recorder, policies,
            idle_timeout_sec=config.server.idle_timeout_sec, client_timeout_sec=config.server.client_timeout_sec,
        ),
        watchdog=watchdog,
        statistics=statistics,
        reporting=Reporting(
            statistics, sessions, clients, policies, recorder, batcher, evaluator, swaps,
            watchdog, reporter, exporter, facts,
        ),
    )  # fmt: skip


def _batcher(config: Config, policies: PolicyTable) -> Batcher:
    if config.server.batching == "greedy":
        return Batcher(config.server.max_batch)
    window_sec = config.server.window_us * 1e-6 or policies["learner"].engine.least_forward_sec
    return Batcher(config.server.max_batch, Fill(window_sec))


def _policies(
    config: Config,
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
    sizes = tuple(size for size in BUCKETS if size <= config.server.max_batch)
    return PolicyTable(spec, lambda: build_network(config.network, spec, seed=config.seed), engine, sizes)


if __name__ == "__main__":
    sys.exit(main())
