"""Accounts of a run: what came in equals what became of it. They are part of summary.json, and checked from it alone.

docs/metrics.md states every identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simul.launch.monitoring.snapshot import Snapshot
from simul.launch.processes.role_process import LOG_NAMES
from simul.launch.processes.role_reports import counts, number

ACCOUNTS = (
    "battles", "rows", "steps", "unrolls_completed", "unrolls_sent", "unrolls_received",
    "samples_submitted", "samples_admitted", "samples_sent", "samples_received",
)  # fmt: skip


def build_accounts(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    """By name: `total`, the parts that it became (some of them by cause), and the `difference`, which must be 0.

    What a killed role did after its last report is unknown. Where the other side of the wire has counted it, it is a
    part of its own: `lost_on_the_way`, and in the totals of `unrolls_sent` and `samples_sent`.
    """
    server, learner, workers = snapshot.server, snapshot.learner, snapshot.workers
    sent, received = number(server, "unrolls", "sent") or 0, number(learner, "unrolls", "received") or 0
    return {
        "battles": _account(
            number(workers, "episodes", "started"),
            finished=number(workers, "episodes", "finished"),
            aborted=counts(workers, "episodes", "aborted"),
            alive=number(workers, "episodes", "alive"),
        ),
        "rows": _account(
            number(workers, "decisions"),
            answered=number(workers, "answered"),
            refused=counts(workers, "refused"),
            lost=counts(workers, "unanswered", "lost"),
            waiting=number(workers, "unanswered", "waiting"),
        ),
        "steps": _account(
            number(server, "steps", "seen"),
            sent=number(server, "steps", "sent"),
            dropped=counts(server, "steps", "dropped"),
            open=number(server, "steps", "open"),
        ),
        "unrolls_completed": _account(
            number(server, "unrolls", "completed"),
            sent=sent,
            dropped=counts(server, "unrolls", "dropped"),
            waiting=number(server, "unrolls", "waiting"),
        ),
        "unrolls_sent": _account(max(sent, received), received=received, lost_on_the_way=max(sent - received, 0)),
        "unrolls_received": _account(
            received,
            learned=number(learner, "unrolls", "learned"),
            dropped=counts(learner, "unrolls", "dropped"),
            waiting=number(learner, "unrolls", "waiting"),
        ),
        **_sample_accounts(snapshot),
    }


def _sample_accounts(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    server, learner, workers = snapshot.server, snapshot.learner, snapshot.workers
    sent, received = number(server, "samples", "sent") or 0, number(learner, "samples", "received") or 0
    return {
        "samples_submitted": _account(
            number(workers, "samples", "submitted"),
            accepted=number(workers, "samples", "accepted"),
            refused=counts(workers, "samples", "refused"),
            lost=counts(workers, "samples", "lost"),
            waiting=number(workers, "samples", "waiting"),
        ),
        "samples_admitted": _account(
            number(server, "samples", "admitted"),
            sent=sent,
            dropped=counts(server, "samples", "dropped"),
            waiting=number(server, "samples", "waiting"),
        ),
        "samples_sent": _account(max(sent, received), received=received, lost_on_the_way=max(sent - received, 0)),
        "samples_received": _account(
            received,
            stored=number(learner, "samples", "stored"),
            dropped=counts(learner, "samples", "dropped"),
            waiting=number(learner, "samples", "waiting"),
        ),
    }


def unroll_figures(snapshot: Snapshot, accounts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What became of the unrolls, in the order of their life."""
    completed, sent, received = (accounts[f"unrolls_{name}"] for name in ("completed", "sent", "received"))
    return {
        "completed": completed["total"],
        "dropped_before_sending": completed["dropped"],
        "sent": completed["sent"],
        "taken_back": number(snapshot.server, "unrolls", "taken_back") or 0,
        "sent_unreported": sent["total"] - completed["sent"],
        "received": received["total"],
        "lost_on_the_way": sent["lost_on_the_way"],
        "learned": received["learned"],
        "dropped_after_sending": received["dropped"],
        "waiting": received["waiting"],
    }


def imbalances(summary: Mapping[str, Any]) -> list[str]:
    """Sentences about what does not add up in a summary.json."""
    accounts = summary["accounting"]
    found = [f"there is no account of {name}" for name in ACCOUNTS if name not in accounts]
    for name, account in accounts.items():
        parts = {key: part for key, part in account.items() if key not in ("total", "difference")}
        became = sum(sum(part.values()) if isinstance(part, Mapping) else part for part in parts.values())
        if became != account["total"] or account["difference"]:
            found.append(f"the account of {name} does not balance: {account}")
        if any(n < 0 for n in _numbers(account)):
            found.append(f"the account of {name} has a negative figure: {account}")
    left_open = {"battles": "alive", "steps": "open", "unrolls_completed": "waiting", "samples_admitted": "waiting"}
    for name, part in left_open.items():
        if accounts.get(name, {}).get(part):
            found.append(f"{accounts[name][part]:,.0f} of {name} are still {part} although the run is over")
    found += [f"unrolls: {name} is negative" for name, n in summary["unrolls"].items() if _least(n) < 0]
    if summary["unrolls"]["sent_unreported"] and "inference_server" not in summary["unreported"]:
        found.append("the learner received more unrolls than were sent, although every server made its last report")
    more = accounts.get("samples_sent", {}).get("received", 0) - accounts.get("samples_admitted", {}).get("sent", 0)
    if more > 0 and "inference_server" not in summary["unreported"]:
        found.append("the learner received more samples than were sent, although every server made its last report")
    for what in ("unrolls", "samples"):
        lost = accounts.get(f"{what}_sent", {}).get("lost_on_the_way")
        if lost and not _may_lose_on_the_way(summary):
            found.append(
                f"{lost:,.0f} {what} were lost on the way, although nothing died and the learner was never silent"
            )
    return found


def _may_lose_on_the_way(summary: Mapping[str, Any]) -> bool:
    """Whether the learner or a server died, the learner was silent, or a signal from outside ended it first."""
    unrolls, ends = summary["unrolls"], ("learner", "inference_server")
    restarted = any(n for name, n in summary["restarts"].items() if name.startswith(tuple(LOG_NAMES[e] for e in ends)))
    dropped = summary["accounting"]["samples_admitted"]["dropped"]
    silent = unrolls["taken_back"] or unrolls["dropped_before_sending"].get("learner_down") or "learner_down" in dropped
    return bool(restarted or silent or summary["learner_signalled"] or summary["unreported"].keys() & set(ends))


def _account(total: float | None, **parts: Mapping[str, float] | float | None) -> dict[str, Any]:
    became = {name: part or (0 if not isinstance(part, Mapping) else {}) for name, part in parts.items()}
    return {"total": total or 0, **became, "difference": (total or 0) - sum(_numbers(became))}


def _numbers(parts: Mapping[str, Any]) -> list[float]:
    nested = [list(part.values()) if isinstance(part, Mapping) else [part] for part in parts.values()]
    return [n for group in nested for n in group]


def _least(figure: Any) -> float:
    return min(figure.values(), default=0) if isinstance(figure, Mapping) else figure
