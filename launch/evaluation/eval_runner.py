"""`simul eval`: exactly N greedy games of checkpoints and bots, with frozen weights and no learner."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from simul.common.client.control import ControlClient
from simul.common.config.matchups import Pairing, encode_pairings, round_robin, share_out
from simul.common.config.schema import Config
from simul.common.config.trust import NOTHING, MarkedValue, Trust
from simul.common.errors import ConfigError
from simul.common.protocol.messages import LEARNER_POLICY
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.common.role.temporary import temporary_folder
from simul.common.runtime.terminal_console import table_console
from simul.common.runtime.terminal_text import print_text
from simul.launch.evaluation.calibration import (
    calibration_rows,
    calibration_text,
    check_outcomes,
    check_returns,
    draw_calibration,
    picture_facts,
)
from simul.launch.evaluation.contestants import Contestants, find_conditions, find_contestants
from simul.launch.evaluation.matrix import matrix_table, standings_table
from simul.launch.evaluation.openings import opening_figures, openings_text, whole_deals
from simul.launch.evaluation.picture import check_picture
from simul.launch.evaluation.result import build_result, result_text
from simul.launch.monitoring.view.output import complain
from simul.launch.processes.process_group import Command, RoleDied, RunningRoles
from simul.launch.processes.role_process import role_command
from simul.launch.processes.role_reports import Metrics, number, sum_metrics
from simul.launch.processes.signals import Signals
from simul.launch.supervisor.checkpoint_files import spec_of
from simul.launch.supervisor.game_spec import ask_for_spec

NONE: Mapping[str, str] = MappingProxyType({})
SHOW_EVERY_SEC = 5.0
STOP_SEC = 15.0
POLL_SEC = 0.1
IDLE_SEC = 3600.0  # for so long, at least, a seat may wait for the searches and engines of the others


def evaluate(
    checkpoints: Sequence[Path], *, game: str = "", opponents: Sequence[str] = (), episodes: int, workers: int = 1,
    overrides: Sequence[str] = (), as_json: bool = False, replays: Path | None = None, mirror: bool = True,
    only_first: bool = False, matrix: bool = False, replay_player: str = "own", calibration: Path | None = None,
    duplicate: bool = False, openings: int | None = None, searches: Sequence[Sequence[str]] = (),
    trust: Trust = NOTHING, command: Command = role_command,
) -> int:  # fmt: skip
    """Play, print the result, return the exit code. Raises ConfigError, RoleDied: what was played by then is printed.

    One checkpoint plays alone or against one opponent; more contestants play a round robin; with `only_first`
    the first one plays each of the others. `game`: of bots without a checkpoint, its name or a configuration.
    `calibration`: picture of the first checkpoint's values beside games won, whose table is printed, too.
    `matrix`: print the table of a round robin also where one checkpoint plays one opponent.
    `duplicate`: refuse where games cannot be mirrored, and play whole deals.
    `openings`: in place of `evaluation.openings`.
    `searches`: settings K=V of the section `search` that each checkpoint plays with, beside the configuration's.
    `trust`: what the command line trusts.
    """
    contestants = find_contestants(
        checkpoints, opponents, game=game, overrides=overrides, searches=searches, trust=trust
    )  # fmt: skip
    listed, served = contestants.listed, contestants.served
    each = ["--greedy"]
    if calibration is not None:
        _check_calibration(calibration, contestants)
        each.append("--calibration")
    if replays is not None:
        each += ["--replays", str(replays.absolute()), "--replay-player", replay_player]
    with installed_signals() as signals:
        spec = ask_for_spec(contestants.config, command, lambda: signals.stop, lambda line: complain(f"{line}\n"))
        config, seats, mirrored = find_conditions(
            contestants, spec, mirror=mirror, duplicate=duplicate, openings=openings
        )  # fmt: skip
        episodes, deals = whole_deals(episodes, seats) if duplicate else (episodes, "")
        pairings = round_robin(listed, episodes, mirrored=mirrored, seats=seats)
        if only_first:
            pairings = [pairing for pairing in pairings if pairing.first == listed[0]]
        workers = min(workers, -(-episodes // seats) if pairings else episodes)
        with temporary_folder("simul-eval-") as folder:
            networks = contestants.networks
            runner = EvalRunner(RunDir(folder), config, spec, signals, command, quiet=as_json, networks=networks)
            arguments = pairing_arguments(pairings, workers, each) if pairings else _shares(episodes, workers, each)
            wanted = sum(pairing.battles for pairing in pairings) if pairings else episodes
            failure = None
            try:
                with runner.serving(served, contestants.searched()):
                    figures = runner.play(arguments, wanted)
            except RoleDied as error:
                figures, failure = runner.figures(), error
                if not number(figures, "episodes", "finished"):
                    raise
            result = build_result(figures, listed, pairings, wanted, served, runner.versions, spec.name)
            if calibration is not None:
                result["calibration"] = calibration_rows(figures)
            if deals and not as_json:
                print_text(deals)
            _print(result, as_json=as_json, matrix=matrix)
            if calibration is not None:  # last: what has been played is printed before anything can fail
                check_outcomes(figures)
                draw_calibration(result["calibration"], calibration, picture_facts(result))
            if failure is not None:
                raise failure
            return 0 if result["episodes"] == wanted else 1


@contextmanager
def installed_signals() -> Iterator[Signals]:
    """Signals whose handlers are installed for the time of the block."""
    signals = Signals()
    signals.install()
    try:
        yield signals
    finally:
        signals.restore()


class EvalRunner:
    """Starts a server and workers in `run_dir` and waits until every episode is played; `signals` are installed.

    with runner.serving(served):
        figures = runner.play(arguments, episodes)  # more than once, where the server shall stay
    """

    def __init__(
        self, run_dir: RunDir, config: Config, spec: GameSpec, signals: Signals, command: Command = role_command, *,
        quiet: bool, networks: Collection[MarkedValue] = (),
    ) -> None:  # fmt: skip
        """`networks`: of the checkpoints, trusted."""
        self._networks = networks
        self._run_dir = run_dir
        server = msgspec.structs.replace(
            config.server, idle_timeout_sec=max(config.server.idle_timeout_sec, IDLE_SEC)
        )  # fmt: skip
        self._config = msgspec.structs.replace(config, server=server)
        self._spec = spec
        self._signals = signals
        self._quiet = quiet
        self._roles = RunningRoles(run_dir, command)
        self._workers = 0
        self.versions: dict[str, float | None] = {}  # of the policies that played, by name

    @contextmanager
    def serving(self, served: Mapping[str, Path], searched: Mapping[str, str] = NONE) -> Iterator[None]:
        """A server for the time of the block.

        Args:
            served: checkpoints by policy name, the first is `learner`; empty: only bots play, without a server.
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
                self._start_server(served[LEARNER_POLICY])
                self._load({name: folder for name, folder in served.items() if name != LEARNER_POLICY})
                self._check_memory(searched)
            yield
            self._roles.group.stop("inference_server", STOP_SEC, self._poll)

    def play(self, workers: Sequence[Sequence[str]], episodes: int) -> Metrics:
        """Play with new workers; returns their summed figures. Raises RoleDied.

        Args:
            workers: arguments of each worker.
            episodes: of all workers together, for the progress lines.
        """
        self._run_workers(workers, episodes)
        return self.figures()

    def figures(self) -> Metrics:
        """What the workers have reported, summed."""
        each = self._reported()
        openings = opening_figures(
            [figures["opening_plies"] for figures in each if "opening_plies" in figures],
            [figures["game_identities"] for figures in each if "game_identities" in figures],
        )  # fmt: skip
        returns = [value for figures in each for value in figures.get("episode_returns", ())]
        return {**sum_metrics(each), "episode_returns": returns, **openings}

    def _start_server(self, checkpoint: Path) -> None:
        group = self._roles.group
        group.start("inference_server", 1, self._config.server.threads, [["--checkpoint", str(checkpoint)]])
        group.wait_until_ready("inference_server", self._poll, lambda sentence: complain(f"{sentence}\n"))
        self.versions[LEARNER_POLICY] = number(self._roles.reports.totals("inference_server"), "policy_version")

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
                    f"{label} has a memory (LSTM or GRU), and positions of drawn worlds have no recurrent state; "
                    "search.worlds is for networks without one. Leave it out."
                )

    def _run_workers(self, workers: Sequence[Sequence[str]], episodes: int) -> None:
        self._workers = len(workers)
        self._roles.group.start("env_worker", len(workers), 1, workers)
        shown_at = time.monotonic()
        while playing := self._playing():
            self._poll()
            if time.monotonic() - shown_at >= SHOW_EVERY_SEC and not self._quiet:
                shown_at = time.monotonic()
                done = number(sum_metrics(self._reported()), "episodes", "finished") or 0
                sys.stderr.write(
                    f"{done:.0f} of {episodes} played, {playing} {'worker' if playing == 1 else 'workers'} left\n"
                )
        while self._roles.wait(POLL_SEC):  # the final reports
            self._receive()

    def _reported(self) -> list[Metrics]:
        """The last figures of each worker that plays now, or was the last to play."""
        keys = [("env_worker", index) for index in range(self._workers)]
        members = self._roles.group.members
        reports = (self._roles.reports.last_report(key, members[key].child.run_id) for key in keys)
        return [report.metrics for report in reports if report is not None]

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


def _check_calibration(file: Path, contestants: Contestants) -> None:
    """Raises ConfigError where nothing can be compared, or no picture be written."""
    if not contestants.served:
        raise ConfigError("--calibration compares a checkpoint's values with games won: name a --checkpoint.")
    config = contestants.config
    seats = config.game_section.seats() or spec_of(contestants.served[LEARNER_POLICY]).seats
    check_returns(config, seats)
    if len(contestants.listed) < 2:
        raise ConfigError("--calibration needs two players: name an --opponent, or a second --checkpoint.")
    check_picture("--calibration", file)


def _print(result: Mapping[str, Any], *, as_json: bool, matrix: bool) -> None:
    kinds = [bool(contestant["opponent"]) for contestant in result["contestants"]]
    if as_json:
        print_text(msgspec.json.encode(result).decode())
    elif kinds in ([False], [False, True]) and not matrix:
        print_text(result_text(result))
    else:
        console = table_console()
        if openings := openings_text(result):
            print_text(openings)
        print_text(f"game {result['game']}")
        console.print(matrix_table(result))
        console.print(standings_table(result))
    if not as_json and result.get("calibration"):
        print_text(calibration_text(result["calibration"]))


def _shares(episodes: int, workers: int, each: list[str]) -> list[list[str]]:
    """Arguments of each worker, of games without opponents."""
    shares = [episodes // workers + (index < episodes % workers) for index in range(workers)]
    return [["--episodes", str(share), *each] for share in shares]


def pairing_arguments(pairings: Sequence[Pairing], workers: int, each: Sequence[str]) -> list[list[str]]:
    """Arguments of each worker."""
    return [
        ["--episodes", str(sum(part.battles for part in share)), "--pairings", encode_pairings(share), *each]
        for share in share_out(pairings, workers)
    ]
