"""What an entry of the zoo says of itself: its games in short and as a table, and card.md. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from simul.common.runtime.terminal_text import printable

MOST_CHARACTERS = 2000  # of a fact that is read from another card
FACT = re.compile(r"- ([\w -]+): (.+)")  # a line of the list at the top of a card
Results = Mapping[str, Mapping[str, Any]]  # what was played, by opponent; "": a game for one
LIMITS = "It knows this game and this version of the encoder only, and has not been measured against people."


def played_games(result: Mapping[str, Any]) -> Results:
    """The figures of results.json out of those of `simul eval --json`, of one checkpoint against each opponent.

    Raises ValueError where nothing was played to its end.
    """
    if not result["pairs"]:
        if result["mean_return"] is None:
            raise ValueError("no episode was played to its end")
        return {"": {name: result[name] for name in ("mean_return", "t_95", "episodes")}}
    if any(pair["win_rate"] is None for pair in result["pairs"]):
        raise ValueError("no game was played to its end")
    return {pair["second"]: _of_pair(pair) for pair in result["pairs"]}


def _of_pair(pair: Mapping[str, Any]) -> dict[str, Any]:
    scores = (pair.get("standings") or {}).get("first")
    mean_score = {"mean_score": scores["mean_score"]} if scores else {}
    return {"win_rate": pair["win_rate"], "wilson_95": pair["wilson_95"], **mean_score, "episodes": pair["battles"]}


def strength_text(results: Results, seats: int = 2) -> str:
    """`won 0.792 against damage`, the strongest opponent, or `mean return 500.0`; "" where nothing was played.

    With more seats, where to win is to be the best of all: `scores +4.7 a game against 2 of fantasy_rules`.
    """
    if "" in results:
        return f"mean return {results['']['mean_return']:.1f}"
    scores = {opponent: each["mean_score"] for opponent, each in results.items() if "mean_score" in each}
    if seats > 2 and scores:
        strongest = min(scores, key=scores.__getitem__)
        return f"scores {scores[strongest]:+.1f} a game against {seats - 1} of {strongest}"
    strongest = min(results, key=lambda opponent: results[opponent]["win_rate"], default="")
    return f"won {results[strongest]['win_rate']:.3f} against {strongest}" if strongest else ""


def card_facts(text: str) -> dict[str, str]:
    """The list at the top of a card: first value by key, as a terminal shows it, and cut where it is long."""
    facts: dict[str, str] = {}
    for line in text.split("\n"):
        if found := FACT.fullmatch(line):
            facts.setdefault(found[1], printable(found[2])[:MOST_CHARACTERS])
        elif facts:
            break
    return facts


def card_text(
    name: str, facts: Iterable[tuple[str, str]], results: Results, note: str = "", commands: Sequence[str] = ()
) -> str:  # fmt: skip
    """card.md.

    Args:
        name: `zoo:NAME`, or that of the folder.
        facts: (key, value) of each line of the list at its top; licence and origin are two of them.
        note: sentences more.
        commands: that take it, beside those that take every entry.
    """
    name = one_line(name)
    about = "\n".join(f"- {key}: {one_line(value)}" for key, value in facts)
    taking = [f"simul eval --checkpoint {name}", *commands, "simul serve"]
    use = f"{', '.join(f'`{each}`' for each in taking)} and `simul up --from` take it."
    limits = f"{LIMITS} {one_line(note)}".rstrip()
    return f"# {name}\n\n{about}\n\n{_table(results)}\n\n{limits}\n\n{use}\n"


def _table(results: Results) -> str:
    if "" in results:
        return _markdown(["mean return", "95%", "games"], [_figures(results[""])], text_columns=0)
    with_scores = any("mean_score" in result for result in results.values())
    rows = [
        [opponent, *_figures(result), *([f"{result['mean_score']:.2f}"] if with_scores else [])]
        for opponent, result in results.items()
    ]
    return _markdown(["against", "won", "95%", "games", *["mean score"] * with_scores], rows, text_columns=1)


def _figures(result: Mapping[str, Any]) -> list[str]:
    mean = result.get("win_rate", result.get("mean_return"))
    interval = result.get("wilson_95") or result.get("t_95")
    words = f"[{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "unknown"
    return [f"{mean:.3f}", words, f"{result['episodes']:,}"]


def _markdown(heads: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int) -> str:
    rule = ["---"] * text_columns + ["---:"] * (len(heads) - text_columns)
    head, *body = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    return "\n".join([head, f"|{'|'.join(rule)}|", *body])


def one_line(text: str) -> str:
    """`text` as one line of a card or a terminal."""
    return printable(" ".join(text.split()))
