"""`simul eval --calibration`: the chance to win that a policy expected beside the games that it won: table, picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simul.common.config.schema import Config
from simul.common.errors import ConfigError
from simul.launch.evaluation.picture import save_picture
from simul.launch.processes.role_reports import Metrics, counts, number

Rows = Sequence[Mapping[str, float]]
EXPECTED = "--calibration compares values with games won: expected a game of two seats that pays 1, 0 or -1 at its end"


def check_returns(config: Config, seats: int) -> None:
    """Raises ConfigError where the configuration says that a return is no outcome, which a value predicts."""
    title = config.game_title
    if seats != 2:
        raise ConfigError(f"{EXPECTED}; {title} has {seats} {'seat' if seats == 1 else 'seats'}. Leave it out.")
    if problem := config.game_section.returns_problem():
        raise ConfigError(f"{EXPECTED} and nothing else but shaping by a potential; {problem}. Leave it out.")


def check_outcomes(figures: Metrics) -> None:
    """Raises ConfigError where games that were played have paid something else than their outcomes."""
    if sessions := number(figures, "calibration", "other_returns"):
        raise ConfigError(f"{EXPECTED}; {sessions:.0f} of these sessions earned something else: there is no table.")


def calibration_rows(figures: Metrics) -> list[dict[str, float]]:
    """A row for each bin that has decisions: how many, the mean chance to win that was `expected`, the share `won`.

    A tie is half a game won. Expected chances are (1 + value) / 2, which may lie outside of 0 to 1.

    Args:
        figures: summed over the workers, see `simul.env_worker.calibration`; [] where `check_outcomes` refuses them.
    """
    if number(figures, "calibration", "other_returns"):
        return []
    found = {name: counts(figures, "calibration", name) for name in ("decisions", "expected", "won")}
    rows = []
    for index in sorted(found["decisions"], key=int):
        if decisions := found["decisions"][index]:
            expected, won = (found[name][index] / decisions for name in ("expected", "won"))
            rows.append({"decisions": decisions, "expected": (1.0 + expected) / 2.0, "won": won})
    return rows


def calibration_error(rows: Rows) -> float:
    """Mean distance of `expected` and `won` over all decisions, of the means of the bins (ECE); nan without."""
    total = sum(row["decisions"] for row in rows)
    apart = sum(row["decisions"] * abs(row["expected"] - row["won"]) for row in rows)
    return apart / total if total else float("nan")


def calibration_text(rows: Rows) -> str:
    """The rows, with the error in all."""
    lines = ["decisions  expected to win  won"]
    lines += [f"{row['decisions']:9,.0f}  {row['expected']:15.3f}  {row['won']:.3f}" for row in rows]
    return "\n".join([*lines, f"mean distance {calibration_error(rows):.3f}"])


def draw_calibration(rows: Rows, file: Path, title: str) -> None:
    """A picture in `file`, .png or .svg. Raises ConfigError where it cannot be written."""
    from matplotlib.figure import Figure  # only here: every evaluation would import it

    figure = Figure(figsize=(4.6, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    axes.plot([row["expected"] for row in rows], [row["won"] for row in rows], marker="o", clip_on=False)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="expected to win, by the value", ylabel="won", aspect="equal")
    axes.set_title(title, fontsize=9, parse_math=False)
    save_picture(figure, file)


def picture_facts(result: Mapping[str, Any]) -> str:
    """The title of the picture."""
    decisions = sum(row["decisions"] for row in result["calibration"])
    label = result["contestants"][0]["label"]
    return f"{label}: {decisions:,.0f} decisions of {result['episodes']:,} games"
