"""The layers as a table, as Markdown and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.harness.promises import Promise, promises_table
from benchmarks.harness.report import markdown_table
from benchmarks.pokemon_layers.layer import Sample, summarise
from benchmarks.pokemon_layers.promises import cost_ratio, paired_ratio

CROWDED_SHARE = 0.10
RATES = ("simulator", "simulator_accelerated", "poke_env")


def table(titles: Mapping[str, str], samples: Mapping[str, Sequence[Sample]]) -> str:
    """One row a layer: medians, and how far the repeats lie apart."""
    rows = [f"{'layer':<46}{'decisions/s':>12}{'spread':>8}{'us of one core':>16}{'spread':>8}{'others':>8}"]
    for name, measured in samples.items():
        found = summarise(measured)
        rows.append(
            f"{titles[name]:<46}{found['decisions_per_sec']:>12,.0f}{found['decisions_per_sec_spread']:>8.0%}"
            f"{found['us_per_decision']:>16,.0f}{found['us_per_decision_spread']:>8.0%}{found['others_share']:>8.0%}"
        )
    crowded = [sample.others_share for measured in samples.values() for sample in measured]
    if max(crowded, default=0.0) > CROWDED_SHARE:
        rows.append(
            f"Others used up to {max(crowded):.0%} of these cores meanwhile: decisions/s are far too low, "
            "the microseconds too high (caches are shared); ratios by processor time suffer least."
        )
    return "\n".join(rows)


def markdown(titles: Mapping[str, str], samples: Mapping[str, Sequence[Sample]], found: Sequence[Promise]) -> str:
    """The same for RESULTS.md: the layers, and what was promised."""
    rows = []
    for name, measured in samples.items():
        figures = summarise(measured)
        rows.append(
            [
                titles[name].removeprefix("+ "),
                f"{figures['decisions_per_sec']:,.0f}", f"{figures['decisions_per_sec_spread']:.0%}",
                f"{figures['us_per_decision']:,.0f}", f"{figures['us_per_decision_spread']:.0%}",
            ]
        )  # fmt: skip
    layers = markdown_table(("layer", "decisions/s", "spread", "us of one core a decision", "spread"), rows)
    return f"{layers}\n\n{promises_table(found)}" if found else layers


def transport_line(samples: Mapping[str, Sequence[Sample]]) -> str:
    """A local server's battles beside hosted ones."""
    ours, theirs = samples.get("websocket"), samples.get("encoding")
    if not ours or not theirs:
        return ""
    return (
        f"over WebSocket {paired_ratio(ours, theirs):.2f} of the decisions/s of hosted battles; "
        f"by processor time {cost_ratio(ours, theirs):.2f}"
    )


def learning_lines(samples: Mapping[str, Sequence[Sample]]) -> str:
    """What else was seen of `make up` in its last repeat."""
    if not samples.get("learning"):
        return ""
    notes = samples["learning"][-1].notes
    lag, latency = notes["policy_lag"], notes["latency_us"]
    return "\n".join(
        [
            f"make up: {notes['parameters']:,} parameters on {notes['device']} in {notes['precision']}, "
            f"{notes['learned_share']:.1%} of the decisions learned from, {notes['updates']:.0f} updates in the window",
            f"policy_lag: {_shown(lag.get('mean'))} mean, {_shown(lag.get('max'))} max; "
            f"dropped steps: {_causes(notes['dropped_steps'])}; dropped unrolls: {_causes(notes['dropped_unrolls'])}",
            f"mean batch {_shown(notes['mean_batch'])}, latency {_shown(latency.get('p50'))} us p50, "
            f"{_shown(latency.get('p99'))} us p99, forward {_shown(notes['forward_us'].get('p50'))} us p50; "
            f"us of one core: {_causes(notes['us_by_process'])}",
        ]
    )


def as_json(
    samples: Mapping[str, Sequence[Sample]], found: Sequence[Promise], conditions: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """{layer: {decisions_per_sec, us_per_decision, ...}}; ratios and promises lie in `learning`, conditions in each."""
    layers = {name: {**summarise(measured), "conditions": dict(conditions)} for name, measured in samples.items()}
    if "learning" in layers:
        layers["learning"]["ratio_to"] = {
            name: round(paired_ratio(samples["learning"], samples[name]), 3) for name in RATES if samples.get(name)
        }
        layers["learning"]["promises"] = [promise.as_dict() for promise in found]
    return layers


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}".rstrip("0").rstrip(".")


def _causes(by_cause: Mapping[str, float]) -> str:
    return ", ".join(f"{cause} {n:,.0f}" for cause, n in by_cause.items() if n) or "none"
