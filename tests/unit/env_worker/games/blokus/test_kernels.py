"""Legal moves against the reference and against blokus-rl; rules and scores over random games."""

from __future__ import annotations

import random

import numpy as np
import pytest

from simul.env_worker.games.blokus.board import Variant, classic, duo, tables, turned
from simul.env_worker.games.blokus.kernels import (
    COVERED,
    LAST,
    LEFT,
    OVER,
    PASSED,
    TO_MOVE,
    colour_points,
    count_moves,
    is_legal,
    legal_moves,
    new_state,
    outcome,
    play,
    seat_of,
    seat_points,
)
from simul.env_worker.games.blokus.notation import squares_of
from simul.env_worker.games.blokus.pieces import MONOMINO
from tests.support.blokus_reference import Reference

LONG = [pytest.mark.slow, pytest.mark.timeout(1800)]  # .ci/long runs it
BOTH = pytest.mark.parametrize("variant", [duo(), classic(4)], ids=["duo", "classic"])


def compare_with_reference(variant: Variant, positions: int, seed: int) -> None:
    """Whole random games, until so many positions were compared."""
    draw = random.Random(seed)
    built = tables(variant)
    while positions > 0:
        state, reference = new_state(variant), Reference(variant.name)
        while not state[OVER]:
            colour = int(state[TO_MOVE])
            assert colour == reference.turn
            actions = legal_moves(state, built.tree, built.rules).tolist()
            assert len(set(actions)) == len(actions) == count_moves(state, built.tree, built.rules)
            assert all(is_legal(state, action, *built) for action in actions)
            placed = {frozenset(squares_of(variant, colour, action)): action for action in actions}
            legal = reference.legal(colour)
            assert set(placed) == (legal or {frozenset()})
            positions -= 1
            squares = draw.choice(sorted(placed, key=sorted))
            play(state, placed[squares], *built)
            reference.play(squares or None)
        assert reference.over()
        assert [colour_points(state, colour) for colour in range(len(variant.colours))] == [
            reference.points(colour) for colour in range(len(variant.colours))
        ]


@BOTH
@pytest.mark.parametrize("positions", [30, pytest.param(6000, marks=LONG)])
def test_legal_moves_equal_the_reference(variant, positions):
    compare_with_reference(variant, positions, seed=1)


def test_a_colour_that_can_place_must_not_pass_and_one_that_cannot_must():
    variant = duo()
    built = tables(variant)
    state = new_state(variant)
    assert not is_legal(state, variant.placements, *built)
    state[LEFT] = 0
    assert legal_moves(state, built.tree, built.rules).tolist() == [variant.placements]
    assert is_legal(state, variant.placements, *built)
    play(state, variant.placements, *built)
    assert (state[TO_MOVE], state[PASSED], state[OVER]) == (1, 1, 0)


@pytest.mark.parametrize(
    ("left", "last", "points"),
    [(1, 1, 80), (0, 5, 89 + 15), (0, MONOMINO, 89 + 15 + 5)],
    ids=["left", "all", "monomino"],
)
def test_bonuses(left, last, points):
    state = new_state(duo())
    state[LEFT], state[COVERED], state[LAST] = left, 80 if left else 89, last + 1
    assert colour_points(state, 0) == points


def outcomes(variant: Variant, covered: list[int]) -> list[float]:
    state = new_state(variant)
    state[COVERED : COVERED + len(covered)] = covered
    returns = np.empty(variant.seats)
    outcome(state, tables(variant).rules, returns)
    return returns.tolist()


def test_outcomes_add_up_to_zero_and_ties_share():
    assert outcomes(duo(), [50, 49]) == [1.0, -1.0]
    assert outcomes(duo(), [50, 50]) == [0.0, 0.0]
    assert outcomes(classic(4), [50, 60, 10, 20]) == pytest.approx([-1 / 3, 1, -1 / 3, -1 / 3])
    assert outcomes(classic(4), [60, 60, 10, 20]) == pytest.approx([1 / 3, 1 / 3, -1 / 3, -1 / 3])
    assert outcomes(classic(4), [7, 7, 7, 7]) == pytest.approx([0, 0, 0, 0])


def test_two_players_have_every_second_colour_and_its_points():
    state = new_state(classic(2))
    rules = tables(classic(2)).rules
    assert [seat_of(state, colour, rules) for colour in range(4)] == [0, 1, 0, 1]
    state[COVERED : COVERED + 4] = [10, 20, 30, 50]
    assert [seat_points(state, seat, rules) for seat in range(2)] == [40, 70]


def test_three_players_place_the_fourth_colour_in_turn_and_it_counts_for_none():
    variant = classic(3)
    built = tables(variant)
    state, seats = new_state(variant), []
    for _ in range(24):
        seats.append(seat_of(state, int(state[TO_MOVE]), built.rules))
        play(state, int(legal_moves(state, built.tree, built.rules)[0]), *built)
    assert seats == [0, 1, 2, 0, 0, 1, 2, 1, 0, 1, 2, 2] * 2
    state[COVERED : COVERED + 4] = [10, 20, 30, 50]
    assert [seat_points(state, seat, built.rules) for seat in range(3)] == [10, 20, 30]


class PackageGame:
    """Classic as the package blokus-rl plays it; its actions are orientations on squares, in the agent's view."""

    def __init__(self) -> None:
        pytest.importorskip("pygame", reason="blokus-rl needs pygame")
        package = pytest.importorskip("blokus_rl._blokus", reason="blokus-rl is not installed")
        self.game = package.PyBlokus()
        self.shapes: dict[int, list[tuple[int, int]]] = {}  # orientation -> squares, as steps show them

    def squares(self) -> np.ndarray:
        """bool [colours, 20, 20], as the board lies."""
        return np.frombuffer(self.game.observe(0).observation, bool).reshape(4, 20, 20)

    def legal(self) -> dict[frozenset[tuple[int, int]], int]:
        """Squares on the board -> action, of the agent to move."""
        agent = self.game.agent_selection
        mask = np.frombuffer(self.game.observe(agent).action_mask, np.int8)
        found = {}
        for action in np.flatnonzero(mask).tolist():
            orientation, row, column = action // 400, action // 20 % 20, action % 20
            shape = self._shape(orientation, row, column, action)
            squares = [turned((row + r, column + c), agent, 20) for r, c in shape]
            found[frozenset(squares)] = action
        return found

    def _shape(self, orientation: int, row: int, column: int, action: int) -> list[tuple[int, int]]:
        if orientation not in self.shapes:
            agent, before, tried = self.game.agent_selection, self.squares(), self.game.copy()
            tried.step(action)
            after = np.frombuffer(tried.observe(0).observation, bool).reshape(4, 20, 20)
            placed = [turned((r, c), -agent, 20) for _, r, c in np.argwhere(before != after).tolist()]
            self.shapes[orientation] = [(r - row, c - column) for r, c in placed]
        return self.shapes[orientation]


@pytest.mark.parametrize("games", [2, pytest.param(300, marks=LONG)])
def test_classic_equals_the_package_blokus_rl(games):
    draw = random.Random(1)
    variant = classic(4)
    built = tables(variant)
    package = PackageGame()
    for _ in range(games):
        state = new_state(variant)
        package.game.reset()
        while not package.game.is_over:
            theirs = package.legal()
            if not theirs:  # there, colours without a move are asked again and again
                package.game.step(None)
                continue
            while state[TO_MOVE] != package.game.agent_selection:
                play(state, variant.placements, *built)
            colour = int(state[TO_MOVE])
            actions = legal_moves(state, built.tree, built.rules).tolist()
            ours = {frozenset(squares_of(variant, colour, action)): action for action in actions}
            assert set(ours) == set(theirs)
            squares = draw.choice(sorted(ours, key=sorted))
            play(state, ours[squares], *built)
            package.game.step(theirs[squares])
        assert state[OVER]
        assert [seat_points(state, seat, built.rules) - 89 for seat in range(4)] == list(package.game.scores)
