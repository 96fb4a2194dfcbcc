"""Scores and ranks of an evaluation's contestants, for games with any number of seats. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simul.common.config.matchups import result_key
from simul.common.role.report_names import FIRST, GROUPS, MEASURES, OWN_FIGURE, OWN_FIGURE_SQUARE, SECOND


class Means:
    """Means of named values, and of the squares of those that get intervals; they add up over workers, by `games`."""

    def __init__(self) -> None:
        self._count = 0
        self._sums: dict[str, float] = {}

    def add(self, values: Mapping[str, float], *, square_figures: bool = True) -> None:
        """One game's values, or a group's."""
        self._count += 1
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            if (square := _square(name)) and (square_figures or name in MEASURES):
                self._sums[square] = self._sums.get(square, 0.0) + value * value

    def figures(self) -> dict[str, float]:
        """`games`, and for each name its mean; mean squares: NAME_square of MEASURES, OWN_FIGURE_SQUARE + NAME."""
        return {"games": self._count, **{name: total / self._count for name, total in self._sums.items()}}


class Standings:
    """What each contestant of each pairing reached. `second` may play several seats: theirs are averaged in a game."""

    def __init__(self) -> None:
        self._means: dict[str, Means] = {}
        self._open: dict[tuple[int, int], list[dict[str, float]]] = {}  # mirrored groups that still run

    def add(
        self, pairing: int, first_seat: int, returns: Sequence[float], figures: Mapping[str, Sequence[float]],
        mirror: tuple[int, int] | None,
    ) -> None:  # fmt: skip
        """A game is over. `figures`: by name, [seats] each; `mirror`: the group with the same seeds."""
        others = [seat for seat in range(len(returns)) if seat != first_seat]
        by_contestant = {FIRST: [first_seat], SECOND: others}
        game: dict[str, float] = {}
        for contestant, seats in by_contestant.items():
            each = [seat_values(seat, returns, figures) for seat in seats]
            values = {name: sum(value[name] for value in each) / len(each) for name in each[0]}
            # The figures' intervals come from the groups, where there are any: a report is 64 KiB at most.
            self._of(f"{pairing}/{contestant}").add(values, square_figures=mirror is None)
            game |= {f"{contestant}.{name}": value for name, value in values.items() if _square(name)}
        self._of(result_key(pairing, first_seat)).add({"score": float(returns[first_seat])})
        if mirror is None:
            return
        group = self._open.setdefault(mirror, [])
        group.append(game)
        if len(group) == len(returns):
            del self._open[mirror]
            means = {name: sum(part[name] for part in group) / len(group) for name in game}
            self._of(f"{pairing}/{GROUPS}").add(means)

    def figures(self) -> dict[str, dict[str, float]]:
        """`Means` by `PAIRING/first`, `PAIRING/second`, `PAIRING/groups`, and by `result_key`: of `first` at a seat."""
        return {name: means.figures() for name, means in self._means.items()}

    def _of(self, name: str) -> Means:
        return self._means.setdefault(name, Means())


def _square(name: str) -> str:
    """Where the mean square of a value is kept; "" for none. The contestant's prefix stays: `first.score_square`."""
    contestant, dot, own = name.partition(".")
    if contestant in (FIRST, SECOND):
        return f"{contestant}{dot}{_square(own)}" if _square(own) else ""
    if name.startswith(OWN_FIGURE):
        return f"{OWN_FIGURE_SQUARE}{name.removeprefix(OWN_FIGURE)}"
    return f"{name}_square" if name in MEASURES else ""


def seat_values(seat: int, returns: Sequence[float], figures: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """`score`, `rank` (1 is best; seats with equal scores share the mean of their places), `win` (first place alone),
    `duel` (share of the other seats that it beat, half for those with the same score), and `figure.NAME`.
    """
    own, others = returns[seat], [score for other, score in enumerate(returns) if other != seat]
    above, level = sum(score > own for score in others), sum(score == own for score in others)
    return {
        "score": float(own), "rank": 1 + above + level / 2, "win": float(above == level == 0),
        "duel": 1 - (above + level / 2) / max(len(others), 1),
        **{f"{OWN_FIGURE}{name}": float(values[seat]) for name, values in figures.items()},
    }  # fmt: skip


def outcome(seat: int, returns: Sequence[float]) -> int:
    """1: first place alone; 0: it is shared; -1: another seat is ahead."""
    best = max(returns)
    if returns[seat] < best:
        return -1
    return 1 if sum(score == best for score in returns) == 1 else 0
