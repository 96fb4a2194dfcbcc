"""summary.json: what a run did, with its books balanced; and the same in a few lines for people."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from common.config import Config
from common.launch.figures import counts, episodes_of, number
from common.launch.ownership import write_atomically
from common.launch.panel import LOSSES, causes, mean_batch, shown, win_rates
from common.launch.processes import LOG_NAMES
from common.launch.snapshot import Snapshot
from common.rundir import RunDir

PACKAGES = ("simul", "torch", "numpy", "pyzmq", "msgspec", "poke-env", "gymnasium", "safetensors")


def write_summary(run_dir: RunDir, config: Config, snapshot: Snapshot) -> str:
    """Write summary.json; return the summary for people, which says so where that was not possible."""
    summary = summarise(config, snapshot)
    try:
        write_atomically(run_dir, "summary.json", summary)
    except OSError as error:
        with contextlib.suppress(OSError):  # an earlier run's would be taken for this one's
            (run_dir.root / "summary.json").unlink()
        return f"{in_words(summary)}\nsummary.json could not be written: {error.strerror}"
    where = f"summary: {run_dir.root / 'summary.json'}"
    return f"{in_words(summary)}\n{where}; `simul up` with this run directory resumes"


def summarise(config: Config, snapshot: Snapshot) -> dict[str, Any]:
    """All figures of the run. Rates count from readiness of this run, not from step 0 of a resumed one."""
    server, learner, workers = snapshot.server, snapshot.learner, snapshot.workers
    decisions = number(server, "decisions") or 0
    aborted = counts(workers, "episodes", "aborted")
    battles = {name: number(workers, "episodes", name) or 0 for name in ("started", "finished", "alive")}
    return {
        "game": config.game,
        "decisions": decisions,
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
        "journal_rows_lost": number(learner, "journal_rows_lost") or 0,
        "steps": server.get("steps", {}),
        "unrolls": {
            "sent": number(server, "unrolls", "sent") or 0,
            "received": number(learner, "unrolls", "received") or 0,
            "learned": number(learner, "unrolls", "learned") or 0,
            "waiting": number(learner, "unrolls", "waiting") or 0,
            "lost_on_the_way": _lost_on_the_way(snapshot),
            "dropped": _both(counts(server, "unrolls", "dropped"), counts(learner, "unrolls", "dropped")),
        },
        "rows_errored": counts(server, "rows_errored"),
        "accounting": accounting(snapshot),
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


def accounting(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    """Each book: what came in, what it became, and the difference, which must be 0.

    The book of unrolls begins at the server's door: what it sent is what the learner received and what was lost
    on the way. The latter is nobody's count but the gap between the two, so it hides nothing of the learner's books.
    """
    workers, server, learner = snapshot.workers, snapshot.server, snapshot.learner
    lost = _lost_on_the_way(snapshot)
    return {
        "battles": _book(
            number(workers, "episodes", "started"),
            finished=number(workers, "episodes", "finished"),
            aborted=sum(counts(workers, "episodes", "aborted").values()),
            alive=number(workers, "episodes", "alive"),
        ),
        "steps": _book(
            number(server, "steps", "seen"),
            sent=number(server, "steps", "sent"),
            dropped=sum(counts(server, "steps", "dropped").values()),
            open=number(server, "steps", "open"),
        ),
        "unrolls": _book(
            (number(learner, "unrolls", "received") or 0) + lost,
            lost_on_the_way=lost,
            learned=number(learner, "unrolls", "learned"),
            dropped=sum(counts(learner, "unrolls", "dropped").values()),
            waiting=number(learner, "unrolls", "waiting"),
        ),
    }


def _lost_on_the_way(snapshot: Snapshot) -> float:
    """Unrolls that were sent and never heard of again: after a kill, on the wire or since the dead one's last report.

    A killed server's last report may also miss some that it sent; the gap is then taken for 0.
    """
    sent, received = number(snapshot.server, "unrolls", "sent"), number(snapshot.learner, "unrolls", "received")
    return max((sent or 0) - (received or 0), 0)


def _book(total: float | None, **parts: float | None) -> dict[str, Any]:
    became = {name: part or 0 for name, part in parts.items()}
    return {"total": total or 0, **became, "difference": (total or 0) - sum(became.values())}


def _both(left: Mapping[str, float], right: Mapping[str, float]) -> dict[str, float]:
    return {cause: left.get(cause, 0) + right.get(cause, 0) for cause in sorted({*left, *right})}


def versions() -> dict[str, str]:
    """Versions of what the run depends on."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def in_words(summary: Mapping[str, Any]) -> str:
    """A few lines."""
    battles, unrolls = summary["battles"], summary["unrolls"]
    lag, latency = summary["policy_lag"], summary["latency_us"]
    lines = [
        f"{summary['decisions']:,.0f} decisions in {summary['seconds']:,.0f} s "
        f"({shown(summary['decisions_per_sec'])}/s), mean batch {shown(summary['mean_batch'], 1)}, "
        f"latency {shown(latency.get('p50'))} us p50, {shown(latency.get('p99'))} us p99",
        f"{episodes_of(summary['game'])}: {battles['started']:,.0f} started, {battles['finished']:,.0f} finished, "
        f"{battles['aborted']:,.0f} aborted ({causes(battles['aborted_by_cause']) or 'none'})",
        f"learned: policy_version {shown(summary['policy_version'])}, {shown(summary['decisions_learned'])} steps; "
        f"policy_lag {shown(lag.get('mean'), 2)} mean, {shown(lag.get('max'))} max",
        *_skipped_in_words(summary),
        _unrolls_in_words(unrolls),
        f"steps dropped before an unroll was sent: {causes(counts(summary, 'steps', 'dropped')) or 'none'}",
    ]
    if died := summary["restarts"].get(f"{LOG_NAMES['inference_server']}-0"):
        lines.append(f"the inference server died {died}x: nobody counted what it did after its last report each time")
    if rates := win_rates({"recent": summary["recent_results"]}):
        lines.append(f"recent wins: {', '.join(rates)}")
    for name, book in summary["accounting"].items():
        if book["difference"]:
            name = episodes_of(summary["game"]) if name == "battles" else name
            lines.append(f"the books of {name} do not balance: {book}")
    return "\n".join(lines)


def _skipped_in_words(summary: Mapping[str, Any]) -> list[str]:
    if not (skipped := summary["skipped_minibatches"]):
        return []
    cause = f": {summary['skipped_cause']}" if summary["skipped_cause"] else ""
    return [f"skipped: {skipped:,.0f} minibatches, from which nothing was learned{cause}"]


def _unrolls_in_words(unrolls: Mapping[str, Any]) -> str:
    lost = f", {unrolls['lost_on_the_way']:,.0f} lost on the way" if unrolls["lost_on_the_way"] else ""
    return (
        f"unrolls (pieces of many steps): {unrolls['sent']:,.0f} sent, {unrolls['learned']:,.0f} learned, "
        f"{unrolls['waiting']:,.0f} waiting at the stop{lost}, dropped: {causes(unrolls['dropped']) or 'none'}"
    )
