"""What is known of contestants that met: payoff matrix and ratings as tables, JSON, and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from simul.common.config.matchups import distinct_labels
from simul.common.runtime.terminal_console import table_console
from simul.common.runtime.terminal_text import print_text, printable
from simul.launch.evaluation.matrix import matrix_table, ratings_table
from simul.launch.evaluation.openings import openings_text
from simul.launch.evaluation.picture import save_picture
from simul.launch.ratings.pair_results import Known, payoffs, rate

LONGEST_LABEL = 40  # characters, in a picture
CELL_INCHES = 0.7


def payoff_figures(known: Known, game: str) -> dict[str, Any]:
    """Matrix of the contestants, ratings of them and of all that they met."""
    labels, keys = list(known.keys), list(known.keys.values())
    ratings, apart, older = rate(known.results, known.settings, keys)
    named = dict(zip(keys, labels))
    shown = [{**rating, "label": named.get(rating["key"], rating["label"])} for rating in ratings]
    for rating, label in zip(shown, distinct_labels([each["label"] for each in shown])):
        rating["label"] = label
    others = len(known.results.pairs) - len(known.results.of(known.settings))
    return {
        "game": game, "settings": known.settings, **payoffs(known.results, known.settings, keys, labels),
        "ratings": shown, "apart": apart, "older": older, "pairs_of_other_settings": others, "missing": known.missing,
    }  # fmt: skip


def print_payoffs(figures: Mapping[str, Any]) -> None:
    """Tables, and sentences about what they leave out."""
    console = table_console()
    plies = max((pair["openings"] for pair in figures["pairs"]), default=0)
    if about_openings := openings_text({"pairs": figures["pairs"], "openings": plies}):
        print_text(about_openings)
    print_text(f"game {figures['game']}")
    if figures["pairs"]:
        console.print(matrix_table(figures))
        console.print(ratings_table(figures["ratings"]))
    else:
        labels = ", ".join(contestant["label"] for contestant in figures["contestants"])
        print_text(f"No pair of {labels} has been played under these settings: --games N plays them.")
    if missing := figures["missing"]:
        print_text(f"{missing} games were not played to their end; the same command plays others in their place.")
    if apart := figures["apart"]:
        print_text(f"Not rated, for they met none of these, not even through others: {', '.join(apart)}.")
    if older := figures["older"]:
        print_text(f"{older} contestants that have not played for longest are not rated.")
    if others := figures["pairs_of_other_settings"]:
        print_text(f"{others} pairs that were played under other settings of the game do not count here.")


def print_json(figures: Mapping[str, Any]) -> None:
    """The same as one line of JSON."""
    print_text(msgspec.json.encode(figures).decode())


def draw_payoffs(figures: Mapping[str, Any], file: Path) -> None:
    """The matrix as a picture: row against column, white where nothing was played. Raises ConfigError."""
    import numpy as np
    from matplotlib.figure import Figure  # only here: every evaluation would import it

    labels = [contestant["label"] for contestant in figures["contestants"]]
    rates = np.full((len(labels), len(labels)), np.nan)
    for pair in figures["pairs"]:
        row, column = labels.index(pair["first"]), labels.index(pair["second"])
        rates[row, column], rates[column, row] = pair["wins"] / pair["battles"], pair["losses"] / pair["battles"]
    size = 2.5 + CELL_INCHES * len(labels)
    figure = Figure(figsize=(size + 1, size), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(rates, cmap="RdYlGn", vmin=0.0, vmax=1.0)
    ticks = range(len(labels))
    axes.set_xticks(ticks, _short(labels), rotation=45, ha="right", parse_math=False)
    axes.set_yticks(ticks, _short(labels), parse_math=False)
    for row, column in np.argwhere(~np.isnan(rates)):
        axes.text(column, row, f"{rates[row, column]:.2f}", ha="center", va="center", fontsize=8)
    axes.set_title("win rate of the row against the column", fontsize=9)
    figure.colorbar(image, ax=axes, shrink=0.8)
    save_picture(figure, file)


def _short(labels: Sequence[str]) -> list[str]:
    texts = (printable(label) for label in labels)
    return [text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 3]}..." for text in texts]
