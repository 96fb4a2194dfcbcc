"""`simul league`: the newest self of a run, its past selves and scripted players; and `simul eval --elo`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from simul.common.checkpoints.folders import PAST, spread
from simul.common.checkpoints.meta import checkpoint_folders, read_meta
from simul.common.config.games import game_called
from simul.common.config.opponents import opponent_kind
from simul.common.config.schema import Config
from simul.common.config.trust import EVERYTHING, NOTHING, Trust
from simul.common.errors import ConfigError
from simul.common.protocol.messages import LEARNER_POLICY
from simul.common.role.run_directory import RunDir
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.terminal_console import table_console
from simul.launch.evaluation.contestants import Contestants, find_conditions, find_contestants
from simul.launch.evaluation.missing_pairs import play_missing, players_of
from simul.launch.evaluation.payoffs import (
    draw_payoffs,
    payoff_figures,
    print_json,
    print_payoffs,
)
from simul.launch.evaluation.picture import check_picture
from simul.launch.evaluation.player_keys import checkpoint_key, contestant_keys, settings_of
from simul.launch.monitoring.curves.figures import recent_win_rates
from simul.launch.monitoring.snapshot import read_status
from simul.launch.monitoring.view.output import complain
from simul.launch.processes.process_group import Command
from simul.launch.processes.role_process import role_command
from simul.launch.ratings.pair_results import LEAGUE_FILE, Known, read_results
from simul.launch.supervisor.checkpoint_files import config_of, find_fault, newest_checkpoint, spec_of

SELF_PLAY = "self_play"


def show_league(
    run_dir: RunDir, *, policies: int, opponents: Sequence[str] = (), games: int | None = None, workers: int = 1,
    openings: int | None = None, overrides: Sequence[str] = (), picture: Path | None = None, as_json: bool = False,
    trust: Trust = NOTHING, command: Command = role_command,
) -> int:  # fmt: skip
    """Print what is known of the members; returns the exit code. Raises ConfigError, RoleDied.

    Args:
        policies: at most so many past selves: the first, the latest, and others spread over the run.
        opponents: scripted players, beside those that the run plays or is evaluated against.
        games: of each pair; those that the run's league file lacks are played. None: nothing is played.
    """
    if picture is not None:
        check_picture("--picture", picture)
    file = run_dir.root / LEAGUE_FILE
    read_results(file)  # a damaged one is found before anything else takes time
    # Without games nothing that the run names is imported or started.
    members = _members(run_dir, policies, opponents, overrides, trust if games else EVERYTHING)
    if games:
        known = play_missing(members, file, games, workers=workers, openings=openings, quiet=as_json, command=command)
    else:
        spec = spec_of(members.served[LEARNER_POLICY])
        settings = settings_of(find_conditions(members, spec, mirror=True, openings=openings))
        known = Known(read_results(file), settings, players_of(members))
    training = training_results(run_dir)
    figures = {**payoff_figures(known, members.config.game_title), "training": training}
    if as_json:
        print_json(figures)
    else:
        print_payoffs(figures)
        if training:
            table_console().print(_training_table(training))
    if picture is not None:
        draw_payoffs(figures, picture)
    return 1 if known.missing else 0


def rate_contestants(
    file: Path, groups: Sequence[Contestants], games: int, *, workers: int = 1, openings: int | None = None,
    only_first: bool = False, as_json: bool = False, duplicate: bool = False,
) -> int:  # fmt: skip
    """`simul eval --elo FILE`: play the pairs that the file lacks, rate all of it; returns the exit code.

    `groups`: one, or one for each engine, under otherwise equal settings; contestants meet those of their group.

    Raises ConfigError, RoleDied.
    """
    groups = _with_engines_named(groups)
    if min(len(players_of(each)) for each in groups) < 2:
        raise ConfigError("--elo rates contestants by their games against each other: name two different ones or more.")
    if not file.absolute().parent.is_dir():
        raise ConfigError(f"--elo {file}: there is no folder {file.absolute().parent}.")
    play = partial(
        play_missing, games=games, workers=workers, openings=openings, only_first=only_first, duplicate=duplicate,
        quiet=as_json,
    )  # fmt: skip
    played = [play(each, file) for each in groups]
    keys = {label: key for each in played for label, key in each.keys.items()}
    missing = sum(each.missing for each in played)
    figures = payoff_figures(played[-1]._replace(keys=keys, missing=missing), groups[0].config.game_title)
    if as_json:
        print_json(figures)
    else:
        print_payoffs(figures)
    return 1 if missing else 0


def _with_engines_named(groups: Sequence[Contestants]) -> list[Contestants]:
    """Engines by their program and its arguments; with the folder, where two would be called the same."""
    named = [each.with_engines_named() for each in groups]
    keys = [contestant_keys(each) for each in named]
    if all(one.get(label, key) == key for one in keys for other in keys for label, key in other.items()):
        return named
    return [each.with_engines_named(folders=True) for each in groups]


def training_results(run_dir: RunDir) -> list[dict[str, Any]]:
    """Recent games of the learner while it trained, by opponent; [] where the run has no figures."""
    try:
        workers = read_status(run_dir).workers
    except (OSError, *DECODE_ERRORS):
        return []
    found = recent_win_rates(workers)
    return [{"opponent": name, **games._asdict()} for name, games in found.items() if name != SELF_PLAY]


def _members(
    run_dir: RunDir, policies: int, opponents: Sequence[str], overrides: Sequence[str], trust: Trust
) -> Contestants:
    """Raises ConfigError."""
    root = run_dir.root
    if not root.is_dir():
        raise ConfigError(f"There is no run in {root}: expected a run directory.")
    newest = newest_checkpoint(root)
    spec = spec_of(newest)
    if spec.seats == 1:
        raise ConfigError(f"The game {spec.name} has one seat and no opponents: the run {root} has no league.")
    past = _past_selves(root, newest, policies)
    if not past:
        raise ConfigError(
            f"The run {root} has no past selves that can play; with a share in opponents.past one joins each "
            "learner.past_every_decisions. `simul eval` rates other checkpoints."
        )
    bots = _scripted(config_of(newest, overrides, trust), opponents)
    names = [f"learner@{read_meta(newest).version}", *(f"{PAST}/{int(folder.name)}" for folder in past)]
    return find_contestants([newest, *past], bots, overrides=overrides, trust=trust, names=names)


def _past_selves(root: Path, newest: Path, count: int) -> list[Path]:
    """The newest last; one with the weights of `newest` is left out."""
    whole: dict[int, Path] = {}
    for folder in checkpoint_folders(root / "checkpoints" / PAST):
        if fault := find_fault(folder):
            complain(f"The past self {folder.name} {fault}. It is left out.\n")
        elif checkpoint_key(folder) != checkpoint_key(newest):
            whole[int(folder.name)] = folder
    return [whole[version] for version in spread(whole, count)]


def _scripted(config: Config, named: Sequence[str]) -> list[str]:
    """Scripted players of the league: those that have a share, those of evaluations, and those that are named."""
    scripted = game_called(config.game).scripted
    shares = config.opponents.shares()
    played = [
        name for name, share in shares.items() if share and (name in scripted or name in config.opponents.classes)
    ]
    asked = [opponent_kind(name, scripted) for name in named]
    return list(dict.fromkeys([*played, *config.evaluation.opponents, *asked]))


def _training_table(training: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="Training: the learner's recent games, sampled, while it changed")
    table.add_column("opponent", no_wrap=True)
    for column in ("won (95%)", "games"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in training:
        won = f"{row['win_rate']:.3f} ({row['low']:.3f}-{row['high']:.3f})"
        table.add_row(row["opponent"], won, f"{row['games']:,}")
    return table
