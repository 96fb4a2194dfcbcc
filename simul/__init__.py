"""One mind playing every table: centralized batched inference for reinforcement learning in turn-based games.

    import simul

    with simul.train("cartpole", stop_after_decisions=100_000) as run:
        summary = run.wait()

Names are resolved when they are used (PEP 562): `import simul` loads neither torch nor numba. The folders beside this
file are links to those at the top of the checkout, so that every tool sees one package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simul import errors
    from simul.common.client.client import InferenceClient as Client
    from simul.common.client.columns import ColumnClient
    from simul.common.nets.io import load_policy
    from simul.common.protocol.specs import GameSpec
    from simul.env_worker.games.base.turn_game import TurnGame
    from simul.launch.api import Run, Server, evaluate, serve, train

__all__ = [
    "Client",
    "ColumnClient",
    "GameSpec",
    "Run",
    "Server",
    "TurnGame",
    "errors",
    "evaluate",
    "load_policy",
    "serve",
    "train",
]
_PLACES = {
    "Client": "simul.common.client.client:InferenceClient",
    "ColumnClient": "simul.common.client.columns:ColumnClient",
    "GameSpec": "simul.common.protocol.specs:GameSpec",
    "Run": "simul.launch.api:Run",
    "Server": "simul.launch.api:Server",
    "TurnGame": "simul.env_worker.games.base.turn_game:TurnGame",
    "errors": "simul.errors:",
    "evaluate": "simul.launch.api:evaluate",
    "load_policy": "simul.common.nets.io:load_policy",
    "serve": "simul.launch.api:serve",
    "train": "simul.launch.api:train",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'simul' has no attribute {name!r}")
    module, _, attribute = _PLACES[name].partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    return __all__
