"""The observation: planes of the board in the view of one colour, then numbers."""

from __future__ import annotations

from simul.common.protocol.specs import GameSpec, Slice
from simul.env_worker.games.blokus.board import Variant, corners
from simul.env_worker.games.blokus.kernels import COUNTS
from simul.env_worker.games.blokus.pieces import NAMES, ORIENTATIONS

PLANES = (
    ("squares", "its squares"),
    ("corners", "where its next piece can attach: at a corner of its squares or its start, and not forbidden"),
    ("forbidden", "where it must not place: squares of any colour and the edges of its own"),
    ("reach", "51 times the size of the largest piece that can cover the square next"),
)


def game_spec(variant: Variant) -> GameSpec:
    """uint8: planes [C, H, W], then numbers. Colours are counted from the one that is to place."""
    colours, seats, side = len(variant.colours), variant.seats, variant.side
    parts: list[tuple[str, int, float, str]] = [
        (f"{name}.{colour}", side * side, 255.0, f"colour {colour}: {meaning}")
        for name, meaning in PLANES
        for colour in range(colours)
    ]
    parts += [(f"left.{c}", len(NAMES), 1.0, f"colour {c}: its pieces left, {NAMES}") for c in range(colours)]
    parts += [(f"passed.{c}", 1, 1.0, f"colour {c}: it has passed and is out") for c in range(colours)]
    parts += [(f"monomino_last.{c}", 1, 1.0, f"colour {c}: its newest piece is the monomino") for c in range(colours)]
    whose = "the seat that places it next, counted from the observing seat"
    parts += [(f"seat.{c}", seats, 1.0, f"colour {c}: {whose}") for c in range(colours)]
    counts = "2 x points, 36 x log(1 + placements), reach by 5 squares each, 4 x corners, room by squares; at most 255"
    parts += [(f"counts.{c}", COUNTS, 255.0, f"colour {c}: {counts}") for c in range(colours)]
    lead = "128 + points by 8, the bytes of placements and reach, and those of corners and room twice; 1 to 255"
    parts += [
        (f"lead.{c}", COUNTS, 255.0, f"counts of the viewing colour less those of colour {c}: {lead}")
        for c in range(1, colours)
    ]
    layout, start = [], 0
    for name, size, high, meaning in parts:
        layout.append(Slice(name=name, start=start, size=size, high=high, meaning=meaning))
        start += size
    return GameSpec(
        name=f"blokus/{variant.name}",
        observation_size=start,
        num_actions=variant.placements + 1,
        observation_dtype="uint8",
        seats=seats,
        layout=tuple(layout),
        observation_shape=(len(PLANES) * colours, side, side),
        observation_axes="CHW",
        action_planes=len(ORIENTATIONS),
        action_cells=action_cells(variant),
        ending_planes=colours,
        ending_numbers=1,
    )


def action_cells(variant: Variant) -> tuple[int, ...]:
    """Where a convolutional policy head has each action: plane of the orientation, cell of its top left corner."""
    index, row, column = corners(variant).T.astype(int)
    return (*((index * variant.side + row) * variant.side + column).tolist(), -1)  # the last action is the pass
