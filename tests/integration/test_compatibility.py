"""What an earlier version left is read by this one: a run directory with a checkpoint, made by commit 75cb9e87.

`tests/golden/run_75cb9e87` is a run of CartPole there (6,000 decisions, a network of 8 units), without its logs;
outputs.json holds what its policy answered. test_supervisor.py resumes it.
"""

from __future__ import annotations

import json

import torch

import simul
from simul.common.runtime.installation import ROOT

FORMER = ROOT / "tests" / "golden" / "run_75cb9e87"
DECISIONS = 7_347  # learned there


def test_a_former_checkpoint_answers_as_it_did() -> None:
    policy, known = simul.load_policy(FORMER), json.loads((FORMER / "outputs.json").read_text())
    observation, mask = torch.tensor(known["observation"]), torch.tensor(known["mask"])
    state = policy.initial_state(len(mask))
    for step in known["steps"]:
        logits, value, state = policy(observation, mask, state)
        torch.testing.assert_close(logits.clamp(min=-1e9), torch.tensor(step["logits"]))
        torch.testing.assert_close(value, torch.tensor(step["value"]))
