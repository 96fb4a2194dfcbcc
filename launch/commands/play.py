"""`simul play`: people and programs play against an agent: at a table in this terminal, or on a Showdown server.

The player is a process of its own (`Game.player`).
"""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from simul.launch.commands.eval import add_replay_player
from simul.launch.commands.page import PORT, check_installed
from simul.launch.option_types import add_trust, checkpoint, count, path, port, whole_number

if TYPE_CHECKING:
    from simul.launch.table_games.origin import Origin

LONGEST_PATIENCE_SEC = 3600.0
POKEMON = "pokemon"
OF_SHOWDOWN = {
    "server": "--server", "port": "--port", "challenge": "--challenge", "accept": "--accept", "battles": "--battles",
    "concurrency": "--concurrency", "username": "--username", "replay_player": "--replay-player",
    "no_timer": "--no-timer", "patience": "--patience", "json": "--json",
}  # fmt: skip
SERVER = "127.0.0.1:8000"
DEFAULTS = {"server": SERVER, "battles": 1, "concurrency": 4, "patience": 60.0, "replay_player": "own"}
OF_TABLES = {"seat": "--seat", "opponents": "--opponent", "seed": "--seed"}


def add_play(play: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    play.add_argument(
        "--checkpoint", type=checkpoint, metavar="D",
        help="a checkpoint, a run directory, either in a store (s3://...), or zoo:NAME; it is served (default: the "
        "active run's policy, else the zoo's for the GAME)",
    )  # fmt: skip
    play.add_argument("--run-dir", type=path, help="ask the server of this run (default: the active one)")
    play.add_argument("--policy", metavar="NAME", help="of the running server (default: learner)")
    play.add_argument("--sample", action="store_true", help="draw actions; default: the most probable one")
    play.add_argument("--replays", type=path, metavar="DIR", help="write the game there; every battle as log and page")
    add_trust(play)
    play.add_argument("--set", dest="overrides", action="append", default=[], metavar="K=V", help="as for `up`")
    _add_table(play.add_argument_group("at a table", "any game but Pokémon, in this terminal"))
    _add_showdown(play.add_argument_group("Pokémon", "on a Showdown server"))
    play.set_defaults(run=_play)


def _add_table(table: argparse._ArgumentGroup) -> None:
    add_game(table)
    table.add_argument("--seat", type=whole_number, metavar="N", help="yours, from 0 (default: 0)")
    table.add_argument(
        "--opponent", dest="opponents", action="append", default=[], metavar="KIND",
        help="a scripted player at the other seats, instead of the checkpoint, which then gives hints only; several: "
        "seat by seat",
    )  # fmt: skip
    table.add_argument("--seed", type=whole_number, metavar="N", help="of the game (default: a new one)")
    table.add_argument(
        "--page", action="store_true",
        help="play in a browser of this machine: its address is printed. Pokémon: in the client of a Showdown server "
        "that is started, as with --server local --accept 1",
    )  # fmt: skip
    table.add_argument(
        "--page-port", type=port, metavar="PORT",
        help=f"the same, at this port (default: {PORT}, of Pokémon a free one; 0: a free one)",
    )  # fmt: skip


def add_game(table: argparse._ActionsContainer) -> None:
    """Add the choice of a table game: the first argument, or `--game`."""
    table.add_argument("game", nargs="?", default=argparse.SUPPRESS, metavar="GAME", help="short for --game GAME")
    table.add_argument(
        "--game", metavar="GAME",
        help="ofc, blokus, blokus:classic, openspiel:GAME, pettingzoo:ID, module:Class, or a configuration (default: "
        "the checkpoint's)",
    )  # fmt: skip


def _add_showdown(showdown: argparse._ArgumentGroup) -> None:
    showdown.add_argument(
        "--server",
        metavar="URL",
        help=f"HOST:PORT, a URL, `showdown` for the public one, or `local`: one is started (default: {SERVER})",
    )  # fmt: skip
    showdown.add_argument("--port", type=port, metavar="N", help="with --server local: its port (default: a free one)")
    whom = showdown.add_mutually_exclusive_group()
    whom.add_argument("--challenge", metavar="USER", help="challenge this user")
    whom.add_argument("--accept", type=count, metavar="N", help="accept N challenges, from any user")
    showdown.add_argument("--battles", type=count, metavar="N", help="with --challenge: so many (default: 1)")
    showdown.add_argument("--concurrency", type=count, metavar="N", help="battles at once (default: 4)")
    showdown.add_argument("--username", metavar="NAME", help="the account; its password: in SIMUL_SHOWDOWN_PASSWORD")
    add_replay_player(showdown, default=None)
    showdown.add_argument("--no-timer", action="store_true", help="do not ask for the battle timer")
    showdown.add_argument(
        "--patience", type=_seconds, metavar="SEC",
        help="how long to try to reconnect to the Showdown server (default: 60; 0: not at all)",
    )  # fmt: skip
    showdown.add_argument("--json", action="store_true", help="only JSON on stdout")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= LONGEST_PATIENCE_SEC:
        raise argparse.ArgumentTypeError(f"expected seconds from 0 to {LONGEST_PATIENCE_SEC:.0f}; got {text!r}")
    return seconds


def _play(options: argparse.Namespace) -> int:
    from simul.common.config.game_description import TABLE_PLAYER
    from simul.common.config.games.pokemon import LOCAL, check_name, check_server
    from simul.common.errors import ConfigError
    from simul.launch.supervisor.store_process import local_checkpoints
    from simul.launch.table_games.origin import active_run_of, check_origin, find_origin, refuse_options
    from simul.launch.table_games.table_game import run_table

    check_server(options.server or SERVER)
    if options.port is not None and options.server != LOCAL:
        raise ConfigError(f"--port is for --server {LOCAL}; name the port of another server in --server HOST:PORT.")
    if options.username is not None:
        check_name(options.username)
    game, run_dir = _game(options), options.run_dir
    check_origin(options.checkpoint, run_dir, options.policy)
    named = bool(options.checkpoint or options.opponents or run_dir or options.overrides)
    if not named and (run_dir := active_run_of(game)) is not None:
        game = None
    with local_checkpoints([] if options.checkpoint is None else [options.checkpoint]) as checkpoints:
        origin = find_origin(
            game, next(iter(checkpoints), None), run_dir, options.overrides, trust=options.trust,
            from_zoo=not (options.checkpoint or options.opponents or run_dir or options.policy),
        )  # fmt: skip
        player = _player(origin)
        if player == TABLE_PLAYER:
            refuse_options(options, OF_SHOWDOWN, "for Pokémon", origin)
            page_port = PORT if options.page and options.page_port is None else options.page_port
            if page_port is not None:
                check_installed()
            return run_table(origin, [], options, person=options.seat or 0, page_port=page_port)
        refuse_options(options, OF_TABLES, "for games at a table", origin)
        if options.page or options.page_port is not None:
            _play_in_own_client(options)
        return _play_on_showdown(origin, options, player)


def _game(options: argparse.Namespace) -> str | None:
    """The game that is named; Pokémon where only whom to play on a Showdown server is, and no run is active."""
    from simul.common.role.run_lock import active_runs

    whom = options.challenge is not None or options.accept is not None
    if options.game is None and options.checkpoint is None and options.run_dir is None and whom and not active_runs():
        return POKEMON
    game: str | None = options.game
    return game


def _player(origin: Origin) -> str:
    """The module that plays the configured game. Raises ConfigError where there is none."""
    from simul.common.config.games import GAMES, game_called
    from simul.common.errors import ConfigError

    if player := game_called(origin.config.game).player:
        return player
    played = ", ".join(name for name, game in GAMES.items() if game.player)
    raise ConfigError(
        f"The {origin.what} plays {origin.config.game}; `simul play` is for {played} and any "
        "simul.TurnGame of your own."
    )


def _play_in_own_client(options: argparse.Namespace) -> None:
    """`--page` of Pokémon: one battle on a Showdown server of its own, whose address, with its client, is printed."""
    from simul.common.config.games.pokemon import LOCAL
    from simul.common.errors import ConfigError

    if options.server not in (None, LOCAL):
        raise ConfigError(
            f"--page starts a Showdown server on this machine and prints its address; for the one at {options.server} "
            "leave --page out, open its client, and challenge the name that is printed."
        )
    options.server = LOCAL
    options.port = options.page_port if options.port is None else options.port
    if options.challenge is None and options.accept is None:
        options.accept = 1


def _play_on_showdown(origin: Origin, options: argparse.Namespace, player: str) -> int:
    """Play until done; returns the exit code. Raises ConfigError, RoleDied."""
    from simul.common.errors import ConfigError
    from simul.launch.monitoring.view.output import complain
    from simul.launch.processes.role_process import run_in_foreground
    from simul.launch.supervisor.inference_only import frozen_run

    if options.challenge is None and options.accept is None:
        raise ConfigError("Name whom to play on the Showdown server: --challenge USER, or --accept N challenges.")
    given = {
        "server": options.server, "port": options.port, "challenge": options.challenge, "accept": options.accept,
        "battles": options.battles, "concurrency": options.concurrency, "username": options.username,
        "policy": options.policy, "replays": options.replays, "patience": options.patience,
        "replay_player": options.replay_player,
    }  # fmt: skip
    chosen = {**given, **{name: value for name, value in DEFAULTS.items() if given[name] is None}}
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in chosen.items() if value is not None]
    arguments += [f"--{name.replace('_', '-')}" for name in ("sample", "no_timer", "json") if getattr(options, name)]
    arguments += ["--trust"] * origin.trust.everything
    origin.say_who_plays()
    with ExitStack() as served:
        run = origin.run
        if run is None:
            checkpoint = origin.served()
            if not options.json:
                complain(f"starting an inference server with {checkpoint}\n")
            run = served.enter_context(frozen_run(checkpoint, origin.config, trust=origin.trust))
        return run_in_foreground(player, ["--run-dir", str(run.root), f"--parent={os.getpid()}", *arguments])
