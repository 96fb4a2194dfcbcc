"""The command line of `simul play`. The player is a process of its own: what it does not decide is passed on."""

from __future__ import annotations

import argparse

from simul.common.config.option_types import path
from simul.common.config.showdown import check_name, check_server

LONGEST_PATIENCE_SEC = 3600.0


def add_play(play: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    play.add_argument("--checkpoint", type=path, metavar="D", help="a checkpoint or a run directory; it is served")
    play.add_argument("--run-dir", type=path, help="ask the server of this run (default: the active one)")
    play.add_argument(
        "--server",
        default="127.0.0.1:8000",
        metavar="URL",
        help="HOST:PORT, a URL, `showdown` for the public one, or `local`: one is started (default: 127.0.0.1:8000)",
    )  # fmt: skip
    whom = play.add_mutually_exclusive_group(required=True)
    whom.add_argument("--challenge", metavar="USER", help="challenge this user")
    whom.add_argument("--accept", type=_count, metavar="N", help="accept N challenges, from anybody")
    play.add_argument("--battles", type=_count, default=1, metavar="N", help="with --challenge: so many (default: 1)")
    play.add_argument("--concurrency", type=_count, default=4, metavar="N", help="battles at once (default: 4)")
    play.add_argument("--username", metavar="NAME", help="ours; its password: in SIMUL_SHOWDOWN_PASSWORD")
    play.add_argument("--policy", default="learner", metavar="NAME", help="of the running server (default: learner)")
    play.add_argument("--sample", action="store_true", help="draw actions; default: the most probable one")
    play.add_argument("--replays", type=path, metavar="DIR", help="save every battle's replay as HTML, its log inside")
    play.add_argument("--no-timer", action="store_true", help="do not ask for the battle timer")
    play.add_argument(
        "--patience", type=_seconds, default=60.0, metavar="SEC",
        help="a lost connection to the Showdown server is made anew for so long (default: 60; 0: not at all)",
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
    from simul.common.launch.commands.play import play

    check_server(options.server)
    if options.username is not None:
        check_name(options.username)
    given = {
        "server": options.server, "challenge": options.challenge, "accept": options.accept,
        "battles": options.battles, "concurrency": options.concurrency, "username": options.username,
        "policy": options.policy, "replays": options.replays, "patience": options.patience,
    }  # fmt: skip
    arguments = [f"--{name}={value}" for name, value in given.items() if value is not None]
    arguments += [f"--{name.replace('_', '-')}" for name in ("sample", "no_timer", "json") if getattr(options, name)]
    return play(options.checkpoint, options.run_dir, arguments, overrides=options.overrides)
