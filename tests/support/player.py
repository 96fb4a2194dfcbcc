"""An env worker whose book of what it sent and what it heard survives its sudden death. Imports no torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simul.common.client.client import InferenceClient
from simul.common.protocol.decisions import Decision, start_flags
from simul.common.protocol.messages import TERMINATED
from simul.common.role.lifecycle import StopFlag
from simul.common.role.run_directory import RunDir

PATIENCE_SEC = 100.0  # for WELCOME
ENVS, STEPS = 4, 6  # games at a time, decisions of each
SENT, ANSWERED, FAILED = 0, 1, 2
ENTRY = np.dtype([("kind", "u1"), ("env", "<i4"), ("episode", "<i4"), ("step", "<i4"), ("value", "<f4")])


def observe(run_id: int, env: int, episode: int, step: int, size: int) -> np.ndarray:
    """float32 [D] that no other decision of any player has: an answer to another one has another value."""
    return np.random.default_rng((run_id, env, episode, step)).standard_normal(size).astype(np.float32)


def play(root: str, name: str, run_id: int, book: str) -> None:
    """Play until SIGTERM, then until everything is answered. An entry is written before it is sent, or when it came."""
    stop, run_dir = StopFlag().install(), RunDir(Path(root))
    spec = run_dir.read_spec()
    client = InferenceClient(
        run_dir.own_endpoint(""), name=name, spec=spec, run_id=run_id, training_token=run_dir.token()
    )
    mask = np.ones(spec.num_actions, np.uint8)

    def decision(env: int, episode: int, step: int) -> Decision:
        if step == STEPS:
            return Decision(env, 0, episode, step, kind=TERMINATED, reward=1.0)
        flags = start_flags(record=True, greedy=False) if step == 0 else 0
        observation = observe(run_id, env, episode, step, spec.observation_size)
        return Decision(env, 0, episode, step, flags=flags, observation=observation, mask=mask)

    with open(book, "ab", buffering=0) as pages:
        client.connect(PATIENCE_SEC)
        due = [decision(env, 0, 0) for env in range(ENVS)]
        while client.waiting or (due and not stop):
            if due and not stop:
                sent = [(SENT, d.env, d.episode, d.step, 0.0) for d in due if d.kind != TERMINATED]
                pages.write(np.array(sent, ENTRY).tobytes())
                client.submit(due)
            replies = client.poll()
            assert not replies.lost
            heard = [(ANSWERED, a.env, a.episode, a.step, a.value) for a in replies.actions if a.action >= 0]
            heard += [(FAILED, f.env, f.episode, f.step, 0.0) for f in replies.failures]
            pages.write(np.array(heard, ENTRY).tobytes())
            due = [decision(a.env, a.episode + (a.step == STEPS), (a.step + 1) % (STEPS + 1)) for a in replies.actions]
            if not due:
                client.poller.wait(0.01)
    client.close()
