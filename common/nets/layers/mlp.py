"""Linear layers with an activation behind each."""

from __future__ import annotations

from itertools import chain, pairwise, repeat

from torch import nn

from simul.common.nets.layers.choices import check_choice

_ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh}


def linear_layers(inputs: int, hidden: int, layers: int, activation: str) -> nn.Sequential:
    """`layers` linear layers of `hidden` units: [B, inputs] -> [B, hidden], or the same without a layer.

    `activation`: relu, or tanh, which keeps exploring where few numbers of like size are observed (Andrychowicz et al.
    2021, section 3.2); layers of tanh begin orthogonal, with gain sqrt(2). Raises ConfigError for another one.
    """
    check_choice("activation", activation, _ACTIVATIONS)
    body = nn.Sequential()
    for before, after in pairwise(chain([inputs], repeat(hidden, layers))):
        linear = nn.Linear(before, after)
        if activation == "tanh":
            nn.init.orthogonal_(linear.weight, 2**0.5)
            nn.init.zeros_(linear.bias)
        body.extend([linear, _ACTIVATIONS[activation]()])
    return body
