"""summary.json: what a run did, with its accounts; and a summary in a few lines."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from simul.common.config.game_description import PAST_SELVES
from simul.common.config.games import GAMES
from simul.common.config.schema import Config
from simul.common.role.report_names import ALL_EPISODES
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import write_atomically
from simul.common.runtime.machine_info import checkout_commit
from simul.launch.monitoring.accounting import build_accounts, imbalances, unroll_figures
from simul.launch.monitoring.curves.figures import seat_of
from simul.launch.monitoring.snapshot import Snapshot
from simul.launch.monitoring.view.figure_texts import (
    LOSSES,
    episodes_of,
    format_causes,
    format_facts,
    format_number,
    format_past_selves,
    format_replaced,
    format_search,
    format_seats,
    format_win_rates,
    mean_batch,
)
from simul.launch.processes.process_group import ROLE_TITLES
from simul.launch.processes.role_reports import counts, decisions_of, number

PACKAGES = (
    *("simul", "torch", "numpy", "pyzmq", "msgspec", "safetensors"),
    *(package for game in GAMES.values() for package in game.packages),
)


def write_summary(run_dir: RunDir, config: Config, snapshot: Snapshot) -> str:
    """Write summary.json; returns the summary in words, which also says if the file could not be written."""
    summary = summarise(config, snapshot)
    try:
        write_atomically(run_dir, "summary.json", summary)
    except OSError as error:
        with contextlib.suppress(OSError):  # do not leave an earlier run's in place
            (run_dir.root / "summary.json").unlink()
        return f"{summary_text(summary)}\nsummary.json could not be written: {error.strerror}"
    where = f"summary: {run_dir.root / 'summary.json'}"
    return f"{summary_text(summary)}\n{where}; `simul up` with this run directory resumes"


def summarise(config: Config, snapshot: Snapshot) -> dict[str, Any]:
    """All figures of the run. Rates count from readiness of this run, not from step 0 of a resumed one."""
    server, learner, workers = snapshot.server, snapshot.learner, snapshot.workers
    decisions = decisions_of(server)
    aborted, accounts = counts(workers, "episodes", "aborted"), build_accounts(snapshot)
    battles = {name: number(workers, "episodes", name) or 0 for name in ("started", "finished", "alive")}
    return {
        "game": config.game,
        "decisions": decisions,
        "run_decisions": max(snapshot.run_decisions, decisions),
        "decisions_learned": number(learner, "decisions_learned_since_start"),
        "lifetime_decisions_learned": number(learner, "decisions_learned"),
        "seconds": snapshot.ready_sec,
        "decisions_per_sec": round(decisions / snapshot.ready_sec, 1) if snapshot.ready_sec else None,
        "battles": {**battles, "aborted": sum(aborted.values()), "aborted_by_cause": aborted},
        "truncated": number(workers, "episodes", "truncated"),
        "ties": number(workers, "episodes", "ties"),
        "results": workers.get("results", {}),
        "recent_results": workers.get("recent", {}),
        "returns": workers.get("returns"),
        "lengths": workers.get("lengths"),
        "mean_batch": mean_batch(server),
        "latency_us": counts(server, "latency_us"),
        "policy_version": number(learner, "policy_version"),
        "policy_lag": counts(learner, "policy_lag"),
        "updates": number(learner, "updates"),
        "loss": {name: number(learner, name) for name in LOSSES},
        "ratio_error_p99": number(learner, "ratio_error_p99"),
        "skipped_minibatches": number(learner, "skipped_minibatches") or 0,
        "skipped_cause": learner.get("skipped_cause", ""),
        "untrusted": counts(learner, "untrusted"),
        "curve_rows_lost": snapshot.curve_rows_lost,
        "steps": server.get("steps", {}),
        "unrolls": unroll_figures(snapshot, accounts),
        "replay": learner.get("replay", {}),
        "search": format_search(snapshot),
        "replaced": format_replaced(workers),
        "learner_signalled": learner.get("signalled", False),
        "rows_errored": counts(server, "rows_errored"),
        "accounting": accounts,
        "unreported": snapshot.unreported,
        "peak_memory_mb": {
            p.name: {"process": p.peak_rss_mb, "children": p.peak_children_rss_mb} for p in snapshot.processes
        },
        "restarts": {p.name: p.restarts for p in snapshot.processes},
        "device": server.get("device"),
        "precision": server.get("precision"),
        "versions": versions(),
        "config_fingerprint": config.fingerprint(),
        "run_dir": snapshot.run_dir,
        "events": snapshot.events,
    }


def versions() -> dict[str, str]:
    """Versions of Python, the platform and the packages that a run depends on, and the checkout's commit, if any."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return {**found, **({"commit": commit} if (commit := checkout_commit()) else {})}


def summary_text(summary: Mapping[str, Any]) -> str:
    """The summary in a few lines."""
    battles, unrolls = summary["battles"], summary["unrolls"]
    lag, latency = summary["policy_lag"], summary["latency_us"]
    lines = [
        f"{summary['decisions']:,.0f} decisions in {summary['seconds']:,.0f} s since this start was ready "
        f"({format_number(summary['decisions_per_sec'])}/s), mean batch {format_number(summary['mean_batch'], 1)}, "
        f"latency {format_number(latency.get('p50'))} us p50, {format_number(latency.get('p99'))} us p99",
        *_whole_run_text(summary),
        f"{episodes_of(summary['game'])}: {battles['started']:,.0f} started, {battles['finished']:,.0f} finished, "
        f"{battles['aborted']:,.0f} aborted ({format_causes(battles['aborted_by_cause']) or 'none'})",
        f"learned: policy_version {format_number(summary['policy_version'])}, "
        f"{format_number(summary['decisions_learned'])} steps; "
        f"policy_lag {format_number(lag.get('mean'), 2)} mean, {format_number(lag.get('max'))} max",
        *_skipped_text(summary),
        _unrolls_text(unrolls),
        f"steps dropped before an unroll was sent: {format_causes(counts(summary, 'steps', 'dropped')) or 'none'}",
    ]
    if summary["unreported"]:
        lines.append(_unreported_text(summary["unreported"]))
    lines += _results_text({"recent": summary["recent_results"], "returns": summary["returns"] or {}})
    if summary["search"]:
        lines.append(f"search: {summary['search']}")
    if summary["replaced"]:
        lines.append(f"replaced by random legal choices: {summary['replaced']}")
    lines += imbalances(summary)
    return "\n".join(lines)


def _whole_run_text(summary: Mapping[str, Any]) -> Iterator[str]:
    """Of a resumed run."""
    if summary["run_decisions"] > summary["decisions"]:
        yield f"the whole run: {summary['run_decisions']:,.0f} decisions over all its starts"


def _results_text(workers: Mapping[str, Any]) -> Iterator[str]:
    """Results of the recent games: wins and mean scores, and the game's own figures, in all and by opponent."""
    rates, seats = format_win_rates(workers), format_seats(workers)
    others = [name for name in sorted(workers["recent"]) if name != ALL_EPISODES and not seat_of(name)]
    opponents = [name for name in others if not name.startswith(PAST_SELVES)]
    if rates:
        yield f"recent wins{' (and mean scores)' if number(workers, 'returns', 'count') else ''}: {', '.join(rates)}"
    if past := format_past_selves(workers):
        yield f"recent wins against past selves: {past}"
    if seats:
        yield f"recent mean scores by seat: {seats}"
    if facts := format_facts(workers):
        yield f"the game: {facts}"
        for opponent in opponents if len(opponents) > 1 else ():
            yield f"the game against {opponent}: {format_facts(workers, opponent)}"


def _skipped_text(summary: Mapping[str, Any]) -> list[str]:
    if not (skipped := summary["skipped_minibatches"]):
        return []
    cause = f": {summary['skipped_cause']}" if summary["skipped_cause"] else ""
    return [f"skipped: {skipped:,.0f} minibatches were not learned from{cause}"]


def _unrolls_text(unrolls: Mapping[str, Any]) -> str:
    unreported = f" (+{unrolls['sent_unreported']:,.0f} unreported)" if unrolls["sent_unreported"] else ""
    lost = f", {unrolls['lost_on_the_way']:,.0f} lost on the way" if unrolls["lost_on_the_way"] else ""
    return (
        f"unrolls (pieces of many steps): {unrolls['sent']:,.0f} sent{unreported}, {unrolls['learned']:,.0f} learned, "
        f"{unrolls['waiting']:,.0f} waiting at the stop{lost}, dropped: "
        f"{format_causes(unrolls['dropped_after_sending']) or 'none'}; "
        f"never sent: {format_causes(unrolls['dropped_before_sending']) or 'none'}"
    )


def _unreported_text(unreported: Mapping[str, Mapping[str, float]]) -> str:
    lives = ", ".join(f"{ROLE_TITLES[role]} {figures['lives']}x" for role, figures in unreported.items())
    seconds = sum(figures["seconds"] for figures in unreported.values())
    return f"ended without a final report: {lives}; their last {seconds:.1f} s are in no figure"
