"""The interface of a network: stateless, one row in, one row out; the caller keeps the recurrent state.

The server steps it, the learner unrolls it:

    state = network.initial_state(B)
    logits, value, state = network(observation, mask, state)              # one decision of B sessions
    logits, value = network.unroll(observation, mask, state, lengths)     # T decisions of B sessions

Both give the same numbers. A = number of actions, D = observation size, S = `state_size`. Where it `predicts_opponent`,
the learner also asks what the opponent does, which no server computes:

    logits, value, opponent = network.unroll_predicting(observation, mask, state, lengths, labelled)
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from simul.common.protocol.specs import GameSpec


class RecurrentNetwork(nn.Module):
    """Base of every network. A subclass sets `state_size` and implements `forward`; the rest has defaults.

    Attributes:
        state_size: S, floats of recurrent state per session (h and c side by side, say); 0 for none.
        reads_exactly: the network counts with numbers of the observation, which must not be normalised.
        predicts_opponent: it implements `unroll_predicting`. predicts_ending: `forward_predicting`.
    """

    state_size: int = 0
    reads_exactly: bool = False
    predicts_opponent: bool = False
    predicts_ending: bool = False

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One decision of each session.

        Args:
            observation: wire dtype or float32 [B, D]; images (uint8) unscaled, from 0 to 255.
            mask: bool [B, A], True = legal. An input only: logits come back unmasked.
            state: float32 [B, S].

        Returns:
            logits float32 [B, A], value float32 [B], new state float32 [B, S].
        """
        raise NotImplementedError

    def unroll(self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Consecutive decisions of each session; this default steps `forward` through time.

        Args:
            observation: wire dtype or float32 [T, B, D]; rows at or behind a session's length are padding.
            mask: bool [T, B, A], True = legal.
            state: float32 [B, S], the state before the first row.
            lengths: int64 [B] on the CPU, valid rows of each session, 0 to T.

        Returns:
            logits float32 [T, B, A] and value float32 [T, B], zeros where padded.
        """
        logits, values = [], []
        valid = torch.arange(observation.shape[0])[:, None] < lengths[None, :]  # (T, B)
        some = tuple(valid.nonzero()[0].tolist()) if valid.any() else (0, 0)
        valid = valid.to(observation.device)
        # Padding repeats a valid row: of zeros, or of no legal action, a network may make NaN, also in its gradients.
        observation = torch.where(valid[..., None], observation, observation[some])
        mask = torch.where(valid[..., None], mask, mask[some])
        for t in range(observation.shape[0]):
            step_logits, step_value, state = self(observation[t], mask[t], state)
            logits.append(torch.where(valid[t, :, None], step_logits, 0.0))
            values.append(torch.where(valid[t], step_value, 0.0))
        return torch.stack(logits), torch.stack(values)

    def unroll_predicting(
        self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor, labelled: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """`unroll`, and what the opponent does in the N `labelled` rows; for training only.

        Args:
            observation, mask, state, lengths: as for `unroll`.
            labelled: bool [T, B], True only for rows before a session's length.

        Returns:
            logits and value as of `unroll`; the opponent's logits float32 [N, K, C] (`GameSpec.opponent_labels` and
            `opponent_classes`) of the labelled rows, one step after the other.
        """
        raise NotImplementedError

    def forward_listed(
        self, observation: Tensor, mask: Tensor, state: Tensor, actions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """`forward` where only some actions' logits are wanted, as for search in games of thousands of actions.

        Override it where those cost less than all; this default takes them from `forward`.

        Args:
            observation, mask, state: as for `forward`.
            actions: int64 [B, M], ids.

        Returns:
            logits float32 [B, M], value float32 [B].
        """
        logits, value, _ = self(observation, mask, state)
        return logits.gather(1, actions), value

    def forward_predicting(
        self, observation: Tensor, mask: Tensor, state: Tensor, actions: Tensor
    ) -> tuple[Tensor, ...]:
        """`forward_listed`, and what the game's end will tell of each position; for training only.

        Args:
            observation, mask, state, actions: as for `forward_listed`.

        Returns:
            logits and value as of `forward_listed`; then log-odds float32 [B, E] of the spec's `ending_planes`, where
            it has some, and of its `ending_numbers`, likewise.
        """
        raise NotImplementedError

    def initial_state(self, batch: int) -> Tensor:
        """The state of a session before its first decision: float32 [B, S] zeros on the network's device."""
        parameter = next(self.parameters(), None)
        return torch.zeros(batch, self.state_size, device=None if parameter is None else parameter.device)

    def lowered(self, dtype: torch.dtype) -> RecurrentNetwork:
        """A copy for inference whose large products run in `dtype` (bfloat16).

        State, heads and everything returned stay float32. `load_state_dict` of float32 weights works on the copy.
        The default keeps float32: a user's module need not support other dtypes.
        """
        return copy.deepcopy(self)


class ModuleAdapter(RecurrentNetwork):
    """Adapts a plain nn.Module with `state_size` and `forward` of this interface to RecurrentNetwork."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.state_size = int(getattr(inner, "state_size", 0))

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `RecurrentNetwork.forward`."""
        logits, value, new_state = self.inner(observation, mask, state)
        return logits.float(), value.float(), new_state.float()


def example_observation(spec: GameSpec, uniform: Tensor) -> Tensor:
    """`uniform`, float32 [B, D] in [0, 1), in the wire dtype: bytes from 0 to 255 where that is uint8."""
    dtype: torch.dtype = getattr(torch, spec.observation_dtype)
    return uniform.to(dtype) if dtype.is_floating_point else (256 * uniform).to(dtype)


def compute_dtype(weight: Tensor) -> torch.dtype:
    """The dtype of a product with `weight`: autocast's where it is enabled, else the weight's own."""
    kind = weight.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
