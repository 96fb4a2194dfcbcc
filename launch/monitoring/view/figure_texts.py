"""The figures of a snapshot as texts, and one plain line of them all. Missing figures show as "-"."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any

from simul.common.config.game_description import PAST_SELVES
from simul.common.config.games import game_called
from simul.common.role.report_names import ALL_EPISODES, OWN_FIGURE, SEAT
from simul.common.runtime.terminal_text import printable
from simul.launch.monitoring.curves.figures import LATEST_SELF, seat_of
from simul.launch.monitoring.snapshot import ProcessFigures, Snapshot
from simul.launch.processes.role_reports import counts, decisions_of, number

MOST_OPPONENTS = 4
MOST_SHOWN = 4  # servers, or ranks of the learner
TEXT_WIDTH = 67  # of 80 columns, beside the labels
DECISIONS_WIDTH = 24  # of 80 columns
LOSSES = ("policy_loss", "value_loss", "entropy")
BARS = "▁▂▃▄▅▆▇█"
WORKER_WORDS = {"wait": "waiting", "envs": "envs", "messages": "messages", "other": "other"}


def short_figures(snapshot: Snapshot) -> list[tuple[str, str]]:
    """(label, text): the figures that have half a line each."""
    return [
        ("decisions/s", format_rate(snapshot, snapshot.decisions_per_sec)),
        ("policy_version", format_version(snapshot)),
        (f"{episodes_of(snapshot.game)}/s", format_rate(snapshot, snapshot.battles_per_sec, 2)),
        ("policy_lag", _lag(snapshot.learner)),
        ("mean batch", format_number(mean_batch(snapshot.server), 1)),
        ("learning rate", format_number(number(snapshot.learner, "learning_rate"), 6)),
        ("latency", format_latency(snapshot.server)),
        ("decisions", format_decisions(snapshot, DECISIONS_WIDTH)),
    ]


def long_figures(snapshot: Snapshot) -> list[tuple[str, str]]:
    """(label, text): those that have a line or more each; "" continues the label above. Without the batches' sizes."""
    return [
        ("loss", format_losses(snapshot.learner)),
        *format_results(snapshot.workers),
        *([("league", league)] if (league := format_league(snapshot.figures)) else []),
        *([("callback", own)] if (own := format_callback(snapshot, TEXT_WIDTH)) else []),
        *([("search", search)] if (search := format_search(snapshot)) else []),
        *([("servers", format_servers(snapshot))] if snapshot.servers else []),
        *([("ranks", format_ranks(snapshot))] if snapshot.ranks else []),
        *([("replaced", replaced)] if (replaced := format_replaced(snapshot.workers)) else []),
        ("workers", format_worker_split(snapshot.figures)),
        *([("store", store)] if (store := format_store(snapshot.learner)) else []),
        ("dropped", format_causes(dropped_by_cause(snapshot)) or "nothing"),
        ("aborted", format_causes(counts(snapshot.workers, "episodes", "aborted")) or "nothing"),
    ]


def format_results(workers: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(label, text): mean return, in all and by seat, the game's own figures, win rates with mean scores, past selves.

    Each where the game has it; two opponents a line.
    """
    rows: list[tuple[str, str]] = []
    if number(workers, "returns", "count"):
        recently, in_all = (format_number(number(workers, "returns", name), 2) for name in ("recent_mean", "mean"))
        seats = format_seats(workers)
        rows.append(("mean return", f"{recently} recently, {in_all} in all{seats and f'; seat {seats}'}"))
        if facts := format_facts(workers):
            rows.append(("the game", facts))
    rates = format_win_rates(workers)[:MOST_OPPONENTS] or ([] if rows else ["-"])
    lines = [", ".join(rates[at : at + 2]) for at in range(0, len(rates), 2)]
    label = "wins, score" if any("(" in rate for rate in rates) else "recent wins"
    rows += [(label if at == 0 else "", line) for at, line in enumerate(lines)]
    return rows + ([("past selves", past)] if (past := format_past_selves(workers)) else [])


def format_facts(workers: Mapping[str, Any], group: str = ALL_EPISODES) -> str:
    """`foul 0.12, royalties 3.1`: means of the game's own figures over the recent games; "" where it has none."""
    recent = counts(workers, "recent", group)
    names = [name for name in recent if name.startswith(OWN_FIGURE)]
    return ", ".join(f"{name.removeprefix(OWN_FIGURE)} {recent[name]:.3g}" for name in names)


def format_callback(snapshot: Snapshot, width: int = 500) -> str:
    """`mine/x 1.5, mine/y 0.2`: what `metrics_callback` returned, as many as fit into `width`; "" without."""
    texts = [f"{name} {value:.4g}" for name, value in sorted(snapshot.callback_figures.items())]
    shown = len(texts)
    while len(text := ", ".join(texts[:shown]) + f", {len(texts) - shown} more" * (shown < len(texts))) > width:
        if shown <= 1:
            return text[:width]
        shown -= 1
    return text


def format_evaluation(figures: Mapping[str, float]) -> str:
    """`487.25, best 490.00`: scores of the evaluations while training; "" before the first."""
    score, best = figures.get("evaluation/score"), figures.get("evaluation/best_score")
    return "" if score is None else f"{format_number(score, 2)}, best {format_number(best, 2)}"


def format_league(figures: Mapping[str, float]) -> str:
    """`version 1,200: Elo +84 (95%: +31 to +137), rank 2 of 9`: the latest self in league.json; "" without one."""
    names = ("policy_version", "rank", "members", *(f"{name}/{LATEST_SELF}" for name in ("elo", "elo_low", "elo_high")))
    found = [figures.get(f"league/{name}") for name in names]
    known = [value for value in found if value is not None]
    if len(known) < len(names):
        return ""
    version, rank, members, elo, low, high = known
    interval = f"95%: {low:+,.0f} to {high:+,.0f}"
    return f"version {version:,.0f}: Elo {elo:+,.0f} ({interval}), rank {rank:.0f} of {members:.0f}"


def format_search(snapshot: Snapshot) -> str:
    """`72 moves/s, 1,802 positions/s (this start), mean batch 31.5, 12% cached`; "" without search."""
    found, server, seconds = counts(snapshot.workers, "search"), snapshot.server, snapshot.ready_sec
    if not found or not seconds:
        return ""
    rows, batches = number(server, "evaluations") or 0.0, number(server, "evaluation_batches") or 0.0
    looked_up = found["cache_hits"] + found["cache_misses"]
    return (
        f"{format_number(found['moves'] / seconds)} moves/s, {format_number(rows / seconds)} positions/s (this start), "
        f"mean batch {format_number(rows / batches if batches else None, 1)}, "
        f"{found['cache_hits'] / looked_up if looked_up else 0.0:.0%} cached"
    )


def format_replaced(workers: Mapping[str, Any]) -> str:
    """`raised 1, invalid 2 of 1,234 choices of scripted players`: random ones took their place; "" for none."""
    scripted = counts(workers, "scripted")
    causes = format_causes({cause: scripted.get(cause, 0.0) for cause in ("raised", "invalid")})
    return f"{causes} of {scripted['decisions']:,.0f} choices of scripted players" if causes else ""


def format_worker_split(figures: Mapping[str, float]) -> str:
    """`62% waiting, 20% envs, 17% messages, 1% other; 23.4 us a step`: where the workers' time goes."""
    shares = [(figures.get(f"worker/{stage}_share"), word) for stage, word in WORKER_WORDS.items()]
    text = ", ".join(f"{share:.0%} {word}" for share, word in shares if share is not None)
    step_us = figures.get("worker/env_step_us")
    return f"{text or '-'}{'' if step_us is None else f'; {format_number(step_us, 1)} us a step'}"


def process_name(process: ProcessFigures) -> str:
    """Its name, with its machine, in a run on several."""
    return f"{process.name}@{process.node}" if process.node else process.name


def run_line(snapshot: Snapshot) -> str:
    """The figures in one line, for logs and pipes."""
    parts = [
        f"{snapshot.phase} {clock_sec(snapshot):.0f} s",
        f"decisions {format_decisions(snapshot)}",
        f"decisions/s {format_rate(snapshot, snapshot.decisions_per_sec)}",
        f"{episodes_of(snapshot.game)}/s {format_rate(snapshot, snapshot.battles_per_sec, 2)}",
        f"batch {format_number(mean_batch(snapshot.server), 1)}",
        f"latency {format_latency(snapshot.server)}",
        f"policy_version {format_version(snapshot)}",
        f"policy_lag {_lag(snapshot.learner)}",
        f"loss {format_losses(snapshot.learner)}",
        f"dropped {format_causes(dropped_by_cause(snapshot)) or 'nothing'}",
        *(f"{label} {text}".strip() for label, text in format_results(snapshot.workers)),
        *([f"evaluation {evaluation}"] if (evaluation := format_evaluation(snapshot.figures)) else []),
        *([f"league {league}"] if (league := format_league(snapshot.figures)) else []),
        *([f"callback {own}"] if (own := format_callback(snapshot)) else []),
        *([f"search {search}"] if (search := format_search(snapshot)) else []),
        *([f"servers {format_servers(snapshot)}"] if snapshot.servers else []),
        *([f"ranks {format_ranks(snapshot)}"] if snapshot.ranks else []),
        *([f"store {store}"] if (store := format_store(snapshot.learner)) else []),
        *([f"replaced {replaced}"] if (replaced := format_replaced(snapshot.workers)) else []),
        f"workers {format_worker_split(snapshot.figures)}",
        f"MiB {sum(p.rss_mb + p.children_rss_mb for p in snapshot.processes):.0f}",
        *(f"{process_name(p)} {p.state}" for p in snapshot.processes if p.state not in ("ready", "stopped")),
    ]
    return printable(" | ".join(parts))


def episodes_of(game: str) -> str:
    """What the episodes of a configuration's `game` are called."""
    return game_called(game).episodes


def format_number(value: float | None, digits: int = 0) -> str:
    """`12,345.6`, or `-` for None."""
    if value is None:
        return "-"
    return f"{value:,.{digits}f}"


def format_rate(snapshot: Snapshot, rate: float | None, digits: int = 0) -> str:
    """`2,353 (last 10 s)`, or `2,353 (this start)` of a run that stops; `-` for None."""
    if rate is None:
        return "-"
    seconds = snapshot.rates_over_sec
    over = f"last {seconds:.{int(seconds < 1)}f} s" if snapshot.phase in ("training", "serving") else "this start"
    return f"{format_number(rate, digits)} ({over})"


def clock_sec(snapshot: Snapshot) -> float:
    """Seconds since readiness of this start; before it, since the command began."""
    return snapshot.elapsed_sec if snapshot.phase == "starting" else snapshot.ready_sec


def format_clock(snapshot: Snapshot) -> str:
    """`1:06:40`, of `clock_sec`."""
    minutes, seconds = divmod(int(clock_sec(snapshot)), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def format_decisions(snapshot: Snapshot, width: int = 80) -> str:
    """`193,129 (6,343 this start)`: those of the whole run, and of this start where an earlier one answered some.

    `width`: where the text is longer, that of this start is shortened to `(+6,343)`, then left out.
    """
    started = decisions_of(snapshot.server)
    total = format_number(max(snapshot.run_decisions, started))
    if snapshot.run_decisions <= started:
        return total
    texts = (f"{total} ({started:,.0f} this start)", f"{total} (+{started:,.0f})")
    return next((text for text in texts if len(text) <= width), total)


def mean_batch(server: Mapping[str, Any]) -> float | None:
    """Rows per forward pass."""
    batches, rows = number(server, "batches"), number(server, "decisions")
    return rows / batches if batches and rows is not None else None


def dropped_by_cause(snapshot: Snapshot) -> dict[str, float]:
    """Steps and samples dropped by the server, unrolls and samples dropped by the learner, by cause."""
    total = counts(snapshot.server, "steps", "dropped")
    for kind, role in (("unrolls", snapshot.learner), ("samples", snapshot.server), ("samples", snapshot.learner)):
        total |= {f"{kind} {cause}": n for cause, n in counts(role, kind, "dropped").items()}
    return total


def format_win_rates(workers: Mapping[str, Any]) -> list[str]:
    """`random 62% of 120`, with the mean score where the game has scores: `random 62% of 120 (1.25)`.

    Of each opponent's recent games. Ties and truncated games are not wins.
    """
    recent, scored = workers.get("recent") or {}, number(workers, "returns", "count")
    rates = []
    for opponent in sorted(recent):
        figures = counts(recent, opponent)
        if "win_rate" in figures and opponent != "self_play" and not opponent.startswith(PAST_SELVES):
            score = f" ({figures['return_mean']:,.2f})" if scored and "return_mean" in figures else ""
            rates.append(f"{opponent} {figures['win_rate']:.0%} of {figures['games']:.0f}{score}")
    return rates


def format_past_selves(workers: Mapping[str, Any]) -> str:
    """`300 62% of 120, 900 51% of 98`: wins of the recent games against each past self that is served, by version."""
    recent = workers.get("recent") or {}
    versions = sorted((name.removeprefix(PAST_SELVES) for name in recent if name.startswith(PAST_SELVES)), key=_by_size)
    each = {version: counts(recent, f"{PAST_SELVES}{version}") for version in versions[-MOST_SHOWN:]}
    return ", ".join(
        f"{version} {figures['win_rate']:.0%} of {figures['games']:.0f}"
        for version, figures in each.items()
        if {"win_rate", "games"} <= figures.keys()
    )


def _by_size(version: str) -> tuple[int, str]:
    return len(version), version


def format_seats(workers: Mapping[str, Any]) -> str:
    """`0 1.25, 1 -0.30, 2 0.05`: mean scores of the recent games by the learner's seat; "" for games of one seat."""
    recent = workers.get("recent") or {}
    seats = sorted(int(seat_of(name)) for name in recent if seat_of(name))
    scores = {seat: number(recent, f"{SEAT}{seat}", "return_mean") for seat in seats[:MOST_SHOWN]}
    return ", ".join(f"{seat} {format_number(score, 2)}" for seat, score in scores.items()) + _more(seats)


def format_losses(learner: Mapping[str, Any]) -> str:
    """`policy -0.012 value 0.31 entropy 1.92`."""
    named = {name.removesuffix("_loss"): number(learner, name) for name in LOSSES}
    return " ".join(f"{name} {value:.3g}" for name, value in named.items() if value is not None) or "-"


def format_store(learner: Mapping[str, Any]) -> str:
    """`up to date`, `unreachable, 312 s behind` or `taken over by a newer run`; "" for a run without a store."""
    state, behind_sec = learner.get("store_state"), number(learner, "store_behind_sec")
    if behind_sec is None:
        return ""
    if state == "taken_over":
        return "taken over by a newer run"
    behind = f"{format_number(behind_sec)} s behind" if behind_sec else "up to date"
    return f"{state}, {behind}" if state == "unreachable" else behind


def format_histogram(sizes: Mapping[str, float]) -> str:
    """`1▁ 2▁ 4▃ 8█`: share of the batches by size."""
    most = max(sizes.values(), default=0)
    if not most:
        return "-"
    ordered = sorted(sizes.items(), key=lambda item: (len(item[0]), item[0]))
    return " ".join(f"{size}{BARS[round(n / most * (len(BARS) - 1))]}" for size, n in ordered)


def format_causes(by_cause: Mapping[str, float]) -> str:
    """`too_old 3, server_died 12`, the largest first."""
    ordered = sorted(by_cause.items(), key=lambda item: -item[1])
    return ", ".join(f"{cause} {n:,.0f}" for cause, n in ordered if n)


def format_version(snapshot: Snapshot) -> str:
    """The version that is served, `11 to 12` of several servers; the learner's before a server has reported one."""
    served, newest = (number(snapshot.server, name) for name in ("policy_version", "policy_version_max"))
    if served is None:
        return format_number(number(snapshot.learner, "policy_version"))
    between = f" to {format_number(newest)}" if newest is not None and newest > served else ""
    return f"{format_number(served)}{between}"


def format_servers(snapshot: Snapshot) -> str:
    """`0 52%, 1 48% of the decisions`: the part of each, by index."""
    return f"{_parts(snapshot.servers, 'decisions')} of the decisions{_more(snapshot.servers)}"


def format_ranks(snapshot: Snapshot) -> str:
    """`0 51%, 1 49% of what was learned from`: the part of each rank of the learner."""
    return f"{_parts(snapshot.ranks, 'decisions_learned_since_start')} of what was learned from{_more(snapshot.ranks)}"


def _parts(each: Mapping[str, Mapping[str, Any]], figure: str) -> str:
    numbers = {name.rpartition("-")[2]: number(metrics, figure) or 0 for name, metrics in each.items()}
    total = sum(numbers.values())
    shown = list(numbers.items())[:MOST_SHOWN]
    return ", ".join(f"{index} {value / total if total else 0.0:.0%}" for index, value in shown)


def _more(each: Sized) -> str:
    return f", and {len(each) - MOST_SHOWN} more" if len(each) > MOST_SHOWN else ""


def _lag(learner: Mapping[str, Any]) -> str:
    mean, most = number(learner, "policy_lag", "mean"), number(learner, "policy_lag", "max")
    return "-" if mean is None else f"{mean:.2f} mean, {format_number(most)} max"


def format_latency(server: Mapping[str, Any]) -> str:
    """`4.1 ms p50, 17.9 ms p99`, of recent decisions; of several servers, of the slowest."""
    p50, p99 = number(server, "latency_us", "p50"), number(server, "latency_us", "p99")
    if p50 is None or p99 is None:
        return "-"
    return f"{p50 / 1000:.1f} ms p50, {p99 / 1000:.1f} ms p99"
