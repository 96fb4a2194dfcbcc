"""The result of an evaluation as figures, and that of one checkpoint in words. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simul.common.config.matchups import Contestant, Pairing, result_key
from simul.common.runtime.intervals import t_quantile
from simul.launch.evaluation.openings import distinct_games, openings_text
from simul.launch.evaluation.standings import (
    contestant_standings,
    pair_standings,
    seat_score,
    seats_text,
    standing_text,
)
from simul.launch.processes.role_reports import Metrics, counts, number
from simul.launch.ratings.elo import beaten_share, elo_ratings
from simul.launch.ratings.mirrored_games import OUTCOMES, count_groups, effective_games, wilson_of_games


def build_result(
    figures: Metrics, contestants: Sequence[Contestant], pairings: Sequence[Pairing], wanted: int,
    served: Mapping[str, Path], versions: Mapping[str, float | None], game: str,
) -> dict[str, Any]:  # fmt: skip
    """The result in the one shape of `simul eval --json`; what does not apply is None or [].

    The figures at the top are of the first contestant: its returns without opponents, else all its games together.
    Ties and truncated games do not count as wins.

    Args:
        pairings: none in games without opponents.
        served, versions: checkpoint and policy_version by policy name.
        game: name of its spec.
    """
    described = [_described(contestant, served, versions) for contestant in contestants]
    plies = int(number(figures, "opening_plies") or 0)
    pairs = [_pair(figures, index, pairing, plies) for index, pairing in enumerate(pairings)]
    finished = sum(pair["battles"] for pair in pairs) if pairs else int(number(figures, "episodes", "finished") or 0)
    own = [pair for pair in pairs if pair["first"] == described[0]["label"]]
    return {
        "game": game, "checkpoint": described[0]["checkpoint"], "policy_version": described[0]["policy_version"],
        "openings": plies, "wanted": wanted, "episodes": finished, "aborted": counts(figures, "episodes", "aborted"),
        **_returns({} if pairs else figures), **_outcomes_of(own),
        "truncated": sum(pair["truncated"] for pair in own) if own else number(figures, "episodes", "truncated") or 0,
        "contestants": described, "pairs": pairs, "ratings": _ratings(figures, contestants, pairs),
        "standings": contestant_standings(figures, pairings),
    }  # fmt: skip


def _described(
    contestant: Contestant, served: Mapping[str, Path], versions: Mapping[str, float | None]
) -> dict[str, Any]:
    """`opponent`: the scripted one that plays; None for a checkpoint."""
    checkpoint = None if contestant.bot else str(served[contestant.policy])
    return {
        "label": contestant.label, "opponent": contestant.bot or None, "checkpoint": checkpoint,
        "policy_version": versions.get(contestant.policy),
    }  # fmt: skip


def _pair(figures: Metrics, index: int, pairing: Pairing, plies: int) -> dict[str, Any]:
    outcomes = count_outcomes(figures, index, pairing, plies)
    names = {"first": pairing.first.label, "second": pairing.second.label, "wanted": pairing.battles}
    return {**names, "battles": sum(outcomes[name] for name in OUTCOMES), **outcomes}


def _outcomes_of(pairs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of the first contestant of all `pairs` together; None where there are none."""
    names = OUTCOMES[:3]
    if not pairs:
        return dict.fromkeys((*names, "win_rate", "wilson_95"))
    both = {name: sum(pair[name] for pair in pairs) for name in names}
    battles = sum(pair["battles"] for pair in pairs)
    rate = both["wins"] / battles if battles else None
    interval = wilson_of_games(both["wins"], battles, sum(pair["effective_games"] for pair in pairs))
    return {**both, "win_rate": rate, "wilson_95": interval}


def _ratings(
    figures: Metrics, contestants: Sequence[Contestant], pairs: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    duels = [number(figures, "standings", f"{index}/first", "duel") for index in range(len(pairs))]
    played = [
        (pair["first"], pair["second"], pair["effective_games"], beaten_share(pair, duel))
        for pair, duel in zip(pairs, duels)
    ]
    return elo_ratings([contestant.label for contestant in contestants], played)


def count_outcomes(figures: Metrics, index: int, pairing: Pairing, plies: int = 0) -> dict[str, Any]:
    """Outcomes of pairing number `index` for its first contestant: in all, by seat, and of mirrored battles.

    `plies`: random ones at the start of each game. With some, the interval goes over groups of mirrored games.
    """
    seats = pairing.seats
    by_seat = {
        f"as_p{seat + 1}": {
            **_tally(counts(figures, "results", result_key(index, seat))), **seat_score(figures, index, seat, seats)
        }
        for seat in range(seats)
    }  # fmt: skip
    both = {name: sum(tally[name] for tally in by_seat.values()) for name in OUTCOMES}
    battles = sum(both.values())
    mirrored, pairs = counts(figures, "mirrored", str(index)), seats == 2
    distinct = distinct_games(figures, index)
    groups = count_groups(mirrored, seats, distinct)
    worth = effective_games(groups, seats) if plies and pairing.mirrored else battles
    if distinct:  # a game that comes again tells nothing new
        worth = min(worth, distinct)
    return {
        **both, "win_rate": both["wins"] / battles if battles else None,
        "wilson_95": wilson_of_games(both["wins"], battles, worth), "effective_games": worth,
        "distinct_games": distinct,
        **by_seat, "mirrored": pairing.mirrored,
        "pairs": count_pairs(groups) if pairing.mirrored and pairs else None,
        "groups": groups if pairing.mirrored and not pairs else None,
        "standings": pair_standings(figures, index, seats),
    }  # fmt: skip


def count_pairs(groups: Mapping[str, Any]) -> dict[str, Any]:
    """Pairs of battles with the same seeds and exchanged seats, by how many of the two were won.

    The interval is that of the mean over pairs, from their sample variance: it holds however the two are correlated.

    Args:
        groups: of `count_groups`, with two seats.
    """
    won = groups["won"]
    return {
        "complete": groups["complete"], "both_won": won["2"], "one_won": won["1"], "none_won": won["0"],
        "win_rate": groups["win_rate"], "normal_95": groups["normal_95"],
    }  # fmt: skip


def _tally(found: Mapping[str, float]) -> dict[str, int]:
    return {name: int(found.get(name, 0)) for name in OUTCOMES}


def _returns(figures: Metrics) -> dict[str, Any]:
    """Mean return of the finished episodes, their standard deviation, and the 95% interval of the mean.

    Lowest and highest only where every single return was reported.
    """
    mean, mean_square = number(figures, "returns", "mean"), number(figures, "returns", "mean_square")
    count = int(number(figures, "returns", "count") or 0)
    found: dict[str, Any] = {"mean_return": mean if count else None, "std_return": None, "t_95": None}
    if count > 1 and mean is not None and mean_square is not None:
        deviation = math.sqrt(max(0.0, mean_square - mean * mean) * count / (count - 1))
        margin = t_quantile(count - 1) * deviation / math.sqrt(count)
        found |= {"std_return": deviation, "t_95": (mean - margin, mean + margin)}
    listed = figures.get("episode_returns") or ()
    known = count and len(listed) == count
    return {
        **found, "lowest_return": min(listed) if known else None, "highest_return": max(listed) if known else None,
    }  # fmt: skip


def _interval(result: Mapping[str, Any]) -> str:
    if result["t_95"] is None:
        return ""
    low, high = result["t_95"]
    return f" (95%: {low:.2f} to {high:.2f}, Student's t)"


def result_text(result: Mapping[str, Any]) -> str:
    """The result of one checkpoint, alone or against one opponent, in a few lines."""
    openings = f"{line}\n" if (line := openings_text(result)) else ""
    version = result["policy_version"]
    who = f"version {version:.0f}" if version is not None else "the checkpoint"
    missing = missing_text(result["wanted"] - result["episodes"], "episodes", result)
    note = f"\n{missing}" if missing else ""
    if not result["pairs"]:
        mean = "none" if result["mean_return"] is None else f"{result['mean_return']:.2f}"
        return f"{who}: mean return {mean}{_interval(result)} over {result['episodes']} greedy episodes{note}"
    (pair,) = result["pairs"]
    low, high = pair["wilson_95"]
    outcomes = ", ".join(f"{pair[name]} {name}" for name in OUTCOMES)
    return (
        f"{openings}{who} against {pair['second']}: {outcomes} in {pair['battles']} greedy games; "
        f"win rate {pair['win_rate'] or 0:.3f} (95%: {low:.3f} to {high:.3f}){_pairs_text(pair)}"
        f"{_standings_text(pair)}{note}"
    )


def missing_text(missing: int, what: str, result: Mapping[str, Any]) -> str:
    """`20 of 20 episodes were not played to their end (server_lost 20).`; "" where none is missing."""
    if not missing:
        return ""
    causes = ", ".join(f"{cause} {count:.0f}" for cause, count in sorted(result["aborted"].items()))
    why = f" ({causes})" if causes else ""
    return f"{missing} of {result['wanted']} {what} were not played to their end{why}."


def _standings_text(pair: Mapping[str, Any]) -> str:
    own = pair["standings"].get("first")
    lines = [standing_text(own), seats_text(pair)] if own else []
    return "".join(f"\n{line}" for line in lines if line)


def _pairs_text(pair: Mapping[str, Any]) -> str:
    mirrored, groups = pair.get("pairs"), pair.get("groups")
    if groups and groups["complete"] > 1:
        seats = len(groups["won"]) - 1
        return (
            f"\n{groups['complete']} groups of the same game from each of {seats} seats; means have intervals over them"
        )
    if not mirrored or mirrored["complete"] < 2:
        return ""
    interval = mirrored["normal_95"]
    spread = "" if interval is None else f" (95% from their spread: {interval[0]:.3f} to {interval[1]:.3f})"
    return (
        f"\n{mirrored['complete']} pairs of the same battle from both sides: {mirrored['both_won']} both won, "
        f"{mirrored['one_won']} one, {mirrored['none_won']} none{spread}"
    )
