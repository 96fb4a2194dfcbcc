"""Adam and AdamW whose methods run as they are written, without the wrappers of torch.compile.

torch wraps the methods of its optimizers so that torch.compile does not trace them. The first call of a wrapped method
imports the compiler, which takes 1.3 s of processor time at each start of a learner. The learner compiles nothing.
"""

from __future__ import annotations

import inspect

import torch


class _Unwrapped:
    """The methods that are called at each start and in each step. Where torch does not wrap one, it is the same."""

    add_param_group = inspect.unwrap(torch.optim.Adam.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Adam.zero_grad)
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


class Adam(_Unwrapped, torch.optim.Adam):
    """`torch.optim.Adam`, with the same numbers bit for bit."""


class AdamW(_Unwrapped, torch.optim.AdamW):
    """`torch.optim.AdamW`, with the same numbers bit for bit."""
