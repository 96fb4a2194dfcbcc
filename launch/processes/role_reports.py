"""Reports of the roles, summed over restarts: totals never go back. Pure: time is an argument.

A role's counters start at 0 in each life. Counters of dead lives are added to those of the current one; gauges
(latency, version, ...) are the current life's. What a dead life left open is closed here, so that the accounts balance:
`steps.open` becomes `steps.dropped.server_died`, `episodes.alive` `episodes.aborted.worker_died`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from simul.common.protocol.messages import Report
from simul.common.runtime.terminal_text import printable

Metrics = dict[str, Any]
RoleKey = tuple[str, int]  # (role, index)
OLDEST_SEC = 1.0  # figures are half a second old at most, unless their process is silent

# Top-level metrics, by role, that count up within a life. Everything else is a gauge.
COUNTERS: dict[str, frozenset[str]] = {
    "inference_server": frozenset(
        ("decisions", "rows_errored", "rows_cached", "rows_duplicate", "rows_redone", "messages_refused",
         "replies_dropped", "malformed", "batches", "batch_histogram", "sessions_started", "sessions_ended", "steps",
         "unrolls", "weights_refused", "weights_overtaken", "weights_unreadable", "weights_in_memory", "swaps",
         "evaluations", "evaluation_batches", "samples", "messages", "stage_sec", "loop_sec")
    ),
    "learner": frozenset(
        ("updates", "decisions_learned_since_start", "unrolls", "samples", "steps_dropped", "skipped_minibatches",
         "untrusted", "stage_sec", "loop_sec")
    ),
    "env_worker": frozenset(
        ("decisions", "answered", "refused", "resent", "busy", "episodes", "results", "mirrored", "returns", "lengths",
         "turns", "unanswered", "redos", "invalid_choices", "bad_actions", "scripted", "team_previews", "parse_errors",
         "reward_parts", "actions", "stage_sec", "loop_sec", "standings", "samples", "search")
    ),
}  # fmt: skip

# Gauges of servers that are not summed. Of several servers: versions from the least to the greatest, percentiles of the
# slowest, means by their decisions.
VERSIONS = ("policy_version", "offered_version")  # the greatest has the suffix `_max`
PERCENTILES = ("latency_us", "queue_wait_us", "forward_us", "swap_us")
ALL_TRUE = ("learner_alive", "ready")

# Gauges that a dead life leaves open: (metric, gauge inside it, counter by cause that takes it over, cause).
OPEN_GAUGES: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    "inference_server": (
        ("steps", "open", "dropped", "server_died"),
        ("unrolls", "waiting", "dropped", "server_died"),
        ("samples", "waiting", "dropped", "server_died"),
    ),
    "learner": (("unrolls", "waiting", "dropped", "learner_died"), ("samples", "waiting", "dropped", "learner_died")),
    "env_worker": (
        ("episodes", "alive", "aborted", "worker_died"),
        ("unanswered", "waiting", "lost", "worker_died"),
        ("samples", "waiting", "lost", "worker_died"),
    ),
}


ENDED = ("stopped", "failed")  # states of a process's last report


class RoleReports:
    """The last report of every life of every process; a life is identified by (role, index) and run_id."""

    def __init__(self) -> None:
        self._lives: dict[RoleKey, dict[int, Report]] = {}
        self._seen_at: dict[tuple[RoleKey, int], float] = {}
        self._counted_at: dict[RoleKey, float] = {}  # when the last figures of a process were counted
        self._were_ready: set[tuple[RoleKey, int]] = set()
        self._unreported_sec: dict[tuple[RoleKey, int], float] = {}
        self._over = False

    def add_report(self, report: Report, now: float, age_sec: float = 0.0) -> list[str]:
        """Keep a report whose figures were counted `age_sec` ago. Returns its sentences, each once, on one line."""
        key = (report.role, report.index)
        before = self.last_report(key, report.run_id)
        only_sentence = before is not None and not report.metrics  # of a thread beside the loop, perhaps
        if before is not None and only_sentence:
            state = before.state if before.state in ENDED else report.state  # a last report may overtake the sentence
            report = msgspec.structs.replace(report, metrics=before.metrics, state=state)
        else:
            self._counted_at[key] = now - min(max(age_sec, 0.0), OLDEST_SEC)  # bounded: another machine's clock differs
        self._lives.setdefault(key, {})[report.run_id] = report
        if not only_sentence:
            self._seen_at[key, report.run_id] = now
        if report.state == "ready":
            self._were_ready.add((key, report.run_id))
        listed = new_events(_events(before) if before else [], _events(report))
        return [printable(sentence) for sentence in (report.event, *listed) if sentence]

    def last_report(self, key: RoleKey, run_id: int) -> Report | None:
        """The last report of one life, None before the first."""
        return self._lives.get(key, {}).get(run_id)

    def silent_sec(self, key: RoleKey, run_id: int, now: float) -> float | None:
        """Seconds since this life's last report; None before the first."""
        seen = self._seen_at.get((key, run_id))
        return None if seen is None else now - seen

    def counted_at(self, role: str, now: float) -> float | None:
        """To which moment the totals of `role` belong: the mean over its processes; None before the first report.

        A rate divides by the time between two such moments, not between two arrivals: reports are half a second apart.
        Figures of a process that is silent count as OLDEST_SEC old, so that the rate falls.
        """
        moments = [max(at, now - OLDEST_SEC) for (named, _), at in self._counted_at.items() if named == role]
        return sum(moments) / len(moments) if moments else None

    def was_ready(self, key: RoleKey, run_id: int) -> bool:
        """Whether this life ever reported that it is ready."""
        return (key, run_id) in self._were_ready

    def exclude_pause(self, seconds: float) -> None:
        """The supervisor itself was paused for `seconds`: do not count them as silence."""
        self._seen_at = {life: at + seconds for life, at in self._seen_at.items()}

    def mark_ended(self, key: RoleKey, run_id: int, now: float) -> None:
        """A life is over. Unless its last report says so, what it did after that report is in no figure."""
        if (key, run_id) in self._seen_at:
            self._unreported_sec.setdefault(
                (key, run_id), now - self._seen_at[key, run_id]
            )  # only the first call counts

    def mark_all_ended(self) -> None:
        """Nothing runs any more: from now on the open gauges of the last lives are closed, too."""
        self._over = True

    def unreported(self) -> dict[str, dict[str, float]]:
        """By role: `lives` that ended without a final report, and `seconds` from their last reports to their ends."""
        found: dict[str, dict[str, float]] = {}
        for (key, run_id), seconds in self._unreported_sec.items():
            if self._lives[key][run_id].state in ENDED:  # the final report came in later
                continue
            figures = found.setdefault(key[0], {"lives": 0, "seconds": 0.0})
            figures["lives"] += 1
            figures["seconds"] = round(figures["seconds"] + seconds, 3)
        return found

    def totals(self, role: str) -> Metrics:
        """Figures of all lives of all processes of `role`; {} before the first report."""
        parts = list(self.of_processes(role).values())
        total = sum_metrics(parts)
        gauges = {"inference_server": _server_gauges, "learner": _learner_gauges}.get(role)
        return {**total, **gauges(parts)} if gauges is not None and len(parts) > 1 else total

    def of_processes(self, role: str) -> dict[int, Metrics]:
        """By index: figures of all lives of each process of `role`."""
        return {
            key[1]: self._merged(role, [lives[run_id] for run_id in sorted(lives)])
            for key, lives in sorted(self._lives.items())
            if key[0] == role
        }

    def _merged(self, role: str, reports: list[Report]) -> Metrics:
        lives = [report.metrics for report in reports]
        if self._over and reports[-1].state != "stopped":
            lives[-1] = _close_open_gauges(role, lives[-1])
        return merge_lives(role, lives)


def merge_lives(role: str, lives: list[Metrics]) -> Metrics:
    """One process's figures over its lives, oldest first: counters add up, gauges are those of the last."""
    counters = COUNTERS.get(role, frozenset())
    merged = dict(lives[-1])
    for dead in lives[:-1]:
        closed = _close_open_gauges(role, dead)
        for name in counters & closed.keys():
            merged[name] = add_metrics(merged[name], closed[name]) if name in merged else closed[name]
    return merged


def sum_metrics(parts: Iterable[Metrics]) -> Metrics:
    """Sum of the figures of several processes of one role."""
    total: Metrics = {}
    for part in parts:
        total = add_metrics(total, part)
    return total


def _server_gauges(parts: list[Metrics]) -> Metrics:
    """Gauges of several servers that have no sum; those that none has reported are left out."""
    merged: Metrics = {}
    for name in VERSIONS:
        if versions := [version for part in parts if (version := number(part, name)) is not None]:
            merged |= {name: min(versions), f"{name}_max": max(versions)}
    for name in PERCENTILES:
        if any(name in part for part in parts):
            merged[name] = _by_key([counts(part, name) for part in parts], max)
    if any("policies" in part for part in parts):
        merged["policies"] = _by_key([counts(part, "policies") for part in parts], min)
    stages = [{**part["stage_us"], "count": number(part, "decisions") or 0} for part in parts if "stage_us" in part]
    if stages:
        means = sum_metrics(stages)
        merged["stage_us"] = {name: round(mean, 3) for name, mean in means.items() if name != "count"}
    for name in ALL_TRUE:
        if told := [part[name] for part in parts if name in part]:
            merged[name] = all(told)
    if told := [part["health"] for part in parts if "health" in part]:
        merged["health"] = next((health for health in told if health != "ok"), "ok")
    return merged


def _learner_gauges(parts: list[Metrics]) -> Metrics:
    """Gauges of several ranks that have no sum: all that rank 0 alone reports are not among them."""
    merged: Metrics = {"signalled": any(part.get("signalled") for part in parts)}
    lags = [part["policy_lag"] for part in parts if counts(part, "policy_lag", "histogram")]
    if lags:
        histogram = sum_metrics(lag["histogram"] for lag in lags)
        steps = [sum(lag["histogram"].values()) for lag in lags]
        means = {
            name: sum(lag[name] * n for lag, n in zip(lags, steps)) / max(sum(steps), 1)
            for name in ("mean", "recent_mean")
        }
        most = {name: max(lag[name] for lag in lags) for name in ("max", "recent_max")}
        merged["policy_lag"] = {**means, **most, "histogram": histogram}
    return merged


def _by_key(parts: Iterable[Mapping[str, float]], choose: Callable[[list[float]], float]) -> dict[str, float]:
    """One of the numbers of each key. A percentile that was not measured (NaN) is none."""
    found: dict[str, list[float]] = {}
    for part in parts:
        for key, value in part.items():
            if not math.isnan(value):
                found.setdefault(key, []).append(value)
    return {key: choose(values) for key, values in found.items()}


def new_events(before: list[str], after: list[str]) -> list[str]:
    """The part of `after` behind its overlap with `before`: every report repeats the last few events."""
    for length in range(min(len(before), len(after)), 0, -1):
        if before[-length:] == after[:length]:
            return after[length:]
    return after


def add_metrics(left: Any, right: Any) -> Any:
    """left + right: numbers add up, dicts by key; of anything else `right` is returned.

    In dicts with a `count` or `games`, the other numbers are means, weighted by it; of `..._min` and `..._max` the
    least and the greatest.
    """
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for weight in ("count", "games"):
            if weight in left and weight in right:
                return _weighted(left, right, weight)
        both = {key: add_metrics(left[key], right[key]) for key in left.keys() & right.keys()}
        return {**left, **right, **both}
    if _is_number(left) and _is_number(right):
        return left + right
    return right


def _close_open_gauges(role: str, metrics: Metrics) -> Metrics:
    closed = dict(metrics)
    for name, gauge, into, cause in OPEN_GAUGES.get(role, ()):
        group = closed.get(name)
        if not isinstance(group, Mapping) or not _is_number(group.get(gauge)):
            continue
        causes = dict(group.get(into) or {})
        causes[cause] = causes.get(cause, 0) + group[gauge]
        if not causes[cause]:
            del causes[cause]
        closed[name] = {**group, gauge: 0, into: causes}
    return closed


def _weighted(left: Mapping[str, Any], right: Mapping[str, Any], weight: str) -> Metrics:
    total = left[weight] + right[weight]
    merged = {
        name: _merged_figure(name, left[name], left[weight], right[name], right[weight])
        for name in left.keys() & right.keys() - {weight}
        if _is_number(left[name]) and _is_number(right[name])
    }
    return {**merged, weight: total}


def _merged_figure(name: str, left: float, left_weight: float, right: float, right_weight: float) -> float:
    if name.endswith("_min"):
        return min(left, right)
    if name.endswith("_max"):
        return max(left, right)
    return (left * left_weight + right * right_weight) / max(left_weight + right_weight, 1)


def _events(report: Report) -> list[str]:
    listed = report.metrics.get("events")
    return [str(sentence) for sentence in listed] if isinstance(listed, list | tuple) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def decisions_of(server: Mapping[str, Any]) -> float:
    """Decisions of a run so far: rows answered, and in their place the samples of games whose policies search."""
    return (number(server, "decisions") or 0) + (number(server, "samples", "admitted") or 0)


def number(metrics: Mapping[str, Any], *path: str) -> float | None:
    """The number at `path`, None where there is none (or NaN: not measured yet)."""
    value: Any = metrics
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    return value if is_number else None


def counts(metrics: Mapping[str, Any], *path: str) -> dict[str, float]:
    """The {name: number} dict at `path`, {} where there is none. A bare number is called `total`."""
    value: Any = metrics
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping):
        return {str(key): n for key, n in value.items() if isinstance(n, int | float)}
    return {"total": value} if isinstance(value, int | float) and value else {}
