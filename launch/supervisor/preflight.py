"""Checks and files before the first role starts: a taken endpoint or a missing device is refused here."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack

import msgspec

from simul.common.config.rule_checks import workers_words
from simul.common.config.schema import Config
from simul.common.config.seats import settle_opponents
from simul.common.config.trust import NOTHING, Trust
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role import run_lock
from simul.common.role.run_directory import RunDir
from simul.common.transport import probe_bind
from simul.launch.monitoring.snapshot import ProcessFigures
from simul.launch.processes.process_group import Command
from simul.launch.processes.role_process import role_environment
from simul.launch.supervisor.checkpoint_files import InitialCheckpoint
from simul.launch.supervisor.frozen_opponent import copy_frozen_opponent
from simul.launch.supervisor.game_spec import ask_for_spec, check_same_encoder
from simul.launch.supervisor.leftover_roles import end_leftover_roles
from simul.launch.supervisor.run_curves import check_metrics
from simul.launch.supervisor.store_process import prepare_store

DEVICE_LIMIT_SEC = 60.0
REFUSED = 2
CHECK_DEVICES = f"""
import sys
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.nets.devices import choose_device
try:
    for name in sys.argv[1:]:
        choose_device(name)
except ConfigError as error:
    sys.stderr.write(str(error))
    sys.exit({REFUSED})
"""


def check_resources(config: Config, *, devices: bool = True) -> None:
    """Raise ConfigError where an endpoint or a port is taken, or one of the `devices` is missing."""
    with ExitStack() as until_checked:  # all at once: two settings may name the same one
        servers = [config.server_settings(index) for index in range(config.cluster.servers.count)]
        for server in servers:
            if server.endpoint:
                until_checked.enter_context(probe_bind(server.endpoint, curve=bool(server.curve_keys)))
        ports = [("server.prometheus_port", server.prometheus_port) for server in servers]
        for setting, port in (*ports, ("prometheus_port", config.prometheus_port)):
            if port:
                until_checked.enter_context(_port(port, setting))
    if devices:
        _check_devices({config.server.device, config.learner.device} - {"auto", "cpu"})


def check_network(config: Config) -> None:
    """Raise ConfigError where the network cannot read the game as it is configured."""
    if problem := config.game_section.network_problem(config.network.name):
        raise ConfigError(problem)


def check_sessions(config: Config, spec: GameSpec) -> None:
    """Raise ConfigError where the server would refuse sessions. Validation has checked games whose seats it knows."""
    wanted = config.workers_of_a_server * config.workers.envs * spec.seats
    if config.server.max_sessions < wanted:
        raise ConfigError(
            f"server.max_sessions is {config.server.max_sessions}; expected at least {workers_words(config)} x "
            f"workers.envs x {spec.seats} seats of {spec.name} = {wanted}, because the server refuses sessions "
            "beyond it."
        )


def _port(port: int, setting: str) -> socket.socket:
    from simul.common.runtime.prometheus import open_port  # only here: it imports prometheus_client

    return open_port(port, setting)


def _check_devices(names: Collection[str]) -> None:
    """In a process of its own, which imports torch. Other failures there are left to the roles to report."""
    if not names:
        return
    line = [sys.executable, "-P", "-c", CHECK_DEVICES, *sorted(names)]
    try:
        done = subprocess.run(
            line, capture_output=True, text=True, env=role_environment(1), timeout=DEVICE_LIMIT_SEC, check=False,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return
    if done.returncode == REFUSED:
        raise ConfigError(done.stderr)


def prepare_run(
    config: Config,
    run_dir: RunDir,
    command: Command,
    origin: InitialCheckpoint | None,
    say: Callable[[str], None],
    stopped: Callable[[], bool],
    *,
    written: Mapping[str, str],
    left: Sequence[ProcessFigures] = (),
    elsewhere: bool = False,
    trust: Trust = NOTHING,
) -> Config:
    """Check, write the resolved configuration and the game spec, and fetch or copy the checkpoints that it begins with.

    Args:
        written: places of the keys that the user wrote: see `load_config`.
        left: roles of the last supervisor, whose end is waited for: see `end_leftover_roles`.
        trust: what the command line trusts.
        elsewhere: the roles run on other machines, where devices are and the learner fetches its checkpoints itself.

    Returns:
        `config` as the run has it: a game of one seat has no opponents.

    Raises:
        ConfigError, RoleDied: a sentence says why the run cannot start.
        StartStopped: `stopped()` became true.
    """
    check_network(config)
    end_leftover_roles(left, say, stopped)
    check_resources(config, devices=not elsewhere)
    check_metrics(config)
    with run_lock.config_error_on_write_failure(run_dir):
        for sentence in run_dir.repair():
            say(sentence)
        spec = ask_for_spec(config, command, stopped, say)
        config, notes = settle_opponents(config, spec, written)
        for note in notes:
            say(note)
        check_sessions(config, spec)
        try:
            if config.store and not elsewhere:
                prepare_store(config, run_dir, spec, say, stopped)
            if origin is not None:
                say(origin.copy_into_run(spec, config.network.name, say, stopped))
            check_same_encoder(run_dir, spec, config)
            networks = copy_frozen_opponent(config, run_dir, spec, trust, say, stopped)
            run_dir.write_config(msgspec.structs.replace(config, run_dir=str(run_dir.root)), networks)
            run_dir.write_spec(spec)
        except BaseException:
            if origin is not None:
                origin.undo()
            raise
    return config
