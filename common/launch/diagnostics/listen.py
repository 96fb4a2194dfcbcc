"""`simul connect --listen ENDPOINT`: stands in as a server and shows what a client sends."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from simul.common.config.run_directory import RunDir
from simul.common.launch.diagnostics.mock_server import StandIn
from simul.common.launch.supervisor.signals import Signals
from simul.common.protocol.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.transport import Poller, RouterSocket

CARTPOLE = GameSpec("stand-in", observation_size=4, num_actions=2)


def listen(endpoint: str, run_dir: str | None, *, spec: str | None) -> int:
    """Print every message, frame by frame, until Ctrl-C.

    Args:
        run_dir: whose game it claims to serve; None: one of CartPole's size.
        spec: the only spec fingerprint accepted; default: the run's, or any where there is no run.
    """
    game = _spec_of(run_dir) if run_dir else CARTPOLE
    fingerprint = spec or (game.fingerprint() if run_dir else "")
    signals = Signals()
    with RouterSocket(endpoint) as socket:
        sys.stdout.write(
            f"listening at {endpoint} as a server of {game.name}: observation {game.observation_dtype}"
            f"[{game.observation_size}], {game.num_actions} actions, spec {fingerprint or '(any)'}. Ctrl-C ends it.\n"
        )
        sys.stdout.flush()
        signals.install()
        try:
            _serve(socket, game, fingerprint, signals)
        finally:
            signals.restore()
    return 0


def _serve(socket: RouterSocket, game: GameSpec, fingerprint: str, signals: Signals) -> None:
    clients: dict[bytes, StandIn] = {}
    poller = Poller([socket])
    number = 0
    while not signals.stop:
        while (received := socket.receive()) is not None:
            peer, frames = received
            number += 1
            client = clients.setdefault(peer, StandIn(game, fingerprint))
            lines, replies = client.take(frames)
            place = list(clients).index(peer) + 1
            sys.stdout.write("\n".join([f"message {number}, connection {place}", *lines, ""]))
            sys.stdout.flush()
            for reply in replies:
                socket.send(peer, reply)
        poller.wait(0.2)


def _spec_of(run_dir: str) -> GameSpec:
    try:
        return RunDir(Path(run_dir)).read_spec()
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{run_dir} is no run directory: its spec.json cannot be read ({error}).") from None
