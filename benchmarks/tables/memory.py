"""Bytes of recorded sessions, by the layout of the unrolls in which they are kept."""

from __future__ import annotations

from simul.common.config.loader import load_config
from simul.common.protocol.unroll_layout import UnrollLayout
from simul.env_worker.games.loading import game_spec

UNROLL_LENGTH = 32


def session_memory() -> dict[str, float]:
    """A session of Blokus Classic, of a network without memory; and what it would be with a byte for each action."""
    spec = game_spec(load_config("blokus", ["blokus.variant=classic"]))
    layout = UnrollLayout(spec, UNROLL_LENGTH, state_size=0)
    bits = layout.shapes()["mask"][0][1]
    wider = (UNROLL_LENGTH + 1) * (spec.num_actions - bits)
    return {"KB": layout.place_bytes / 1e3, "KB with a byte an action": (layout.place_bytes + wider) / 1e3}
