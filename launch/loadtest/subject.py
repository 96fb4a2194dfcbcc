"""The load test's subject: game spec, configuration and weights, as a run directory for server and clients."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from simul.common.config.loader import command_line_trust, config_from_tree, load_config
from simul.common.config.schema import Config, NetworkConfig
from simul.common.config.seats import settle_opponents
from simul.common.config.trust import Trust, values_to_trust
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import choose_run
from simul.common.transport import client_keys, connectable
from simul.launch.loadtest.options import Options
from simul.launch.processes.process_group import RoleDied
from simul.launch.processes.role_process import exit_reason, role_command, role_environment
from simul.launch.supervisor.checkpoint_files import config_of, networks_of, newest_checkpoint
from simul.launch.supervisor.game_spec import ask_for_spec

# The policy P that every published figure of the server uses: mlp_lstm with its default of 256 units.
POLICY_P = GameSpec(name="loadtest/P", observation_size=2160, num_actions=26)


@dataclass(frozen=True)
class Subject:
    """`endpoint` is empty where the load test starts the server itself.

    Attributes:
        parameters: of the network; torch: its version.
        keys: folder of the clients' CURVE keys; None: none.
        max_batch: largest forward of the server, in rows; None: unknown, of a running server.
    """

    run_dir: RunDir
    config: Config
    spec: GameSpec
    checkpoint: Path
    endpoint: str
    parameters: int
    torch: str
    keys: Path | None
    max_batch: int | None

    def with_precision(self, precision: str) -> Subject:
        """The same in another precision, which is written to config.yaml."""
        server = msgspec.structs.replace(self.config.server, precision=precision)
        config = msgspec.structs.replace(self.config, server=server)
        self.run_dir.write_config(config)
        return replace(self, config=config)


def make_subject(options: Options, root: Path) -> Subject:
    """Lay out a run directory in `root`. Raises ConfigError, RoleDied."""
    given = newest_checkpoint(options.checkpoint) if options.checkpoint is not None else None
    trust = command_line_trust(options.overrides, trust=options.trust)
    config, spec, endpoint = _config_and_spec(options, given, trust)
    networks = networks_of([] if given is None else [given], trust.and_also(values_to_trust(config)))
    max_batch = None if "://" in (options.connect or "") else config.server.max_batch
    keys = _keys(options, config)
    most = max(max(options.clients) * max(options.envs), options.open_sessions * max(options.clients))
    sessions = max(config.server.max_sessions, 2 * most)  # those of the cell before can still be open
    server = msgspec.structs.replace(config.server, endpoint="", max_sessions=sessions, max_sessions_of_client=sessions)
    config = msgspec.structs.replace(config, server=server)
    run_dir = RunDir(root)
    run_dir.create()
    run_dir.write_config(config, networks)
    run_dir.write_spec(spec)
    checkpoint = given or run_dir.checkpoints / "000000000"
    facts = _network_facts(run_dir, *(() if given else ("--fresh", str(checkpoint))))
    return Subject(run_dir, config, spec, checkpoint, endpoint, facts.parameters, facts.torch, keys, max_batch)


def _keys(options: Options, config: Config) -> Path | None:
    """The folder of --keys, else that of the run directory under load. Raises ConfigError where it holds no keys."""
    folder = options.keys
    if folder is None and options.connect is not None and "://" not in options.connect and config.server.curve_keys:
        folder = Path(config.server.curve_keys)
    if folder is not None:
        client_keys(folder)
    return folder


def _config_and_spec(options: Options, checkpoint: Path | None, trust: Trust) -> tuple[Config, GameSpec, str]:
    """Configuration, spec, and the endpoint of a running server."""
    endpoint = options.connect or ""
    if endpoint and "://" not in endpoint:
        return _of_run(RunDir(endpoint), trust)
    written: dict[str, str] = {}
    if options.config is not None:
        config = load_config(options.config, options.overrides, written=written)
    elif checkpoint is not None:
        config = config_of(checkpoint, options.overrides, trust)
    else:
        policy_p = {"network": msgspec.to_builtins(NetworkConfig())}
        return config_from_tree(policy_p, "the policy P", options.overrides), POLICY_P, endpoint
    spec = ask_for_spec(config, role_command)
    return settle_opponents(config, spec, written)[0], spec, endpoint


def _of_run(run_dir: RunDir, trust: Trust) -> tuple[Config, GameSpec, str]:
    if not run_dir.has_started():
        raise ConfigError(
            f"--connect: {run_dir.root} is no run directory (no config.yaml and spec.json), and no endpoint either: "
            "expected a run directory, ipc://PATH or tcp://HOST:PORT."
        )
    choose_run(run_dir.root, active_only=True, instead=", or connect to the endpoint of another server")
    (config, _), spec = run_dir.read_trusted_config(trust), run_dir.read_spec()
    return config, spec, connectable(config.server.endpoint) or run_dir.endpoint("data")


class _Facts(msgspec.Struct):
    """What the server's load test prints of the network."""

    parameters: int
    torch: str


def _network_facts(run_dir: RunDir, *arguments: str) -> _Facts:
    """Of the network of a run directory, by a process that imports torch. Raises ConfigError, RoleDied."""
    line = [sys.executable, "-P", "-m", "simul.inference_server.loadtest.subject", str(run_dir.root), *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=role_environment(1))
    if done.returncode == 2:
        raise ConfigError(done.stderr.strip())
    if done.returncode:
        raise RoleDied(f"The network could not be built ({exit_reason(done.returncode)}):\n{done.stderr[-4000:]}", 1)
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=_Facts)
