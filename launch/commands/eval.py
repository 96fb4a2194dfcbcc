"""`simul eval`: its command line. `evaluation/eval_runner.py` does the work."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence

from simul.launch.option_types import (
    SearchedCheckpoint,
    add_trust,
    count,
    path,
    searched_checkpoint,
    whole_number,
)


def add_eval(evaluate: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    _add_players(evaluate)
    _add_games(evaluate)
    _add_results(evaluate)
    evaluate.add_argument(
        "--workers", type=count, default=1, metavar="W", help="processes that step games (default: %(default)s)"
    )
    evaluate.add_argument("--set", dest="overrides", action="append", default=[], metavar="K=V", help="as for `up`")
    add_trust(evaluate)
    evaluate.add_argument("--json", action="store_true", help="only JSON on stdout")
    evaluate.set_defaults(run=_eval)


def _add_players(evaluate: argparse.ArgumentParser) -> None:
    evaluate.add_argument(
        "game", nargs="?", default="", metavar="GAME",
        help="without a checkpoint, what the opponents play: a game or a configuration (default: the first that fits)",
    )  # fmt: skip
    evaluate.add_argument(
        "--checkpoint", dest="checkpoints", action="append", type=searched_checkpoint, default=[], metavar="D",
        help="a checkpoint, a run directory, either in a store (s3://...), or zoo:NAME; several: a round robin; none: "
        "only the opponents play. D#simulations=16,...: with these settings of the section search",
    )  # fmt: skip
    evaluate.add_argument(
        "--opponent", dest="opponents", action="append", default=[], metavar="NAME",
        help="a scripted opponent of the game, such as random (any other name lists them), or one of your own, "
        "module:Class; several: a round robin",
    )  # fmt: skip
    evaluate.add_argument(
        "--cross", nargs="+", default=[], metavar="PLAYER",
        help="each against each other, as poke-env's cross_evaluate, as a table of win rates with intervals: "
        "checkpoints, run directories, URLs of a store, and names of scripted opponents",
    )  # fmt: skip
    evaluate.add_argument(
        "--gtp", dest="engines", action="append", default=[], metavar='"PATH ARGS"',
        help="Blokus: the opponent is this engine, which speaks GTP; short for --opponent gtp --set blokus.gtp=...; "
        "several, with --elo: a ladder, each against all others but engines",
    )  # fmt: skip


def _add_games(evaluate: argparse.ArgumentParser) -> None:
    evaluate.add_argument(
        "--games",
        "--battles",
        "--episodes",
        dest="episodes",
        type=count,
        default=1000,
        metavar="N",
        help="of each pair (default: %(default)s)",
    )
    seeds = evaluate.add_mutually_exclusive_group()
    seeds.add_argument(
        "--no-mirror", dest="mirror", action="store_false",
        help="new seeds for every battle; default: each is played once from every seat",
    )  # fmt: skip
    seeds.add_argument(
        "--duplicate", action="store_true",
        help="the default by its name among card players: each deal is played once from every seat, and intervals of "
        "mean scores go over deals; refused for games of one seat and battles that a Showdown server deals",
    )  # fmt: skip
    evaluate.add_argument(
        "--openings", type=whole_number, metavar="N",
        help="random plies that begin each game, the same from every seat (default: 4 in games without chance; else 0)",
    )  # fmt: skip
    evaluate.add_argument(
        "--no-round-robin", dest="only_first", action="store_true",
        help="the first checkpoint plays each of the others and of the opponents, and these not each other",
    )  # fmt: skip


def _add_results(evaluate: argparse.ArgumentParser) -> None:
    evaluate.add_argument(
        "--elo", type=path, metavar="FILE",
        help="keep the results of pairs in FILE, play only those that it lacks (--games of each), and rate all that it "
        "holds",
    )  # fmt: skip
    evaluate.add_argument(
        "--replays", type=path, metavar="DIR",
        help="write every episode there: Pokémon as log and page, Gymnasium as JSON and video, other games as JSON "
        "(for `simul watch --replay`) and picture",
    )  # fmt: skip
    add_replay_player(evaluate)
    evaluate.add_argument(
        "--calibration", type=path, metavar="FILE",
        help="how often the first checkpoint won where its value expected it, as a table and a picture (.png, .svg); "
        "of games of two seats that pay 1, 0 or -1",
    )  # fmt: skip


def add_replay_player(parser: argparse._ActionsContainer, default: str | None = "own") -> None:
    """Add the choice of a replay page's player; `default` None tells that none was chosen."""
    parser.add_argument(
        "--replay-player", choices=("own", "showdown", "none"), default=default,
        help="own: a page with its player inside, or a video (default); showdown: a page that loads Showdown's player; "
        "none: only log or JSON",
    )  # fmt: skip


def cross_players(names: Sequence[str]) -> tuple[list[SearchedCheckpoint], list[str]]:
    """(checkpoints, opponents) among the players of `--cross`. A folder called as an opponent is ./NAME."""
    from simul.common.checkpoints.zoo import zoo_folder
    from simul.common.config.opponents import SCRIPTED, SHORT

    checkpoints: list[SearchedCheckpoint] = []
    opponents: list[str] = []
    for name in names:
        if zoo_folder(name.partition("#")[0]):
            checkpoints.append(searched_checkpoint(name))
            continue
        is_path = "://" in name or os.sep in name or os.path.exists(name) or os.path.exists(name.partition("#")[0])
        if is_path and SHORT.get(name, name) not in SCRIPTED:
            checkpoints.append(searched_checkpoint(name))
        else:
            opponents.append(name)
    return checkpoints, opponents


def _check_no_checkpoint(game: str) -> None:
    """Raises ConfigError where a checkpoint stands in the place of a game."""
    from simul.common.checkpoints.meta import META_FILE
    from simul.common.checkpoints.zoo import zoo_names
    from simul.common.config.opponents import ZOO_PREFIX
    from simul.common.errors import ConfigError

    if not game:
        return
    shipped = game.startswith(ZOO_PREFIX) and game.removeprefix(ZOO_PREFIX) in zoo_names()
    if shipped or "://" in game or any(os.path.exists(os.path.join(game, name)) for name in (META_FILE, "checkpoints")):
        raise ConfigError(f"{game} is a checkpoint or a run, not a game: write --checkpoint {game}.")


def _eval(options: argparse.Namespace) -> int:
    from simul.common.config.loader import command_line_trust
    from simul.common.errors import ConfigError
    from simul.launch.evaluation.eval_runner import evaluate
    from simul.launch.supervisor.store_process import local_checkpoints

    crossed, bots = cross_players(options.cross)
    named = [*options.checkpoints, *crossed]
    opponents = [*options.opponents, *bots, *["gtp"] * bool(options.engines)]
    _check_no_checkpoint(options.game)
    if options.cross and len(named) + len(opponents) < 2:
        raise ConfigError("--cross plays each against each other: name two players or more.")
    if options.elo is not None:
        given = {"--replays": options.replays, "--calibration": options.calibration, "--no-mirror": not options.mirror}
        if refused := [option for option, value in given.items() if value]:
            raise ConfigError(f"--elo keeps only who won, of games from every seat: leave {', '.join(refused)} out.")
    if len(options.engines) > 1 and options.elo is None:
        raise ConfigError(
            "Several engines (--gtp) play one after the other: add --elo FILE, which keeps their results."
        )
    engines = [[f"blokus.gtp={json.dumps(engine)}"] for engine in options.engines] or [[]]
    with local_checkpoints([each.place for each in named]) as checkpoints:
        searches = [each.search for each in named]
        with_engine = [[*options.overrides, *engine] for engine in engines]
        trusts = [command_line_trust(each, options.game, trust=options.trust) for each in with_engine]
        if options.elo is not None:
            from simul.launch.evaluation.contestants import find_contestants
            from simul.launch.evaluation.league import rate_contestants

            groups = [
                find_contestants(
                    checkpoints, opponents, game=options.game, overrides=overrides, searches=searches, trust=trust
                )
                for overrides, trust in zip(with_engine, trusts)
            ]
            return rate_contestants(
                options.elo, groups, options.episodes, workers=options.workers, openings=options.openings,
                only_first=options.only_first, as_json=options.json, duplicate=options.duplicate,
            )  # fmt: skip
        return evaluate(
            checkpoints, game=options.game, opponents=opponents, episodes=options.episodes, workers=options.workers,
            overrides=with_engine[0], as_json=options.json, replays=options.replays, mirror=options.mirror,
            only_first=options.only_first, matrix=bool(options.cross), replay_player=options.replay_player,
            calibration=options.calibration, duplicate=options.duplicate, openings=options.openings,
            searches=searches, trust=trusts[0],
        )  # fmt: skip
