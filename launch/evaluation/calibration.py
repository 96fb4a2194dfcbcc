"""`simul eval --calibration`: the returns that a policy expected beside those that came, as a table and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simul.launch.evaluation.picture import save_picture
from simul.launch.processes.role_reports import Metrics, counts

Rows = Sequence[Mapping[str, float]]


def calibration_rows(figures: Metrics) -> list[dict[str, float]]:
    """A row for each bin that has decisions: how many, and the mean of the `expected` and of the `final` return.

    Args:
        figures: summed over the workers, see `simul.env_worker.calibration`.
    """
    found = {name: counts(figures, "calibration", name) for name in ("decisions", "expected", "final")}
    rows = []
    for number in sorted(found["decisions"], key=int):
        if decisions := found["decisions"][number]:
            means = {name: found[name][number] / decisions for name in ("expected", "final")}
            rows.append({"decisions": decisions, **means})
    return rows


def calibration_error(rows: Rows) -> float:
    """Mean distance of expected and final return over all decisions, of the means of the bins (ECE); nan without."""
    total = sum(row["decisions"] for row in rows)
    apart = sum(row["decisions"] * abs(row["expected"] - row["final"]) for row in rows)
    return apart / total if total else float("nan")


def calibration_text(rows: Rows) -> str:
    """The rows, as chances to win, with the error in all."""
    lines = ["decisions  expected to win  won"]
    for row in rows:
        expected, won = (_chance(row[name]) for name in ("expected", "final"))
        lines.append(f"{row['decisions']:9,.0f}  {expected:15.3f}  {won:.3f}")
    return "\n".join([*lines, f"mean distance {calibration_error(rows) / 2:.3f}"])


def draw_calibration(rows: Rows, file: Path, title: str) -> None:
    """A picture in `file`, .png or .svg. Raises ConfigError where it cannot be written."""
    from matplotlib.figure import Figure  # only here: every evaluation would import it

    figure = Figure(figsize=(4.6, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    axes.plot([_chance(row["expected"]) for row in rows], [_chance(row["final"]) for row in rows], marker="o")
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="expected to win, by the value", ylabel="won", aspect="equal")
    axes.set_title(title, fontsize=9, parse_math=False)
    save_picture(figure, file)


def picture_facts(result: Mapping[str, Any]) -> str:
    """The title of the picture."""
    decisions = sum(row["decisions"] for row in result["calibration"])
    label = result["contestants"][0]["label"]
    return f"{label}: {decisions:,.0f} decisions of {result['episodes']:,} games"


def _chance(mean_return: float) -> float:
    return min(max((1.0 + mean_return) / 2.0, 0.0), 1.0)
