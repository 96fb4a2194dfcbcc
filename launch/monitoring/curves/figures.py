"""The figures of a run as curves: one report about once a second at first, over the decisions of the whole run.

Every name is a template of `CURVES`, explained in docs/metrics.md; `<opponent>` and the like stand for what is known
only while the run plays. `curve_log.py` hands the reports on. Pure: time is an argument.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from simul.common.config.game_description import PAST_SELVES
from simul.common.role.report_names import ALL_EPISODES, OWN_FIGURE, SEAT
from simul.common.runtime.intervals import wilson
from simul.launch.monitoring.snapshot import Snapshot
from simul.launch.processes.role_process import LOG_NAMES
from simul.launch.processes.role_reports import counts, decisions_of, number

EPISODE_FIGURES = ("return_mean", "return_min", "return_max", "length_mean", "length_min", "length_max")
PERCENTILES = ("latency_us", "queue_wait_us", "forward_us")
WORKER_STAGES = {  # curves of the workers' time, and the stages of `stage_sec` that each is the sum of
    "wait": ("wait",),
    "envs": ("step", "encode", "search"),
    "messages": ("submit", "receive"),
    "other": ("report",),
}
# Figures of the learner's reports that are curves under the same name.
LEARNER_FIGURES = (
    "policy_version", "decisions_learned", "decisions_per_sec", "busy_share", "ratio_error_p50", "ratio_error_p99",
    "learning_rate", "entropy_coefficient", "reward_mean", "largest_reward", "skipped_minibatches", "steps_waiting",
    "policy_loss", "value_loss", "entropy", "kl", "clip_fraction", "explained_variance", "gradient_norm",
    "opponent_loss", "opponent_accuracy", "ending_loss", "store_behind_sec",
)  # fmt: skip


class LearnerCurve(NamedTuple):
    """`learner/NAME`: the figure at `path` of the learner's report, and its `meaning` in docs/metrics.md."""

    name: str
    path: tuple[str, ...]
    meaning: str


_AS_NAMED = "as the figures of these names of the [learner](#learner)"
_LAG = "`policy_lag` in the last update"
_SAMPLES = "`samples.stored`, `replay.held` and `replay.uses` of the learner"
LEARNER_CURVES = (
    *(LearnerCurve(name, (name,), _AS_NAMED) for name in LEARNER_FIGURES),
    LearnerCurve("policy_lag_mean", ("policy_lag", "recent_mean"), _LAG),
    LearnerCurve("policy_lag_max", ("policy_lag", "recent_max"), _LAG),
    LearnerCurve("unrolls_learned", ("unrolls", "learned"), "unrolls learned from"),
    LearnerCurve("samples_stored", ("samples", "stored"), _SAMPLES),
    LearnerCurve("replay_held", ("replay", "held"), _SAMPLES),
    LearnerCurve("replay_uses", ("replay", "uses"), _SAMPLES),
)
EVALUATION_CURVES = (
    "evaluation/score", "evaluation/best_score", "evaluation/games", "evaluation/policy_version",
    "evaluation/decisions_learned", "evaluation/seconds", "evaluation/return_mean", "evaluation/return_min",
    "evaluation/return_max", "evaluation/win_rate/<opponent>", "evaluation/win_rate_low/<opponent>",
    "evaluation/win_rate_high/<opponent>", "evaluation/mean_score/<opponent>",
)  # fmt: skip
LEAGUE = "league/"  # prefix of the figures of league.json
LATEST_SELF = "learner"  # its <member> or <opponent> in these
LEAGUE_CURVES = (
    "league/policy_version", "league/rank", "league/members", "league/elo/<member>", "league/elo_low/<member>",
    "league/elo_high/<member>", "league/win_rate/<member>/<opponent>", "league/win_rate_low/<member>/<opponent>",
    "league/win_rate_high/<member>/<opponent>",
)  # fmt: skip
# Templates of all names, in the order of the columns of curves.csv.
CURVES = (
    "run/decisions_per_sec", "run/episodes_per_sec", "run/batches_per_sec",
    *(f"episodes/{name}" for name in EPISODE_FIGURES),
    *(f"episodes_against/<opponent>/{name}" for name in EPISODE_FIGURES),
    "win_rate/<opponent>", "win_rate_low/<opponent>", "win_rate_high/<opponent>",
    "game/<figure>", "game_against/<opponent>/<figure>",
    "episodes_at/<seat>/return_mean", "game_at/<seat>/<figure>",
    "episodes/aborted/<cause>", "dropped/steps/<cause>", "dropped/unrolls/<cause>",
    "dropped/samples/<cause>",
    "server/mean_batch", *(f"server/{name}_{share}" for name in PERCENTILES for share in ("p50", "p99")),
    "server/rows_waiting", "server/sessions", "server/rows_errored/<code>",
    "server/policy_version_min", "server/policy_version_max",
    *(f"worker/{stage}_share" for stage in WORKER_STAGES), "worker/env_step_us",
    "process/<role>/cpu_percent", "process/<role>/memory_mb",
    *(f"learner/{curve.name}" for curve in LEARNER_CURVES),
    *EVALUATION_CURVES,
    *LEAGUE_CURVES,
)  # fmt: skip
MOST_GAMES = 1e9
FIRST_INTERVAL_SEC, LAST_INTERVAL_SEC = 1.0, 10.0
INTERVAL_SHARE = 0.01  # of the time that the run has trained: reports grow rarer, so that a week fits a small file


class Figure(NamedTuple):
    """One number; `label`, and `second`, replace the parts of the template `curve` in angle brackets, in order."""

    curve: str
    value: float
    label: str = ""
    second: str = ""

    @property
    def labels(self) -> dict[str, str]:
        """By the name in angle brackets."""
        return dict(zip(re.findall(r"<(\w+)>", self.curve), (self.label, self.second)))

    @property
    def name(self) -> str:
        """The name that writers use."""
        return re.sub(r"<(\w+)>", lambda part: self.labels[part[1]].replace("/", "_"), self.curve)


class CurvePosition(msgspec.Struct, frozen=True):
    """How far a run is over all its starts: the x axes of its curves. Neither ever goes back."""

    decisions: float = 0.0
    training_sec: float = 0.0


class CurveReport(msgspec.Struct, frozen=True):
    """What a writer gets. `figures`: by name, finite numbers only; what is not known yet is left out."""

    decisions: int
    training_sec: float
    time: float  # seconds since the epoch
    figures: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """The same as plain builtins, for a callback."""
        return {"decisions": self.decisions, "training_sec": self.training_sec, "time": self.time,
                "figures": dict(self.figures)}  # fmt: skip


class CurveRecorder:
    """Decides when a report is due and makes it of two snapshots. `before`: where the last start of the run ended."""

    def __init__(self, before: CurvePosition) -> None:
        self.position = before
        self.last: CurveReport | None = None
        self.figures: list[Figure] = []  # of the last report, without those of evaluations and the league
        self.start = before
        self._previous: Snapshot | None = None
        self._next = 0.0  # seconds since readiness of this start

    def advance(self, snapshot: Snapshot) -> CurvePosition:
        """Where the run is now."""
        decisions = self.start.decisions + decisions_of(snapshot.server)
        self.position = CurvePosition(decisions, round(self.start.training_sec + snapshot.ready_sec, 2))
        return self.position

    def record(self, snapshot: Snapshot, played: Sequence[Figure] = (), *, last: bool = False) -> CurveReport | None:
        """The report of a run that trains, if one is due; with figures of games that were `played` it is due at once.

        `last`: the run has stopped. Its last state is always reported, without rates: it did not train meanwhile.
        """
        if not last and (snapshot.phase != "training" or (snapshot.ready_sec < self._next and not played)):
            return None
        interval_sec = INTERVAL_SHARE * self.position.training_sec
        self._next = snapshot.ready_sec + min(max(interval_sec, FIRST_INTERVAL_SEC), LAST_INTERVAL_SEC)
        self.figures = curve_figures(snapshot, None if last else self._previous)
        figures = {figure.name: figure.value for figure in (*self.figures, *played)}
        self._previous = snapshot
        self.last = CurveReport(round(self.position.decisions), self.position.training_sec, snapshot.time, figures)
        return self.last


def curve_figures(now: Snapshot, before: Snapshot | None) -> list[Figure]:
    """Every figure that is known. Rates and means over time are of the interval from `before` to `now`."""
    parts = (_rates(now, before), _episodes(now), _lost(now), _server(now), _worker(now, before), _processes(now),
             _learner(now))  # fmt: skip
    return [figure for part in parts for figure in part if math.isfinite(figure.value)]


def evaluation_figures(result: Mapping[str, Any]) -> list[Figure]:
    """Figures of a finished evaluation: numbers by the last part of their name, dicts of them by opponent."""
    found = []
    for curve in EVALUATION_CURVES:
        key = curve.removeprefix("evaluation/").partition("/")[0]
        value = result.get(key)
        if isinstance(value, Mapping):
            found += [Figure(curve, each, label) for label, each in value.items()]
        elif value is not None:
            found.append(Figure(curve, value))
    return [figure for figure in found if math.isfinite(figure.value)]


def _rates(now: Snapshot, before: Snapshot | None) -> Iterator[Figure]:
    if before is None:
        return
    decisions = decisions_of(now.server) - decisions_of(before.server) if now.server else None
    for name, process, grown in (
        ("decisions", "inference_server", decisions),
        ("episodes", "env_worker", _growth(now, before, "workers", "episodes", "finished")),
        ("batches", "inference_server", _growth(now, before, "server", "batches")),
    ):
        seconds = _counted(now, process) - _counted(before, process)
        if grown is not None and seconds > 0 and _counted(before, process) >= 0:  # not of the start-up
            yield Figure(f"run/{name}_per_sec", grown / seconds)
    rows, batches = _growth(now, before, "server", "decisions"), _growth(now, before, "server", "batches")
    if rows is not None and batches:
        yield Figure("server/mean_batch", rows / batches)


def _counted(snapshot: Snapshot, role: str) -> float:
    """When the figures of a role were counted, in seconds since readiness."""
    return snapshot.counted_sec.get(role, snapshot.ready_sec)


def _growth(now: Snapshot, before: Snapshot, role: str, *path: str) -> float | None:
    """How much a counter of `server` or `workers` has grown; None where it is not reported."""
    value = number(getattr(now, role), *path)
    return None if value is None else value - (number(getattr(before, role), *path) or 0)


def _episodes(now: Snapshot) -> Iterator[Figure]:
    recent = now.workers.get("recent") or {}
    for opponent in sorted(recent):
        figures = counts(recent, opponent)
        own = {name.removeprefix(OWN_FIGURE): value for name, value in figures.items() if name.startswith(OWN_FIGURE)}
        if seat := seat_of(opponent):
            if "return_mean" in figures:
                yield Figure("episodes_at/<seat>/return_mean", figures["return_mean"], seat)
            for name, value in own.items():
                yield Figure("game_at/<seat>/<figure>", value, seat, name)
            continue
        for name in EPISODE_FIGURES if not opponent.startswith(PAST_SELVES) else ():  # there are many: only who wins
            if name in figures and opponent == ALL_EPISODES:
                yield Figure(f"episodes/{name}", figures[name])
            elif name in figures:
                yield Figure(f"episodes_against/<opponent>/{name}", figures[name], opponent)
        for name, value in own.items() if not opponent.startswith(PAST_SELVES) else ():
            if opponent == ALL_EPISODES:
                yield Figure("game/<figure>", value, name)
            else:
                yield Figure("game_against/<opponent>/<figure>", value, opponent, name)
    for opponent, recent_games in recent_win_rates(now.workers).items():
        yield Figure("win_rate/<opponent>", recent_games.win_rate, opponent)
        yield Figure("win_rate_low/<opponent>", recent_games.low, opponent)
        yield Figure("win_rate_high/<opponent>", recent_games.high, opponent)


class RecentGames(NamedTuple):
    """Share won of the recent `games` against an opponent, with Wilson's 95% interval."""

    games: int
    win_rate: float
    low: float
    high: float


def recent_win_rates(workers: Mapping[str, Any]) -> dict[str, RecentGames]:
    """By opponent, past selves and self-play among them."""
    found: dict[str, RecentGames] = {}
    recent: Any = workers.get("recent")
    for opponent in sorted(recent) if isinstance(recent, Mapping) else ():
        games, rate = number(recent, opponent, "games") or 0.0, number(recent, opponent, "win_rate")
        if rate is not None and 0.0 <= rate <= 1.0 and 1.0 <= games <= MOST_GAMES:  # status.json may come from others
            low, high = wilson(round(rate * games), round(games))
            found[opponent] = RecentGames(round(games), rate, low, high)
    return found


def seat_of(group: str) -> str:
    """`0` of the group `seat_0`; "" of all others."""
    seat = group.removeprefix(SEAT)
    return seat if group.startswith(SEAT) and seat.isdecimal() else ""


def _lost(now: Snapshot) -> Iterator[Figure]:
    for curve, metrics, path in (
        ("episodes/aborted/<cause>", now.workers, ("episodes", "aborted")),
        ("dropped/steps/<cause>", now.server, ("steps", "dropped")),
        ("dropped/unrolls/<cause>", now.learner, ("unrolls", "dropped")),
        ("dropped/samples/<cause>", now.learner, ("samples", "dropped")),
        ("server/rows_errored/<code>", now.server, ("rows_errored",)),
    ):
        for cause, n in sorted(counts(metrics, *path).items()):
            yield Figure(curve, n, cause)


def _server(now: Snapshot) -> Iterator[Figure]:
    for name in PERCENTILES:
        for share in ("p50", "p99"):
            if (value := number(now.server, name, share)) is not None:
                yield Figure(f"server/{name}_{share}", value)
    for name, key in (("rows_waiting", "waiting"), ("sessions", "sessions")):
        if (value := number(now.server, key)) is not None:
            yield Figure(f"server/{name}", value)
    for name, key in (("policy_version_min", "policy_version"), ("policy_version_max", "policy_version_max")):
        if now.servers and (value := number(now.server, key)) is not None:
            yield Figure(f"server/{name}", value)


def worker_split(now: Snapshot, before: Snapshot | None) -> dict[str, float]:
    """Share of the workers' time by stage, and `env_step_us`; since `before`, or since the start; {} without time."""
    seconds, earlier = counts(now.workers, "stage_sec"), counts(before.workers, "stage_sec") if before else {}
    spent = {
        curve: sum(seconds.get(stage, 0.0) - earlier.get(stage, 0.0) for stage in stages)
        for curve, stages in WORKER_STAGES.items()
    }
    if (total := sum(spent.values())) <= 0:
        return {}
    split = {f"{stage}_share": each / total for stage, each in spent.items()}
    steps = (number(now.workers, "actions") or 0) - ((number(before.workers, "actions") or 0) if before else 0)
    return {**split, "env_step_us": spent["envs"] * 1e6 / steps} if steps > 0 else split


def _worker(now: Snapshot, before: Snapshot | None) -> Iterator[Figure]:
    for name, value in worker_split(now, before).items() if before is not None else ():
        yield Figure(f"worker/{name}", value)


def _processes(now: Snapshot) -> Iterator[Figure]:
    for role, log_name in LOG_NAMES.items():
        members = [process for process in now.processes if process.name.startswith(f"{log_name}-")]
        if members:
            yield Figure("process/<role>/cpu_percent", sum(process.cpu_percent for process in members), role)
            memory = sum(process.rss_mb + process.children_rss_mb for process in members)
            yield Figure("process/<role>/memory_mb", memory, role)


def _learner(now: Snapshot) -> Iterator[Figure]:
    for curve in LEARNER_CURVES:
        if (value := number(now.learner, *curve.path)) is not None:
            yield Figure(f"learner/{curve.name}", value)
