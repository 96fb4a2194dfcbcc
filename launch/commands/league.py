"""`simul league`: its command line. `evaluation/league.py` does the work."""

from __future__ import annotations

import argparse

from simul.launch.option_types import add_run, add_trust, count, named_run, path, whole_number

POLICIES = 6


def add_league(league: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    add_run(league, "the run that is active below runs/, else the latest")
    league.add_argument(
        "--games", type=count, metavar="N",
        help="play each pair until it has N games, greedily; what is known is kept in RUN/league.json (default: only "
        "print what is known)",
    )  # fmt: skip
    league.add_argument(
        "--policies", type=count, default=POLICIES, metavar="N",
        help="past selves: the first, the latest, and others spread over the run (default: %(default)s)",
    )  # fmt: skip
    league.add_argument(
        "--opponent", dest="opponents", action="append", default=[], metavar="NAME",
        help="a scripted player, beside those that the run plays or is evaluated against",
    )  # fmt: skip
    league.add_argument(
        "--openings", type=whole_number, metavar="N",
        help="random plies that begin each game, the same from every seat (default: 4 in games without chance; else 0)",
    )  # fmt: skip
    league.add_argument("--picture", type=path, metavar="FILE", help="draw the payoff matrix (.png, .svg)")
    league.add_argument(
        "--workers", type=count, default=1, metavar="W", help="processes that step games (default: %(default)s)"
    )
    league.add_argument("--set", dest="overrides", action="append", default=[], metavar="K=V", help="as for `up`")
    add_trust(league)
    league.add_argument("--json", action="store_true", help="only JSON on stdout")
    league.set_defaults(run=_league)


def _league(options: argparse.Namespace) -> int:
    from simul.common.config.loader import command_line_trust
    from simul.common.role.run_lock import choose_run
    from simul.launch.evaluation.league import show_league

    return show_league(
        choose_run(named_run(options), active_only=False), policies=options.policies, opponents=options.opponents,
        games=options.games, workers=options.workers, openings=options.openings, overrides=options.overrides,
        picture=options.picture, as_json=options.json,
        trust=command_line_trust(options.overrides, "", trust=options.trust),
    )  # fmt: skip
