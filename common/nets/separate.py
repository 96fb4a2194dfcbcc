"""Policy and value without a common layer: `network.shared: false`."""

from __future__ import annotations

import torch
from torch import Tensor

from simul.common.nets.base import RecurrentNetwork


class SeparateNetworks(RecurrentNetwork):
    """Two networks of one kind: the logits are the first one's, the value is the second one's.

    The state is theirs side by side: twice the floats, about twice the time. The head that is not asked is never
    learned.
    """

    def __init__(self, policy: RecurrentNetwork, value: RecurrentNetwork) -> None:
        super().__init__()
        self.policy, self.value = policy, value
        self.state_size = policy.state_size + value.state_size
        self.reads_exactly = policy.reads_exactly
        self.predicts_opponent = policy.predicts_opponent
        self.predicts_ending = policy.predicts_ending

    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `RecurrentNetwork.forward`."""
        of_policy, of_value = self._states(state)
        logits, _, of_policy = self.policy(observation, mask, of_policy)
        _, value, of_value = self.value(observation, mask, of_value)
        return logits, value, torch.cat((of_policy, of_value), dim=1)

    def forward_listed(
        self, observation: Tensor, mask: Tensor, state: Tensor, actions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """As `RecurrentNetwork.forward_listed`."""
        of_policy, of_value = self._states(state)
        logits, _ = self.policy.forward_listed(observation, mask, of_policy, actions)
        _, value = self.value.forward_listed(observation, mask, of_value, actions)
        return logits, value

    def unroll(self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As `RecurrentNetwork.unroll`."""
        of_policy, of_value = self._states(state)
        logits, _ = self.policy.unroll(observation, mask, of_policy, lengths)
        _, value = self.value.unroll(observation, mask, of_value, lengths)
        return logits, value

    def unroll_predicting(
        self, observation: Tensor, mask: Tensor, state: Tensor, lengths: Tensor, labelled: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `RecurrentNetwork.unroll_predicting`; the policy's network predicts."""
        of_policy, of_value = self._states(state)
        logits, _, opponent = self.policy.unroll_predicting(observation, mask, of_policy, lengths, labelled)
        _, value = self.value.unroll(observation, mask, of_value, lengths)
        return logits, value, opponent

    def forward_predicting(
        self, observation: Tensor, mask: Tensor, state: Tensor, actions: Tensor
    ) -> tuple[Tensor, ...]:
        """As `RecurrentNetwork.forward_predicting`; the policy's network predicts."""
        of_policy, of_value = self._states(state)
        logits, _, *ending = self.policy.forward_predicting(observation, mask, of_policy, actions)
        _, value = self.value.forward_listed(observation, mask, of_value, actions)
        return logits, value, *ending

    def initial_state(self, batch: int) -> Tensor:
        """As `RecurrentNetwork.initial_state`."""
        return torch.cat((self.policy.initial_state(batch), self.value.initial_state(batch)), dim=1)

    def lowered(self, dtype: torch.dtype) -> SeparateNetworks:
        """As `RecurrentNetwork.lowered`."""
        return SeparateNetworks(self.policy.lowered(dtype), self.value.lowered(dtype))

    def _states(self, state: Tensor) -> tuple[Tensor, Tensor]:
        of_policy, of_value = state.split((self.policy.state_size, self.value.state_size), dim=1)
        return of_policy, of_value
