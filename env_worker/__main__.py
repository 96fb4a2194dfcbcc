"""`python -m simul.env_worker`: builds the objects of one worker and runs it."""

from __future__ import annotations

import argparse
import gc
import sys
from logging import Logger
from pathlib import Path

import msgspec

from simul.common.client.client import InferenceClient
from simul.common.config.matchups import decode_pairings, only_bots
from simul.common.config.schema import Config
from simul.common.config.trust import Trust
from simul.common.errors import ConfigError, FailingEnvError, InferenceError, SimulError
from simul.common.role.lifecycle import (
    EXIT_ENDS_RUN,
    RoleArguments,
    StopFlag,
    Stopped,
    add_role_arguments,
    role_arguments,
)
from simul.common.role.reports import Reporter
from simul.common.role.run_directory import RunDir
from simul.common.role.spectating import RequestReader
from simul.common.runtime import logs
from simul.common.runtime.terminal_text import LINES, printable
from simul.common.transport import ClientKeys, client_keys
from simul.env_worker.calibration import ValueCalibration
from simul.env_worker.game_watch import watch_spec, watch_worker
from simul.env_worker.games.loading import build_source, game_spec
from simul.env_worker.source import EnvSource
from simul.env_worker.spectator import Spectator
from simul.env_worker.worker import Worker

COLLECTOR_THRESHOLDS = (50_000, 20, 20)  # battles are large and long-lived: frequent collections find nothing


def main() -> int:
    """Exit code 0 after a clean stop; 1: a game failed; 2: configuration or server, with a sentence;
    EXIT_ENDS_RUN: too many episodes fail.
    """
    options = _options()
    arguments = role_arguments(options)
    log = logs.set_up(f"simul-worker-{arguments.index}")
    try:
        config, trust = arguments.run_dir.read_trusted_config()
        stop = StopFlag(arguments.parent).install()
        if options.print_spec:
            watch_spec().start()
            with stop.interrupting():
                spec = game_spec(config, trust)
            sys.stdout.write(msgspec.json.encode(spec).decode() + "\n")
        else:
            _work(options, arguments, config, trust, stop, log)
    except Stopped:
        return 0
    except (ConfigError, InferenceError) as error:
        sys.stderr.write(printable(f"{error}\n", LINES))
        return 2
    except SimulError as error:
        log.error("%s", error)
        return EXIT_ENDS_RUN if isinstance(error, FailingEnvError) else 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simul.env_worker")
    add_role_arguments(parser)
    parser.add_argument("--print-spec", action="store_true", help="print the game spec as JSON and exit")
    parser.add_argument("--server", type=int, default=0, help="index of the inference server that it plays on")
    parser.add_argument("--episodes", type=int, help="play exactly this many episodes, record nothing, then stop")
    parser.add_argument("--pairings", type=decode_pairings, default=[], help="with --episodes: who plays whom, as JSON")
    parser.add_argument("--replays", type=Path, help="folder for the replays of all episodes")
    parser.add_argument("--replay-player", default="own", help="of their pages: own, showdown")
    parser.add_argument("--calibration", action="store_true", help="compare values with the returns that come")
    parser.add_argument("--greedy", action="store_true", help="take the most probable action")
    return parser.parse_args()


def _work(
    options: argparse.Namespace, arguments: RoleArguments, config: Config, trust: Trust, stop: StopFlag, log: Logger
) -> None:  # fmt: skip
    """Run one worker. Raises Stopped where a stop comes before it plays."""
    reporter = Reporter(arguments, "env_worker")
    watch = watch_worker(arguments, reporter)
    watch.start()
    with stop.interrupting():
        source = _source(options, arguments, config, trust)
    server = config.server_settings(options.server)
    client = InferenceClient(
        arguments.run_dir.own_endpoint(server.endpoint, options.server),
        name=f"worker-{arguments.index}",
        spec=source.spec,
        run_id=arguments.run_id,
        training_token=arguments.run_dir.token(),
        keys=_keys(arguments.run_dir, config),
    )
    if not only_bots(options.pairings):  # without a policy there is no server
        with stop.interrupting():
            client.connect(timeout_sec=60.0)
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    calibration = ValueCalibration() if options.calibration else None
    requests = RequestReader(arguments.run_dir, arguments.index)
    spectator = Spectator(requests, source, client) if options.episodes is None else None
    worker = Worker(source, client, reporter, log, config.workers.max_failed_share, watch, calibration, spectator)
    try:
        worker.run(stop)
    except SimulError as error:
        reporter.send(worker.metrics(), state="failed", event=f"worker {arguments.index}: {error}")
        raise
    finally:
        watch.stop()
        client.close()
        reporter.close()


def _keys(run_dir: RunDir, config: Config) -> ClientKeys | None:
    """On several machines those of the run; else those of the configuration."""
    if (keys := run_dir.keys_to_connect("own")) is not None:
        return keys
    return client_keys(Path(config.server.curve_keys)) if config.server.curve_keys else None


def _source(options: argparse.Namespace, arguments: RoleArguments, config: Config, trust: Trust) -> EnvSource:
    evaluation = options.episodes is not None
    return build_source(
        config,
        index=arguments.index,
        episodes=options.episodes,
        greedy=options.greedy,
        record=not evaluation,
        pairings=options.pairings,
        replays=options.replays,
        replay_player=options.replay_player,
        trust=trust,
        life=0 if evaluation or config.server.deterministic else arguments.run_id,
    )


if __name__ == "__main__":
    sys.exit(main())
