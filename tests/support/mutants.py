"""Messages to the server of every kind, and what is left of them after bits were flipped, cut out and put in."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from simul.common.client.evaluation import pack_evaluate
from simul.common.client.steps import pack_step
from simul.common.protocol.codec import Frame, encode
from simul.common.protocol.decisions import Decision
from simul.common.protocol.messages import PROTOCOL, Close, Hello, Ping, StatusRequest
from simul.common.protocol.specs import GameSpec


def valid_messages(spec: GameSpec) -> list[list[bytes]]:
    """Frames of one message of each kind that a client of `spec` sends; the STEP also ends a session."""
    row = np.ones(spec.observation_size, spec.dtype())
    decisions = [
        Decision(0, 0, 3, 0, flags=1, observation=row, mask=np.ones(spec.num_actions, np.uint8)),
        Decision(1, 0, 9, 4, kind=2, reward=1.0, observation=row),
    ]
    hello: dict[str, Any] = {"protocol": PROTOCOL, "client": "me", "run_id": 3}
    messages = [
        encode(Hello(**hello, spec_fingerprint=spec.fingerprint(), token="cd", training_token="ef")),
        encode(Ping(id=2)),
        encode(StatusRequest(id=3)),
        encode(Close()),
        encode(*pack_step(5, decisions, spec)),
        encode(*pack_evaluate(6, [row] * 2, np.ones((2, spec.num_actions)), spec, sessions=[(0, 0, 3), (-1, -1, -1)])),
    ]
    return [[bytes(frame) for frame in frames] for frames in messages]


def mutate(message: Sequence[Frame], dice: random.Random) -> list[bytes]:
    """The same frames after one to six accidents."""
    frames = [bytearray(frame) for frame in message]
    for _ in range(dice.randint(1, 6)):
        frame = frames[dice.randrange(len(frames))] if frames else bytearray()
        place = dice.randrange(len(frame) + 1)
        match dice.randrange(8):
            case 0 if place < len(frame):
                frame[place] ^= 1 << dice.randrange(8)
            case 1 if place < len(frame):
                frame[place] = dice.randrange(256)
            case 2:
                frame[place:place] = dice.randbytes(dice.randint(1, 5))
            case 3:
                del frame[place : place + dice.randint(1, 9)]
            case 4:
                frame[place:place] = dice.choice([b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\x91" * 500])
            case 5 if frames:
                del frames[dice.randrange(len(frames))]
            case 6 if frames:
                frames.insert(dice.randrange(len(frames) + 1), bytearray(dice.choice(frames)))
            case _:
                dice.shuffle(frames)
    return [bytes(frame) for frame in frames]
