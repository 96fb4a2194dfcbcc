"""Plays pairs of contestants that a file of results lacks, one after the other, and keeps each when it is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from simul.common.config.matchups import Contestant, Pairing
from simul.common.errors import ConfigError
from simul.common.protocol.messages import LEARNER_POLICY
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.role.temporary import temporary_folder
from simul.common.runtime.file_lock import hold_lock
from simul.launch.evaluation.contestants import Conditions, Contestants, find_conditions
from simul.launch.evaluation.eval_runner import EvalRunner, installed_signals, pairing_arguments
from simul.launch.evaluation.player_keys import contestant_keys, settings_of
from simul.launch.evaluation.result import count_outcomes
from simul.launch.monitoring.view.output import complain
from simul.launch.processes.process_group import Command
from simul.launch.processes.role_process import role_command
from simul.launch.processes.role_reports import Metrics, counts, number
from simul.launch.processes.signals import Signals
from simul.launch.ratings.elo import beaten_share
from simul.launch.ratings.mirrored_games import OUTCOMES
from simul.launch.ratings.pair_results import Known, PairResult, PairResults, add_result, read_results, write_results
from simul.launch.supervisor.game_spec import ask_for_spec


class _Order(NamedTuple):
    """Games to play. `keys`: of `pairing.first` and `pairing.second`."""

    keys: tuple[str, str]
    pairing: Pairing


def play_missing(
    contestants: Contestants, file: Path, games: int, *, workers: int = 1, openings: int | None = None,
    only_first: bool = False, duplicate: bool = False, quiet: bool = False, command: Command = role_command,
) -> Known:  # fmt: skip
    """Play until each pair has `games`, in whole groups of games from every seat, and add them to `file`.

    Further games of a pair have other seeds than those it has. The file is locked while games are played.
    `openings`, `only_first`, `duplicate`: as of `evaluate`.

    Raises ConfigError, RoleDied: what was over by then is kept.
    """
    with _sole_writer(file), installed_signals() as signals:
        results = read_results(file)
        spec = ask_for_spec(contestants.config, command, lambda: signals.stop, lambda line: complain(f"{line}\n"))
        conditions = find_conditions(contestants, spec, mirror=True, duplicate=duplicate, openings=openings)
        settings, keys = settings_of(conditions), players_of(contestants)
        orders = missing_pairs(results, contestants.listed, keys, conditions, games, only_first=only_first)
        if not orders:
            return Known(results, settings, keys)
        write_results(file, results)  # one that cannot be written is found before the first game
        with temporary_folder("simul-eval-") as folder:
            return _play(
                RunDir(folder), contestants, conditions, spec, orders, file, Known(results, settings, keys),
                workers=workers, signals=signals, quiet=quiet, command=command,
            )  # fmt: skip


@contextmanager
def _sole_writer(file: Path) -> Iterator[None]:
    """Raises ConfigError where another process adds to `file`, or nothing can be written beside it."""
    busy = f"Another command plays games for {file}, and its results would mix with these. Wait for its end."
    with ExitStack() as held:
        try:
            held.enter_context(hold_lock(file.with_name(f".{file.name}.lock"), busy))
        except OSError as error:
            raise ConfigError(f"The results {file} cannot be written: {error.strerror}.") from None
        yield


def players_of(contestants: Contestants) -> dict[str, str]:
    """Keys by label; of a player that is named twice, only the first. Raises ConfigError."""
    first: dict[str, str] = {}
    for label, key in contestant_keys(contestants).items():
        first.setdefault(key, label)
    return {label: key for key, label in first.items()}


def missing_pairs(
    results: PairResults, listed: Sequence[Contestant], keys: dict[str, str], conditions: Conditions, games: int, *,
    only_first: bool = False,
) -> list[_Order]:  # fmt: skip
    """What is to be played. The order of two that met is as before, and their games go on behind the last one."""
    settings, seats, orders = settings_of(conditions), conditions.seats, []
    for first, second in combinations([each for each in listed if each.label in keys], 2):
        if only_first and first != listed[0]:
            continue
        one, other = keys[first.label], keys[second.label]
        known = results.between(one, other, settings)
        if known is not None and known.first != one:
            first, second, one, other = second, first, other, one
        start, played = (known.scheduled, known.games) if known is not None else (0, 0)
        wanted = -(-max(games - played, 0) // seats) * seats
        if wanted:
            pairing = Pairing(first, second, wanted, start=start, mirrored=conditions.mirrored, seats=seats)
            orders.append(_Order((one, other), pairing))
    return orders


def _play(
    run_dir: RunDir, contestants: Contestants, conditions: Conditions, spec: GameSpec, orders: Sequence[_Order],
    file: Path, known: Known, *, workers: int, signals: Signals, quiet: bool, command: Command,
) -> Known:  # fmt: skip
    playing = {each.policy for order in orders for each in (order.pairing.first, order.pairing.second)}
    served = _served(contestants, playing)
    runner = EvalRunner(
        run_dir, conditions.config, spec, signals, command, quiet=quiet, networks=contestants.networks
    )  # fmt: skip
    say: Callable[[str], object] = (lambda line: None) if quiet else complain
    results, missing = known.results, 0
    labels = {key: label for label, key in known.keys.items()}
    searched = {label: policy for label, policy in contestants.searched().items() if policy in served}
    with runner.serving(served, searched):
        for number_of_pair, order in enumerate(orders, 1):
            pairing = order.pairing
            say(
                f"pair {number_of_pair} of {len(orders)}: {pairing.first.label} and {pairing.second.label}, "
                f"{pairing.battles} games\n"
            )
            count = min(workers, pairing.battles // pairing.seats)
            figures = runner.play(pairing_arguments([pairing], count, ["--greedy"]), pairing.battles)
            played = _result(figures, order, known.settings)
            results = add_result(file, {key: labels[key] for key in order.keys}, played)
            missing += pairing.battles - played.games
    return known._replace(results=results, missing=missing)


def _served(contestants: Contestants, playing: set[str]) -> dict[str, Path]:
    """The checkpoints that play; the server's first one is always `learner`, which need not play."""
    if not playing & contestants.served.keys():
        return {}
    return {name: folder for name, folder in contestants.served.items() if name in playing or name == LEARNER_POLICY}


def _result(figures: Metrics, order: _Order, settings: str) -> PairResult:
    pairing, plies = order.pairing, int(number(figures, "opening_plies") or 0)
    outcomes = count_outcomes(figures, 0, pairing, plies)
    played = {name: outcomes[name] for name in OUTCOMES}
    share = beaten_share(outcomes, number(figures, "standings", "0/first", "duel"))
    groups = {wins: int(count) for wins, count in counts(figures, "mirrored", "0").items()}
    return PairResult(
        *order.keys, settings, pairing.seats, pairing.battles, **played, beaten=share * sum(played.values()),
        openings=plies, groups=groups, distinct=outcomes["distinct_games"] or 0,
    )  # fmt: skip
