"""`simul eval`: exactly N greedy games of checkpoints and bots, with frozen weights and no learner."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from simul.common.client.control import ControlClient
from simul.common.config.game_description import TABLE_PLAYER, Game
from simul.common.config.games import GAMES, game_called
from simul.common.config.loader import load_config, load_game
from simul.common.config.matchups import Contestant, Pairing, distinct_labels, encode_pairings, round_robin, share_out
from simul.common.config.opponents import SCRIPTED, is_own, opponent_kind
from simul.common.config.schema import Config, OpponentsConfig
from simul.common.config.search import SearchConfig
from simul.common.config.trust import NOTHING, MarkedValue, Trust, values_to_trust
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.role.temporary import temporary_folder
from simul.common.runtime.installation import CONFIGS
from simul.common.runtime.terminal_console import SafeConsole
from simul.common.runtime.terminal_text import print_text
from simul.launch.evaluation.calibration import (
    calibration_rows,
    calibration_text,
    check_file,
    draw_calibration,
    picture_facts,
)
from simul.launch.evaluation.matrix import matrix_table, standings_table
from simul.launch.evaluation.openings import opening_figures, openings_text
from simul.launch.evaluation.result import build_result, result_text
from simul.launch.monitoring.view.output import complain
from simul.launch.processes.process_group import Command, RoleDied, RunningRoles
from simul.launch.processes.role_process import role_command
from simul.launch.processes.role_reports import Metrics, number
from simul.launch.processes.signals import Signals
from simul.launch.supervisor.checkpoint_files import checkpoint_labels, config_of, networks_of, newest_checkpoint
from simul.launch.supervisor.game_spec import ask_for_spec

OF_WORLDS = ("worlds", "candidates")  # settings of the search of policies that were trained without one
OF_ALL = ("outcome", "requests_in_flight", "return_scale", "symmetries")  # settings of the search of a whole worker
MOST_PLIES = 1000
NONE: Mapping[str, str] = MappingProxyType({})
WIDEST = 1000  # columns of a table where the output is no terminal
SHOW_EVERY_SEC = 5.0
STOP_SEC = 15.0
POLL_SEC = 0.1


def evaluate(
    checkpoints: Sequence[Path], *, game: str = "", opponents: Sequence[str] = (), episodes: int, workers: int = 1,
    overrides: Sequence[str] = (), as_json: bool = False, replays: Path | None = None, mirror: bool = True,
    only_first: bool = False, matrix: bool = False, replay_player: str = "own", calibration: Path | None = None,
    duplicate: bool = False, openings: int | None = None, searches: Sequence[Sequence[str]] = (),
    trust: Trust = NOTHING, command: Command = role_command,
) -> int:  # fmt: skip
    """Play, print the result, return the exit code. Raises ConfigError, RoleDied.

    One checkpoint plays alone or against one opponent; more contestants play a round robin; with `only_first`
    the first one plays each of the others. `game`: of bots without a checkpoint, its name or a configuration.
    `calibration`: picture of the first checkpoint's values beside what came, whose table is printed, too.
    `matrix`: print the table of a round robin also where one checkpoint plays one opponent.
    `duplicate`: refuse where games cannot be mirrored. `openings`: in place of `evaluation.openings`.
    `searches`: settings K=V of the section `search` that each checkpoint plays with, beside the configuration's.
    `trust`: what the command line trusts.
    """
    folders = [newest_checkpoint(checkpoint) for checkpoint in checkpoints]
    config = config_of(folders[0], overrides, trust) if folders else _config_of_bots(game, opponents, overrides)
    networks = networks_of(folders, trust.and_also(values_to_trust(config)))
    bots = _check_game(config, len(folders), opponents, game)
    config = _with_opponents(config, bots)
    each = ["--greedy"]
    if calibration is not None:
        _check_calibration(calibration, folders, bots)
        each.append("--calibration")
    if replays is not None:
        each += ["--replays", str(replays.absolute()), "--replay-player", replay_player]
    served = {"learner" if not index else f"eval/{index}": folder for index, folder in enumerate(folders)}
    labels = distinct_labels([*checkpoint_labels(folders, searches), *bots])
    words = [*searches, *[()] * (len(folders) - len(searches))]
    own = [_own_search(config, folder, overrides, each, trust) for folder, each in zip(folders, words, strict=True)]
    contestants = [
        *(Contestant(label, policy=policy, search=search) for label, policy, search in zip(labels, served, own)),
        *(Contestant(label, bot=bot) for label, bot in zip(labels[len(folders) :], bots)),
    ]
    signals = Signals()
    signals.install()
    try:
        spec = ask_for_spec(config, command, lambda: signals.stop, lambda line: complain(f"{line}\n"))
        seats = config.game_section.seats() or spec.seats
        if seats == 1 and len(contestants) > 1:
            raise ConfigError(f"The game {spec.name} has one seat and no opponents; name one --checkpoint.")
        mirrored = mirror and config.game_section.draws_seeds()
        _check_seats(config, seats, duplicate=duplicate, mirrored=mirrored)
        config = _with_openings(config, openings, seats, len(contestants))
        pairings = round_robin(contestants, episodes, mirrored=mirrored, seats=seats)
        if only_first:
            pairings = [pairing for pairing in pairings if pairing.first == contestants[0]]
        workers = min(workers, -(-episodes // seats) if pairings else episodes)
        with temporary_folder("simul-eval-") as folder:
            runner = EvalRunner(RunDir(folder), config, spec, signals, command, quiet=as_json, networks=networks)
            arguments = _arguments(pairings, workers, each) if pairings else _shares(episodes, workers, each)
            wanted = sum(pairing.battles for pairing in pairings) if pairings else episodes
            searched = {
                each.label: each.policy for each in contestants if each.policy and (each.search or config.search).worlds
            }
            figures = runner.run(served, arguments, wanted, searched)
            result = build_result(figures, contestants, pairings, wanted, served, runner.versions, spec.name)
            if calibration is not None:
                result["calibration"] = calibration_rows(figures)
                draw_calibration(result["calibration"], calibration, picture_facts(result))
            _print(result, as_json=as_json, matrix=matrix)
            return 0 if result["episodes"] == wanted else 1
    finally:
        signals.restore()


class EvalRunner:
    """Starts a server and workers in `run_dir` and waits until every episode is played; `signals` are installed."""

    def __init__(
        self, run_dir: RunDir, config: Config, spec: GameSpec, signals: Signals, command: Command = role_command, *,
        quiet: bool, networks: Collection[MarkedValue] = (),
    ) -> None:  # fmt: skip
        """`networks`: of the checkpoints, trusted."""
        self._networks = networks
        self._run_dir = run_dir
        self._config = config
        self._spec = spec
        self._signals = signals
        self._quiet = quiet
        self._roles = RunningRoles(run_dir, command)
        self.versions: dict[str, float | None] = {}  # of the policies that played, by name

    def run(
        self, served: Mapping[str, Path], workers: Sequence[Sequence[str]], episodes: int,
        searched: Mapping[str, str] = NONE,
    ) -> Metrics:  # fmt: skip
        """Play; returns the summed figures of all workers.

        Args:
            served: checkpoints by policy name, the first is `learner`; empty: only bots play.
            workers: arguments of each worker.
            episodes: of all workers together, for the progress lines.
            searched: policies that search drawn worlds, by label.

        Raises:
            ConfigError: a checkpoint does not fit, or searches and has a memory.
            RoleDied: a process failed, or a signal came.
        """
        self._run_dir.create()
        self._run_dir.write_config(self._config, self._networks)
        self._run_dir.write_spec(self._spec)
        with self._roles:
            if served:
                self._start_server(served["learner"])
                self._load({name: folder for name, folder in served.items() if name != "learner"})
                self._check_memory(searched)
            self._run_workers(workers, episodes)
            self._roles.group.stop("inference_server", STOP_SEC, self._poll)
        figures = self._roles.reports.totals("env_worker")
        of_each = functools.partial(self._roles.reports.of_each, "env_worker")
        openings = opening_figures(of_each("opening_plies"), of_each("game_identities"))
        returns = [value for listed in of_each("episode_returns") for value in listed]
        return {**figures, "episode_returns": returns, **openings}

    def _start_server(self, checkpoint: Path) -> None:
        group = self._roles.group
        group.start("inference_server", 1, self._config.server.threads, [["--checkpoint", str(checkpoint)]])
        group.wait_until_ready("inference_server", self._poll, lambda sentence: complain(f"{sentence}\n"))
        self.versions["learner"] = number(self._roles.reports.totals("inference_server"), "policy_version")

    def _load(self, others: Mapping[str, Path]) -> None:
        if not others:
            return
        with ControlClient(self._run_dir) as control:
            for name, folder in others.items():
                answer = control.load(name, folder)
                self._poll()
        self.versions |= {policy.name: policy.policy_version for policy in answer.policies}

    def _check_memory(self, searched: Mapping[str, str]) -> None:
        """Raises ConfigError where a policy that searches has a memory."""
        if not searched:
            return
        with ControlClient(self._run_dir) as control:
            facts = {policy.name: policy for policy in control.policies().policies}
        for label, policy in searched.items():
            if facts[policy].memory:
                raise ConfigError(
                    f"{label} has a memory (an LSTM), which a position that nobody has played does not have; "
                    "search.worlds is for networks without one. Leave it out."
                )

    def _run_workers(self, workers: Sequence[Sequence[str]], episodes: int) -> None:
        self._roles.group.start("env_worker", len(workers), 1, workers)
        shown_at = time.monotonic()
        while playing := self._playing():
            self._poll()
            if time.monotonic() - shown_at >= SHOW_EVERY_SEC and not self._quiet:
                shown_at = time.monotonic()
                done = number(self._roles.reports.totals("env_worker"), "episodes", "finished") or 0
                sys.stderr.write(
                    f"{done:.0f} of {episodes} played, {playing} {'worker' if playing == 1 else 'workers'} left\n"
                )
        while self._roles.wait(POLL_SEC):  # the final reports
            self._receive()

    def _playing(self) -> int:
        """The number of workers that have not finished. Raises RoleDied where one, or the server, failed."""
        playing = 0
        for (role, _), member in self._roles.group.members.items():
            code = member.child.exit_code()
            if role == "env_worker" and code in (None, 0):
                playing += code is None
            elif code is not None:
                self._roles.group.check_alive()
        return playing

    def _poll(self) -> bool:
        """Receive reports. Always False: no stop is cut short. Raises RoleDied after a signal."""
        if self._signals.stop:
            raise RoleDied("The evaluation was interrupted.", 130)
        self._receive(POLL_SEC)
        return False

    def _receive(self, timeout_sec: float = 0.0) -> None:
        """Receive reports. Their events, such as why a game was aborted, go to stderr."""
        for sentence in self._roles.receive_reports(timeout_sec, of_failures=False):
            complain(f"{sentence}\n")


def _with_opponents(config: Config, bots: Sequence[str]) -> Config:
    """With `bots` as the only opponents: the game refuses those that it cannot have, and runs no others."""
    evaluation = msgspec.structs.replace(config.evaluation, every_decisions=0, opponents=tuple(dict.fromkeys(bots)))
    opponents = OpponentsConfig(limit_sec=config.opponents.limit_sec)
    return msgspec.structs.replace(config, opponents=opponents, evaluation=evaluation)


def _config_of_bots(name: str, opponents: Sequence[str], overrides: Sequence[str]) -> Config:
    """The configuration of the game `name`, or the shipped one of the first game that has all of `opponents`.

    Raises ConfigError.
    """
    with_bots = {name: game for name, game in GAMES.items() if game.pairings and game.scripted}
    config = load_game(name, overrides) if name else None  # first: a misspelt name is the fault to tell
    if config is not None and config.game_section.seats() == 1:
        raise ConfigError(f"The game {config.game_title} has one seat and no opponents; name one --checkpoint.")
    bots = opponents if config is not None else [opponent_kind(opponent, SCRIPTED) for opponent in opponents]
    if len(bots) < 2:
        raise ConfigError(f"Name a --checkpoint. Bots play without one, two of them or more: {_bots_of(with_bots)}.")
    if config is not None:
        return config
    if own := [bot for bot in bots if is_own(bot)]:
        raise ConfigError(f"Name the game that {own[0]} plays: simul eval GAME --opponent {' --opponent '.join(bots)}.")
    for game in with_bots.values():
        if set(bots) <= set(game.scripted):
            return load_config(CONFIGS / f"{game.configuration}.yaml", overrides)
    raise ConfigError(f"No game has all of the opponents {', '.join(bots)}: {_bots_of(with_bots)}.")


def _bots_of(games: Mapping[str, Game]) -> str:
    return "; ".join(f"{name}: --opponent {' --opponent '.join(game.scripted)}" for name, game in games.items())


def _check_game(config: Config, checkpoints: int, opponents: Sequence[str], named: str) -> list[str]:
    """The kinds of `opponents`. Raises ConfigError. `named`: the game on the command line, empty for none."""
    game = game_called(config.game)
    if checkpoints and named not in ("", config.game, game.configuration):
        raise ConfigError(f"The checkpoint is of the game {config.game}, not {named}. Leave {named} out.")
    if not game.pairings and (opponents or checkpoints > 1):
        raise ConfigError(
            f"The game {config.game_title} has no opponents; leave --opponent out, and name one --checkpoint."
        )
    if game.pairings and game.seats and checkpoints == 1 and not opponents:
        raise ConfigError(f"Name an opponent, or a second --checkpoint: --opponent {', '.join(game.scripted)}.")
    return [opponent_kind(name, game.scripted) for name in opponents]


def _own_search(
    config: Config, checkpoint: Path, overrides: Sequence[str], settings: Sequence[str], trust: Trust
) -> SearchConfig | None:  # fmt: skip
    """With which the checkpoint plays beside others, with `settings`; None: as `config` says. Raises ConfigError."""
    algorithm = config.learner.algorithm
    for setting in settings:
        key = setting.partition("=")[0]
        if key in OF_ALL:
            raise ConfigError(f"#{setting}: all contestants have one {key}; use --set search.{setting}.")
        if (key in OF_WORLDS) == (algorithm == "alphazero"):
            wanted = "simulations=64, say" if algorithm == "alphazero" else "worlds=60 and candidates=4, say"
            raise ConfigError(
                f"#{setting}: the first checkpoint was trained with the algorithm {algorithm}, whose policies have no "
                f"such setting of a search. Leave it out, or set {wanted}."
            )
    own = config_of(checkpoint, [*overrides, *(f"search.{setting}" for setting in settings)], trust).search
    own = msgspec.structs.replace(own, **{key: getattr(config.search, key) for key in OF_ALL})
    return None if own == config.search else own


def _with_openings(config: Config, plies: int | None, seats: int, contestants: int) -> Config:
    """With `plies` of `--openings`. Raises ConfigError where the game begins with none."""
    if plies is None:
        return config
    if plies > MOST_PLIES:
        raise ConfigError(f"--openings: expected at most {MOST_PLIES} plies, got {plies}.")
    if plies and (game_called(config.game).player != TABLE_PLAYER or seats == 1 or contestants < 2):
        raise ConfigError(
            f"--openings: only games of a table begin with drawn plies, and only with two contestants or more; this is "
            f"{config.game_title} with {contestants}. Leave --openings out."
        )
    evaluation = msgspec.structs.replace(config.evaluation, openings=plies)
    return msgspec.structs.replace(config, evaluation=evaluation)


def _check_seats(config: Config, seats: int, *, duplicate: bool, mirrored: bool) -> None:
    """Raises ConfigError where games of one seat, or with chance of others, are to be played from every seat."""
    if duplicate and (seats == 1 or not mirrored):
        why = "has one seat" if seats == 1 else "is dealt by a server"
        raise ConfigError(f"The game {config.game_title} {why}: nothing can be dealt again; leave --duplicate out.")


def _check_calibration(file: Path, folders: Sequence[Path], bots: Sequence[str]) -> None:
    """Raises ConfigError."""
    if not folders or len(folders) + len(bots) < 2:
        raise ConfigError("--calibration compares a checkpoint's values with games won: name a --checkpoint and a foe.")
    check_file(file)


def _print(result: Mapping[str, Any], *, as_json: bool, matrix: bool) -> None:
    kinds = [bool(contestant["opponent"]) for contestant in result["contestants"]]
    if as_json:
        print_text(msgspec.json.encode(result).decode())
    elif kinds in ([False], [False, True]) and not matrix:
        print_text(result_text(result))
    else:
        console = SafeConsole(width=None if sys.stdout.isatty() else WIDEST)
        print_text(f"game {result['game']}")
        if openings := openings_text(result):
            print_text(openings)
        console.print(matrix_table(result))
        console.print(standings_table(result))
    if not as_json and "calibration" in result:
        print_text(calibration_text(result["calibration"]))


def _shares(episodes: int, workers: int, each: list[str]) -> list[list[str]]:
    """Arguments of each worker, of games without opponents."""
    shares = [episodes // workers + (index < episodes % workers) for index in range(workers)]
    return [["--episodes", str(share), *each] for share in shares]


def _arguments(pairings: Sequence[Pairing], workers: int, each: list[str]) -> list[list[str]]:
    """Arguments of each worker."""
    return [
        ["--episodes", str(sum(part.battles for part in share)), "--pairings", encode_pairings(share), *each]
        for share in share_out(pairings, workers)
    ]
