"""A profile in words, for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from simul.launch.monitoring.profiling.bottleneck import TITLES, Bottleneck
from simul.launch.monitoring.profiling.profile import STAGES, Profile, RoleProfile
from simul.launch.monitoring.view.figure_texts import format_histogram


def profile_text(profile: Profile, bottleneck: Bottleneck, files: Iterable[Path], name: str) -> str:
    """Where the time goes by role and stage, the decision's way through the server, and what limits the run.

    `files`: that were written; `name`: of the run.
    """
    lines = [
        f"Profile of {name}, {profile.seconds:.1f} s: {profile.decisions:,.0f} decisions "
        f"({profile.decisions_per_sec:,.0f}/s), {profile.cores_used:.2f} of {profile.cores:g} cores used"
        + (" on the machine of `simul up`" if profile.on_cluster else "")
        + (f", {profile.other_cores_used:.2f} by others" if profile.other_cores_used >= 0.01 else ""),
    ]
    for role, figures in profile.roles.items():
        lines += ["", *_role_lines(role, figures)]
    lines += ["", *(f"{name:<11}{text}" for name, text in _server_rows(profile))]
    if profile.silent:
        lines.append(f"{'no report':<11}{', '.join(profile.silent)}")
    lines += [f"{'written':<11}{file}" for file in files]
    return "\n".join([*lines, "", bottleneck.sentence])


def _role_lines(role: str, figures: RoleProfile) -> list[str]:
    count = f" x {figures.processes}" if figures.processes > 1 else ""
    below = f" + {figures.children_cores:.2f} by what they started" if figures.children_cores >= 0.01 else ""
    title = f"{TITLES[role]}{count}: {figures.cores:.2f} cores{below}"
    lines = [f"{title:<60}share of time  us a decision"]
    for stage, share in figures.share.items():
        if share > 0:
            what = STAGES[role].get(stage, "")
            lines.append(f"  {stage:<13}{what:<51}{share:>7.1%}{figures.us_per_decision[stage]:>15,.1f}")
    return lines


def _server_rows(profile: Profile) -> list[tuple[str, str]]:
    each, per_batch, mean = profile.decisions_per_message, profile.messages_per_batch, profile.mean_batch
    started = str(profile.processes_started or "none")
    return [
        (
            "messages",
            f"{profile.messages_per_sec:,.0f}/s"
            + (f", {each:,.1f} decisions each" if each is not None else "")
            + (f", {per_batch:,.2f} a batch" if per_batch is not None else ""),
        ),
        (
            "batches",
            f"{profile.batches_per_sec:,.0f}/s"
            + (f", mean {mean:,.1f}: {format_histogram(profile.batch_histogram)}" if mean is not None else ""),
        ),
        ("queue", _percentiles(profile.queue_wait_us)),
        ("forward", _percentiles(profile.forward_us)),
        ("latency", _percentiles(profile.latency_us)),
        ("processes", f"{profile.processes_running}, {started} started meanwhile"),
    ]


def _percentiles(figures: Mapping[str, float]) -> str:
    return ", ".join(f"{us / 1000:,.2f} ms {name}" for name, us in figures.items()) or "-"
