"""Plays CartPole with the policy that a running Simul serves: pyzmq, msgpack, numpy, and gymnasium for the game itself.
The server: simul serve --checkpoint runs/cartpole. Here: its endpoint, tcp://127.0.0.1:5555.
"""

import sys
import time
from typing import Any

import gymnasium
import msgpack
import numpy as np
import zmq

SPEC = "76e7c581761cb43f"  # of the game gymnasium/CartPole-v1; `simul connect` shows a server's
COLUMNS = dict(keys="<i8", kind="u1", flags="u1", reward="<f4", observation="<f4", mask="u1", policy="u1")
SERVED = "game '{game}': observation {observation_dtype}[{observation_size}], {num_actions} actions"
SILENCE = "No answer: is the endpoint right? A server with CURVE keys answers only clients with keys (docs/serving.md)."
ENDPOINT = "Expected the server's endpoint, such as tcp://127.0.0.1:5555 or ipc://PATH; got {}."
DECISION, TERMINATED, TRUNCATED, START = 0, 1, 2, 1


def pack(kind: str, tensors: dict[str, Any], **fields: Any) -> list[bytes]:
    """A message as frames: the header, then each tensor's bytes."""
    declared = {"tensors": [(name, t.dtype.name, t.shape) for name, t in tensors.items()]} if tensors else {}
    return [msgpack.packb({"type": kind, **fields, **declared}), *(t.tobytes() for t in tensors.values())]


def unpack(frames: list[bytes]) -> tuple[dict[str, Any], dict[str, Any]]:
    header = msgpack.unpackb(frames[0])
    return header, {n: np.frombuffer(f, d).reshape(s) for (n, d, s), f in zip(header.get("tensors", []), frames[1:])}


class Game:
    def __init__(self, number: int) -> None:
        self.number, self.episode, self.env = number, -1, gymnasium.make("CartPole-v1")

    def begin(self) -> tuple[Any, ...]:
        self.episode, self.step = self.episode + 1, 0
        return (self.number, 0, self.episode, 0, 0), DECISION, START, 0.0, self.env.reset()[0], (1, 1), 0

    def act(self, action: int) -> list[tuple[Any, ...]]:
        """Rows that follow: the next decision, or the end and the first decision of the next game."""
        observation, reward, terminated, truncated, _ = self.env.step(action)
        self.step, kind = self.step + 1, TERMINATED if terminated else TRUNCATED if truncated else DECISION
        row = (self.number, 0, self.episode, self.step, 0), kind, 0, reward, observation, (1, 1), 0
        return [row] if kind == DECISION else [row, self.begin()]


def tell(socket: zmq.Socket[bytes], frames: list[bytes]) -> None:
    try:
        socket.send_multipart(frames)
    except zmq.Again:  # no connection took it within SNDTIMEO
        sys.exit(SILENCE)


def ask(socket: zmq.Socket[bytes], hello: dict[str, Any], number: int, rows: list[Any]) -> dict[int, int]:
    """The action of every row; {} where the server forgot our games. Says HELLO first, and again after a silence."""
    tensors: dict[str, Any] = {name: np.array(c, COLUMNS[name]) for name, c in zip(COLUMNS, zip(*rows))}
    step, actions, silences = pack("STEP", tensors, id=number), dict[int, int](), 0
    tell(socket, step if "token" in hello else pack("HELLO", {}, **hello))
    while len(actions) < len(rows):
        heard = socket.poll(3000)
        silences = 0 if heard else silences + 1
        if silences == 10:
            sys.exit(SILENCE)
        header, tensors = unpack(socket.recv_multipart()) if heard else ({"type": "ERROR", "code": "ERR_HELLO"}, {})
        if header["type"] == "ACTIONS" and header["id"] == number:
            actions.update(zip(tensors["row"].tolist(), tensors["action"].tolist()))
        elif header["type"] == "WELCOME":
            if "token" not in hello:
                print(ascii(SERVED.format(**header))[1:-1], flush=True)  # a person sees whether the game is meant
            forgotten, hello["token"] = "token" in hello and not header["resumed"], header["token"]
            if forgotten:
                return {}
            tell(socket, step)  # for the first time, or again: what was answered is answered the same
        elif header.get("code") == "ERR_HELLO":
            tell(socket, pack("HELLO", {}, **hello))
        elif header["type"] == "ERROR":
            sys.exit(ascii(f"{header['code']}: {header['message']}")[1:-1])  # shows what a terminal would obey
    return actions


if __name__ == "__main__":
    dealer, games, lengths, number = zmq.Context().socket(zmq.DEALER), [*map(Game, range(8))], list[int](), 0
    dealer.set(zmq.SNDTIMEO, 10_000)  # where keys are refused, a send would wait for ever
    try:
        dealer.connect(sys.argv[1])
    except (IndexError, zmq.ZMQError):
        sys.exit(ENDPOINT.format(ascii(" ".join(sys.argv[1:]))))
    hello = {"protocol": "simul/1", "client": "example-py", "run_id": time.time_ns(), "spec_fingerprint": SPEC}
    rows = [game.begin() for game in games]
    while len(lengths) < 20:
        actions = ask(dealer, hello, number := number + 1, rows)
        lengths += [row[0][3] for row in rows if actions and row[1] != DECISION]
        turns = [(games[row[0][0]], actions[i]) for i, row in enumerate(rows) if actions and row[1] == DECISION]
        rows = [row for game, action in turns for row in game.act(action)] or [game.begin() for game in games]
    dealer.send_multipart(pack("CLOSE", {}))
    print(f"{len(lengths)} games, {np.mean(lengths):.1f} steps on average")
