"""`mlp_gru`: `mlp` with a GRU of `hidden` units behind its layers, beside a skip connection."""

from __future__ import annotations

from simul.common.nets.models.mlp import Mlp


class MlpGru(Mlp):
    """As `Mlp`; a session's state is the GRU's: S = hidden."""

    memory = "gru"
