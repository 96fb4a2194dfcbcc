"""`simul play`: the agent on a Showdown server, against people and other programs.

The player is a process of its own (`Game.player`), which gets every option that this command does not use itself.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from simul.common.config.option_types import checkpoint, path
from simul.common.launch.commands.eval import add_replay_player

if TYPE_CHECKING:
    from simul.common.config.run_directory import RunDir
    from simul.common.config.schema import Config

LONGEST_PATIENCE_SEC = 3600.0


def add_play(play: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    play.add_argument(
        "--checkpoint", type=checkpoint, metavar="D",
        help="a checkpoint, a run directory, or either in a store (s3://...); it is served",
    )  # fmt: skip
    play.add_argument("--run-dir", type=path, help="ask the server of this run (default: the active one)")
    play.add_argument(
        "--server",
        default="127.0.0.1:8000",
        metavar="URL",
        help="HOST:PORT, a URL, `showdown` for the public one, or `local`: one is started (default: 127.0.0.1:8000)",
    )  # fmt: skip
    whom = play.add_mutually_exclusive_group(required=True)
    whom.add_argument("--challenge", metavar="USER", help="challenge this user")
    whom.add_argument("--accept", type=_count, metavar="N", help="accept N challenges, from any user")
    play.add_argument("--battles", type=_count, default=1, metavar="N", help="with --challenge: how many (default: 1)")
    play.add_argument("--concurrency", type=_count, default=4, metavar="N", help="battles at once (default: 4)")
    play.add_argument("--username", metavar="NAME", help="the account; its password: in SIMUL_SHOWDOWN_PASSWORD")
    play.add_argument("--policy", default="learner", metavar="NAME", help="of the running server (default: learner)")
    play.add_argument("--sample", action="store_true", help="draw actions; default: the most probable one")
    play.add_argument("--replays", type=path, metavar="DIR", help="write every battle there, as log and HTML page")
    add_replay_player(play)
    play.add_argument("--no-timer", action="store_true", help="do not ask for the battle timer")
    play.add_argument(
        "--patience", type=_seconds, default=60.0, metavar="SEC",
        help="how long to try to reconnect to the Showdown server (default: 60; 0: not at all)",
    )  # fmt: skip
    play.add_argument("--set", dest="overrides", action="append", default=[], metavar="K=V", help="as for `up`")
    play.add_argument("--json", action="store_true", help="only JSON on stdout")
    play.set_defaults(run=_play)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number, at least 1; got {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= LONGEST_PATIENCE_SEC:
        raise argparse.ArgumentTypeError(f"expected seconds from 0 to {LONGEST_PATIENCE_SEC:.0f}; got {text!r}")
    return seconds


def _play(options: argparse.Namespace) -> int:
    from simul.common.config.games.pokemon import check_name, check_server
    from simul.common.launch.supervisor.store_process import local_checkpoints

    check_server(options.server)
    if options.username is not None:
        check_name(options.username)
    given = {
        "server": options.server, "challenge": options.challenge, "accept": options.accept,
        "battles": options.battles, "concurrency": options.concurrency, "username": options.username,
        "policy": options.policy, "replays": options.replays, "patience": options.patience,
        "replay-player": options.replay_player,
    }  # fmt: skip
    arguments = [f"--{name}={value}" for name, value in given.items() if value is not None]
    arguments += [f"--{name.replace('_', '-')}" for name in ("sample", "no_timer", "json") if getattr(options, name)]
    if options.checkpoint is None:
        return play(None, options.run_dir, arguments, overrides=options.overrides)
    with local_checkpoints([options.checkpoint]) as (checkpoint,):
        return play(checkpoint, options.run_dir, arguments, overrides=options.overrides)


def play(
    checkpoint: Path | None, run_dir: Path | None, arguments: Sequence[str], *, overrides: Sequence[str] = ()
) -> int:
    """Play until done; returns the exit code.

    Args:
        checkpoint: is served for as long as play lasts; None: the server of `run_dir` is asked.
        run_dir: default: the run that is active.
        arguments: of the player itself.

    Raises:
        ConfigError, RoleDied: with a sentence.
    """
    from simul.common.launch.monitoring.output import complain
    from simul.common.launch.processes.role_process import run_in_foreground
    from simul.common.launch.supervisor.checkpoint_files import config_of, newest_checkpoint
    from simul.common.launch.supervisor.inference_only import frozen_run

    with ExitStack() as served:
        if checkpoint is None:
            run = _active_run(run_dir)
            player = _player(run.read_config(), f"run in {run.root}")
        else:
            folder = newest_checkpoint(checkpoint)
            config = config_of(folder, overrides)
            player = _player(config, f"checkpoint {folder}")
            if "--json" not in arguments:
                complain(f"starting an inference server with {folder}\n")
            run = served.enter_context(frozen_run(folder, config))
        return run_in_foreground(player, ["--run-dir", str(run.root), f"--parent={os.getpid()}", *arguments])


def _player(config: Config, what: str) -> str:
    """The module that plays the configured game. Raises ConfigError where there is none; `what` names its origin."""
    from simul.common.config.games import GAMES, game_called
    from simul.common.protocol.errors import ConfigError

    if player := game_called(config.game).player:
        return player
    played = ", ".join(name for name, game in GAMES.items() if game.player)
    raise ConfigError(f"The {what} plays {config.game}; `simul play` is for {played}.")


def _active_run(root: Path | None) -> RunDir:
    """The run at `root`, else the one that is active. Raises ConfigError where it is not active."""
    from simul.common.launch.processes.run_lock import choose_run, living_owner
    from simul.common.protocol.errors import ConfigError

    run_dir = choose_run(root, active_only=True)
    if living_owner(run_dir) is None:
        raise ConfigError(f"No run is active in {run_dir.root}. Start it with `simul up`, or name a --checkpoint.")
    return run_dir
