"""Compiled loops over the arrays of a position: legal moves, play, scores, observation, rollouts, tree search.

A state is int32 [HEADER + cells]: the facts below, then a cell for every square of the board and of its border. Copying
the array copies the position. One file, because numba caches a function without regard to changes in other files.

    tree, placements, views, rules = tables(variant)
    state = new_state(variant)
    while not state[OVER]:
        play(state, choose(legal_moves(state, tree, rules)), tree, placements, views, rules)
    outcome(state, rules, returns)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simul.common.runtime.compiled import (
    FLOAT64,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT64,
    column,
    compiled,
    read,
    trailing_zeros,
)
from simul.env_worker.games.blokus.board import (
    BELOW,
    COLOURS,
    HEADER,
    NUMBER,
    OFFSET,
    PASS,
    PIECE,
    SEATS,
    SIDE,
    SKIP,
    SQUARES,
    TURNS,
    Variant,
)
from simul.env_worker.games.blokus.pieces import MONOMINO, NAMES

# Facts of a state. PASSED has a bit for each colour; LEFT, PLACED, COVERED and LAST have a number for each: a bit for
# each piece left, pieces placed, squares placed, and one more than the piece placed last.
TO_MOVE, OVER, PASSED, PLIES = range(4)
LEFT, PLACED, COVERED, LAST = 4, 8, 12, 16

# Bits of a cell, the first two shifted by the colour: a square of that colour's must not lie here; one touches it at a
# corner, or it is the start; then one more than the colour that lies here.
FORBIDDEN, ATTACH, OWNER = 1, 16, 8
BLOCKED = 15  # forbidden to every colour

Numbers = NDArray[Any]

# Counts of a colour. PLACEMENTS: that it has. REACH: over all squares that they cover, the size of the largest piece
# that does. CORNERS: those of them at which a piece may attach. ROOM: squares that may be its own some day: where a
# piece may attach, and what squares that are not forbidden to it join to there, by edges or corners.
POINTS, PLACEMENTS, REACH, CORNERS, ROOM = range(5)
COUNTS = 5
LEAD_FACTORS = (4, 1, 1, 2, 2)  # of differences of the bytes of counts, so that they spread about as much as each other

INT, STATE, BYTES, FLOATS, RANDOM = INT64, column(INT32), column(UINT8), column(FLOAT64), column(UINT64)
TABLE, SMALL_TABLE, RULES = read(INT32, 2, aligned=True), read(INT16, 2, aligned=True), read(INT32, aligned=True)
NODES, LONGS, SUMS = column(INT32, 2), column(INT64), column(FLOAT64, 2)

ALL_PIECES = len(NAMES)
ALL_PLACED, MONOMINO_LAST = 15, 5  # points beside those for squares
MOST_MARGIN = 50  # points that are told apart at the end
EXPLORATION = math.sqrt(2.0)  # of UCB1, for outcomes from 0 to 1 (Kocsis and Szepesvari 2006)


def new_state(variant: Variant) -> NDArray[np.int32]:
    """The empty board, the first colour to move."""
    state = np.zeros(HEADER + variant.stride**2, np.int32)
    cells = state[HEADER:].reshape(variant.stride, variant.stride)
    cells[[0, -1], :] = cells[:, [0, -1]] = BLOCKED
    for colour, start in enumerate(variant.starts):
        cells[start[0] + 1, start[1] + 1] = ATTACH << colour
        state[LEFT + colour] = (1 << ALL_PIECES) - 1
    return state


@compiled(STATE, INT, TABLE, RULES, STATE, INT, nogil=True)
def find_moves(state: Numbers, colour: int, tree: Numbers, rules: Numbers, moves: Numbers, most: int) -> int:
    """Write placements that `colour` may place, in no order, to `moves`; returns how many, at most `most`.

    Walks the covers of every cell at which a piece may attach. A cell that was walked counts as blocked for the rest,
    so that a placement that covers two of them is found once.
    """
    stride = rules[SIDE] + 2
    cells = state[HEADER:]
    forbidden, attach = FORBIDDEN << colour, ATTACH << colour
    left = state[LEFT + colour]
    number = NUMBER + 3 * rules[TURNS + colour]
    blocked = np.empty(len(cells), np.uint8)
    for cell in range(len(cells)):
        blocked[cell] = (cells[cell] & forbidden) != 0
    found = 0
    for cell in range(stride + 1, len(cells) - stride - 1):
        if blocked[cell] or not cells[cell] & attach:
            continue
        row = cell // stride
        column = cell - row * stride
        at = 0
        while at < len(tree):
            if blocked[cell + tree[at, OFFSET]] or not tree[at, BELOW] & left:
                at = tree[at, SKIP]
                continue
            if tree[at, PIECE] & left:
                moves[found] = tree[at, number] + tree[at, number + 1] * row + tree[at, number + 2] * column
                found += 1
                if found == most:
                    return found
            at += 1
        blocked[cell] = 1
    return found


@compiled(STATE, TABLE, RULES, nogil=True)
def legal_moves(state: Numbers, tree: Numbers, rules: Numbers) -> Numbers:
    """int32 [K]: what the colour to move may do, in no order: its placements, else the pass."""
    moves = np.empty(rules[PASS] + 1, np.int32)
    found = find_moves(state, state[TO_MOVE], tree, rules, moves, len(moves))
    if found == 0:
        moves[0] = rules[PASS]
        found = 1
    return moves[:found].copy()


@compiled(STATE, TABLE, RULES, nogil=True)
def count_moves(state: Numbers, tree: Numbers, rules: Numbers) -> int:
    """How many actions the colour to move has."""
    moves = np.empty(rules[PASS], np.int32)
    return max(1, find_moves(state, state[TO_MOVE], tree, rules, moves, len(moves)))


@compiled(STATE, INT, TABLE, RULES, nogil=True)
def has_move(state: Numbers, colour: int, tree: Numbers, rules: Numbers) -> bool:
    """True if `colour` can place a piece."""
    return find_moves(state, colour, tree, rules, np.empty(1, np.int32), 1) > 0


@compiled(STATE, INT, TABLE, SMALL_TABLE, SMALL_TABLE, RULES, nogil=True)
def is_legal(state: Numbers, action: int, tree: Numbers, placements: Numbers, views: Numbers, rules: Numbers) -> bool:
    """True if the colour to move may take `action`."""
    colour = state[TO_MOVE]
    if action < 0 or action > rules[PASS] or state[OVER]:
        return False
    if action == rules[PASS]:
        return not has_move(state, colour, tree, rules)
    placement, view = placements[action], views[colour]
    if not state[LEFT + colour] >> placement[0] & 1:
        return False
    touches = False
    for index in range(SQUARES, SQUARES + placement[1]):
        cell = state[HEADER + view[placement[index]]]
        if cell & FORBIDDEN << colour:
            return False
        touches |= (cell & ATTACH << colour) != 0
    return touches


@compiled(STATE, INT, SMALL_TABLE, SMALL_TABLE, RULES, nogil=True)
def _place(state: Numbers, action: int, placements: Numbers, views: Numbers, rules: Numbers) -> None:
    """Lay the placement down for the colour to move."""
    colour, stride = state[TO_MOVE], rules[SIDE] + 2
    placement, view = placements[action], views[colour]
    piece, size = placement[0], placement[1]
    for index in range(SQUARES, SQUARES + size):
        at = HEADER + view[placement[index]]
        state[at] |= BLOCKED | (colour + 1) << OWNER
        for edge in (at - stride, at - 1, at + 1, at + stride):
            state[edge] |= FORBIDDEN << colour
        for corner in (at - stride - 1, at - stride + 1, at + stride - 1, at + stride + 1):
            state[corner] |= ATTACH << colour
    state[LEFT + colour] &= ~(1 << piece)
    state[PLACED + colour] += 1
    state[COVERED + colour] += size
    state[LAST + colour] = piece + 1


@compiled(STATE, INT, TABLE, SMALL_TABLE, SMALL_TABLE, RULES, nogil=True)
def play(state: Numbers, action: int, tree: Numbers, placements: Numbers, views: Numbers, rules: Numbers) -> None:
    """Take a legal action. A colour that passes is out; the game is over when no colour can place a piece."""
    colours, colour = rules[COLOURS], state[TO_MOVE]
    if action == rules[PASS]:
        state[PASSED] |= 1 << colour
    else:
        _place(state, action, placements, views, rules)
    state[PLIES] += 1
    following = -1
    for turn in range(1, colours + 1):
        other = (colour + turn) % colours
        if state[PASSED] >> other & 1:
            continue
        if following < 0:
            following = other
        if has_move(state, other, tree, rules):
            state[TO_MOVE] = following
            return
    state[OVER] = 1


@compiled(STATE, INT, RULES, nogil=True)
def seat_of(state: Numbers, colour: int, rules: Numbers) -> int:
    """The seat that places `colour`; of the colour that three players share, the seat that places it next."""
    seats = rules[SEATS]
    if colour < seats or seats != 3:
        return colour % seats
    return state[PLACED + colour] % seats


@compiled(STATE, INT, nogil=True)
def colour_points(state: Numbers, colour: int) -> int:
    """Squares placed, and the bonus of a colour that has placed all its pieces. The official score is 89 less."""
    points = state[COVERED + colour]
    if state[LEFT + colour] == 0:
        points += ALL_PLACED
        if state[LAST + colour] == MONOMINO + 1:
            points += MONOMINO_LAST
    return points


@compiled(STATE, INT, RULES, nogil=True)
def seat_points(state: Numbers, seat: int, rules: Numbers) -> int:
    """Points of all colours of a seat; the colour that three players share counts for none."""
    points = 0
    for colour in range(seat, rules[COLOURS], rules[SEATS]):
        if colour < rules[SEATS] or rules[SEATS] != 3:
            points += colour_points(state, colour)
    return points


@compiled(STATE, RULES, FLOATS, nogil=True)
def outcome(state: Numbers, rules: Numbers, returns: NDArray[np.float64]) -> None:
    """Write the outcome of each seat to `returns` [seats]: they add up to 0, and the only winner has 1.

    Winners share: of n seats, each of k winners has (n / k - 1) / (n - 1), and all others have -1 / (n - 1).
    """
    seats = rules[SEATS]
    best, winners = -1, 0
    for seat in range(seats):
        points = seat_points(state, seat, rules)
        if points > best:
            best, winners = points, 1
        elif points == best:
            winners += 1
    for seat in range(seats):
        share = seats / winners if seat_points(state, seat, rules) == best else 0.0
        returns[seat] = (share - 1.0) / (seats - 1)


@compiled(BYTES, LONGS, INT, LONGS, nogil=True)
def _join(room: Numbers, joined: Numbers, stride: int, counts: Numbers) -> None:
    """Count the cells with `room` that touch those in `joined`, and those that touch them, and so on."""
    at = 0
    while at < counts[ROOM]:
        cell = joined[at]
        at += 1
        for middle in (cell - stride, cell, cell + stride):
            for near in range(middle - 1, middle + 2):
                if room[near]:
                    room[near], joined[counts[ROOM]] = 0, near
                    counts[ROOM] += 1


@compiled(STATE, INT, TABLE, RULES, LONGS, nogil=True)
def count_colour(
    state: Numbers, colour: int, tree: Numbers, rules: Numbers, reached: NDArray[np.int64]
) -> NDArray[np.int64]:
    """int64 [COUNTS]. Walks the covers of every cell at which a piece may attach, as `find_moves` does.

    Writes for each cell the size of the largest piece that can cover it next to `reached` int64 [cells], which holds
    zeros.
    """
    stride = rules[SIDE] + 2
    cells = state[HEADER:]
    forbidden, attach, left = FORBIDDEN << colour, ATTACH << colour, state[LEFT + colour]
    blocked, room = np.empty(len(cells), np.uint8), np.empty(len(cells), np.uint8)
    for cell in range(len(cells)):
        blocked[cell] = (cells[cell] & forbidden) != 0
        room[cell] = 1 - blocked[cell]  # 0 again once it is counted
    counts = np.zeros(COUNTS, np.int64)
    counts[POINTS] = colour_points(state, colour)
    cover, behind = np.empty(5, np.int64), np.empty(5, np.int64)  # its cells; for each the row behind its extensions
    joined = np.empty(len(cells), np.int64)
    for cell in range(stride + 1, len(cells) - stride - 1):
        if blocked[cell] or not cells[cell] & attach:
            continue
        if room[cell]:
            room[cell], joined[counts[ROOM]] = 0, cell
            counts[ROOM] += 1
        at, size = 0, 0
        while at < len(tree):
            square = cell + tree[at, OFFSET]
            if blocked[square] or not tree[at, BELOW] & left:
                at = tree[at, SKIP]
                continue
            while size and behind[size - 1] <= at:
                size -= 1
            cover[size], behind[size] = square, tree[at, SKIP]
            size += 1
            if tree[at, PIECE] & left:
                counts[PLACEMENTS] += 1
                for index in range(size):
                    counts[REACH] += max(0, size - reached[cover[index]])
                    reached[cover[index]] = max(size, reached[cover[index]])
            at += 1
        blocked[cell] = 1
    for cell in range(len(cells)):
        counts[CORNERS] += reached[cell] > 0 and (cells[cell] & attach) != 0
    _join(room, joined, stride, counts)
    return counts


@compiled(STATE, INT, INT, TABLE, SMALL_TABLE, RULES, BYTES, nogil=True)
def observe(
    state: Numbers, colour: int, seat: int, tree: Numbers, views: Numbers, rules: Numbers,
    observation: NDArray[np.uint8],
) -> None:  # fmt: skip
    """Write what `seat` sees in the view of `colour` to `observation` [D]; `observation.py` has the layout."""
    colours, seats, side = rules[COLOURS], rules[SEATS], rules[SIDE]
    size, view = side * side, views[colour]
    rest = 4 * colours * size
    first = rest + colours * (ALL_PIECES + 2 + seats)  # of the counts
    observation[:] = 0
    for turn in range(colours):
        other = (colour + turn) % colours
        own, attach, forbidden = turn * size, (colours + turn) * size, (2 * colours + turn) * size
        reach = (3 * colours + turn) * size
        reached = np.zeros((side + 2) * (side + 2), np.int64)
        counts = count_colour(state, other, tree, rules, reached)
        for row in range(side):
            for place in range(side):
                at = view[(row + 1) * (side + 2) + place + 1]
                cell, square = state[HEADER + at], row * side + place
                observation[reach + square] = 51 * reached[at]
                if cell >> OWNER == other + 1:
                    observation[own + square] = 255
                if cell & FORBIDDEN << other:
                    observation[forbidden + square] = 255
                elif cell & ATTACH << other:
                    observation[attach + square] = 255
        for piece in range(ALL_PIECES):
            observation[rest + turn * ALL_PIECES + piece] = state[LEFT + other] >> piece & 1
        facts = rest + colours * ALL_PIECES
        observation[facts + turn] = state[PASSED] >> other & 1
        observation[facts + colours + turn] = state[LAST + other] == MONOMINO + 1
        relative = (seat_of(state, other, rules) - seat) % seats
        observation[facts + 2 * colours + turn * seats + relative] = 1
        at = first + turn * COUNTS
        observation[at + POINTS] = 2 * counts[POINTS]
        observation[at + PLACEMENTS] = min(255, int(36 * math.log1p(counts[PLACEMENTS])))
        observation[at + REACH] = 51 * counts[REACH] // size
        observation[at + CORNERS] = min(255, 4 * counts[CORNERS])
        observation[at + ROOM] = 255 * counts[ROOM] // size
    for index in range(COUNTS):
        for turn in range(1, colours):
            at = first + turn * COUNTS + index
            lead = LEAD_FACTORS[index] * int(np.int64(observation[first + index]) - np.int64(observation[at]))
            observation[at + (colours - 1) * COUNTS] = 128 + min(max(lead, -127), 127)


@compiled(STATE, INT, INT, SMALL_TABLE, RULES, nogil=True)
def show_ending(state: Numbers, colour: int, seat: int, views: Numbers, rules: Numbers) -> NDArray[np.uint8]:
    """uint8 [E]: who owns the squares at the end, in planes as `observe` has them, and the margin of `seat`."""
    colours, side = rules[COLOURS], rules[SIDE]
    size, view = side * side, views[colour]
    ending = np.zeros(colours * size + 1, np.uint8)
    for row in range(side):
        for place in range(side):
            owner = state[HEADER + view[(row + 1) * (side + 2) + place + 1]] >> OWNER
            if owner:
                ending[(owner - 1 - colour + colours) % colours * size + row * side + place] = 255
    best_other = -MOST_MARGIN
    for other in range(rules[SEATS]):
        if other != seat:
            best_other = max(best_other, seat_points(state, other, rules))
    margin = min(max(seat_points(state, seat, rules) - best_other, -MOST_MARGIN), MOST_MARGIN)
    ending[-1] = 255 * (margin + MOST_MARGIN) // (2 * MOST_MARGIN)
    return ending


@compiled(STATE, INT, TABLE, SMALL_TABLE, SMALL_TABLE, RULES, BYTES, LONGS, nogil=True)
def play_and_show(
    state: Numbers,
    action: int,
    tree: Numbers,
    placements: Numbers,
    views: Numbers,
    rules: Numbers,
    observation: NDArray[np.uint8],
    moves: NDArray[np.int64],
) -> int:
    """Take a legal action, and write what the seat that acts then sees to `observation` [D].

    Its legal actions are written to `moves` [A], ascending. Returns how many; none where the game is over.
    """
    play(state, action, tree, placements, views, rules)
    if state[OVER]:
        return 0
    colour = state[TO_MOVE]
    observe(state, colour, seat_of(state, colour, rules), tree, views, rules, observation)
    found = np.empty(rules[PASS], np.int32)
    count = find_moves(state, colour, tree, rules, found, len(found))
    moves[0] = rules[PASS]
    bits = np.zeros(rules[PASS] // 64 + 1, np.uint64)
    for index in range(count):
        bits[found[index] >> 6] |= np.uint64(1) << np.uint64(found[index] & 63)
    at = 0
    for word in range(len(bits)):
        rest = bits[word]
        while rest:
            moves[at] = 64 * word + trailing_zeros(rest)
            rest &= rest - np.uint64(1)
            at += 1
    return max(count, 1)


@compiled(RANDOM, INT, nogil=True)
def draw_below(random: NDArray[np.uint64], below: int) -> int:
    """A number of [0, below), by SplitMix64 (Steele, Lea and Flood 2014) from the state `random` [1]."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = random[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return int(bits >> np.uint64(33)) * below >> 31


@compiled(STATE, TABLE, SMALL_TABLE, SMALL_TABLE, RULES, STATE, RANDOM, nogil=True)
def roll_out(
    state: Numbers,
    tree: Numbers,
    placements: Numbers,
    views: Numbers,
    rules: Numbers,
    moves: Numbers,
    random: NDArray[np.uint64],
) -> None:
    """Play uniformly random actions to the end. `moves` int32 [A] is overwritten."""
    while not state[OVER]:
        found = find_moves(state, state[TO_MOVE], tree, rules, moves, len(moves))
        action = moves[draw_below(random, found)] if found else rules[PASS]
        play(state, action, tree, placements, views, rules)


# Columns of the nodes of a search.
PARENT, ACTION, SEAT, CHILD, SIBLING, UNTRIED, UNTRIED_LEFT = range(7)  # UNTRIED: first of its moves in the pool


@compiled(STATE, INT, STATE, INT, nogil=True)
def _append(pool: Numbers, used: int, moves: Numbers, count: int) -> Numbers:
    """The pool, or one with more room, with so many moves behind the used part."""
    kept = pool
    if used + count > len(pool):
        kept = np.empty(2 * len(pool) + count, np.int32)
        for index in range(used):
            kept[index] = pool[index]
    for index in range(count):
        kept[used + index] = moves[index]
    return kept


@compiled(NODES, INT, INT, STATE, RANDOM, nogil=True)
def _try_one(nodes: Numbers, at: int, child: int, pool: Numbers, random: NDArray[np.uint64]) -> int:
    """Make `child` the node of a random untried move of the node `at`; returns `child`."""
    left = nodes[at, UNTRIED_LEFT]
    last = nodes[at, UNTRIED] + left - 1
    chosen = nodes[at, UNTRIED] + draw_below(random, left)
    pool[chosen], pool[last] = pool[last], pool[chosen]
    nodes[at, UNTRIED_LEFT] = left - 1
    nodes[child, ACTION], nodes[child, PARENT] = pool[last], at
    nodes[child, SIBLING], nodes[at, CHILD] = nodes[at, CHILD], child
    return child


@compiled(NODES, LONGS, SUMS, INT, nogil=True)
def _best_child(nodes: Numbers, visits: Numbers, sums: Numbers, at: int) -> int:
    """UCB1 (Auer, Cesa-Bianchi and Fischer 2002) over the outcomes, scaled to [0, 1], of the seat that acts."""
    seat, log_visits = nodes[at, SEAT], math.log(visits[at])
    best, best_bound = -1, -math.inf
    child = nodes[at, CHILD]
    while child >= 0:
        mean = (sums[child, seat] / visits[child] + 1.0) / 2.0
        bound = mean + EXPLORATION * math.sqrt(log_visits / visits[child])
        if bound > best_bound:
            best, best_bound = child, bound
        child = nodes[child, SIBLING]
    return best


@compiled(NODES, LONGS, SUMS, nogil=True)
def _most_visited(nodes: Numbers, visits: Numbers, sums: Numbers) -> int:
    """Action of the root's child with most visits, of equals that with the best mean."""
    seat, best = nodes[0, SEAT], nodes[0, CHILD]
    child = nodes[0, CHILD]
    while child >= 0:
        more = visits[child] - visits[best]
        if more > 0 or (more == 0 and sums[child, seat] > sums[best, seat]):
            best = child
        child = nodes[child, SIBLING]
    return nodes[best, ACTION]


@compiled(STATE, INT, TABLE, SMALL_TABLE, SMALL_TABLE, RULES, RANDOM, nogil=True)
def search(
    root: Numbers,
    rollouts: int,
    tree: Numbers,
    placements: Numbers,
    views: Numbers,
    rules: Numbers,
    random: NDArray[np.uint64],
) -> int:
    """The action that most of `rollouts` random games went through, of equals the one with the best mean outcome.

    UCT: a move of each position is tried once, in random order, before UCB1 chooses among them. Each seat maximises
    its own outcome.
    """
    seats = rules[SEATS]
    moves = np.empty(rules[PASS], np.int32)
    nodes = np.empty((rollouts + 1, 7), np.int32)
    nodes[:] = -1
    visits = np.zeros(rollouts + 1, np.int64)
    sums = np.zeros((rollouts + 1, seats), np.float64)
    pool, pooled = np.empty(4096, np.int32), 0
    result = np.empty(seats, np.float64)
    for rollout in range(rollouts):
        state, at = root.copy(), 0
        while not state[OVER]:
            if nodes[at, UNTRIED] < 0:
                found = find_moves(state, state[TO_MOVE], tree, rules, moves, len(moves))
                if found == 0:
                    moves[0], found = rules[PASS], 1
                pool = _append(pool, pooled, moves, found)
                nodes[at, UNTRIED], nodes[at, UNTRIED_LEFT] = pooled, found
                nodes[at, SEAT] = seat_of(state, state[TO_MOVE], rules)
                pooled += found
            if nodes[at, UNTRIED_LEFT] > 0:
                at = _try_one(nodes, at, rollout + 1, pool, random)
                play(state, nodes[at, ACTION], tree, placements, views, rules)
                break
            at = _best_child(nodes, visits, sums, at)
            play(state, nodes[at, ACTION], tree, placements, views, rules)
        roll_out(state, tree, placements, views, rules, moves, random)
        outcome(state, rules, result)
        while at >= 0:
            visits[at] += 1
            for seat in range(seats):
                sums[at, seat] += result[seat]
            at = nodes[at, PARENT]
    return _most_visited(nodes, visits, sums)
