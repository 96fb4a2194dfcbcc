"""A network's memory: none, an LSTM or a GRU, chosen by name."""

from __future__ import annotations

from torch import Tensor

from simul.common.nets.base import RecurrentNetwork
from simul.common.nets.layers.choices import check_choice
from simul.common.nets.layers.gru import PackedGRU
from simul.common.nets.layers.lstm import PackedLSTM, Packing

MEMORIES = "none", "lstm", "gru"


class RememberingNetwork(RecurrentNetwork):
    """Base of networks with a memory by name; it sets `state_size`.

    Attributes:
        lstm, gru: the one that is chosen; None otherwise.
    """

    lstm: PackedLSTM | None
    gru: PackedGRU | None

    def add_memory(self, width: int, hidden: int, memory: str) -> None:
        """A memory of `hidden` units for inputs of `width`. Raises ConfigError for another name than MEMORIES."""
        check_choice("memory", memory, MEMORIES)
        self.lstm = PackedLSTM(width, hidden) if memory == "lstm" else None
        self.gru = PackedGRU(width, hidden) if memory == "gru" else None
        self.state_size = {"none": 0, "lstm": 2 * hidden, "gru": hidden}[memory]

    def remember(self, x: Tensor, state: Tensor) -> tuple[Tensor | None, Tensor]:
        """One step. x: [B, width]; state: float32 [B, S].

        Returns h float32 [B, hidden], None without a memory, and the new state [B, S].
        """
        memory = self.lstm or self.gru
        if memory is None:
            return None, state
        h, new_state = memory(x, state)
        return h, new_state

    def remember_rows(self, x: Tensor, state: Tensor, packing: Packing) -> Tensor | None:
        """All packed rows. x: [P, width]; state: float32 [B, S] before the first. Returns h [P, hidden], or None."""
        memory = self.lstm or self.gru
        if memory is None:
            return None
        return memory.run(x, state.index_select(0, packing.order), packing.batch_sizes)
