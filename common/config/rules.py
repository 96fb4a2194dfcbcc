"""Rules that span several keys of the configuration. Each says why it is one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from pathlib import Path

from simul.common.config.schema import Config
from simul.common.protocol.errors import ConfigError
from simul.common.transport import check_endpoint, client_keys, server_keys

Rule = tuple[tuple[str, ...], str]  # (dotted paths that the rule reads, the first is blamed; sentence)

GAMES = ("pokemon", "gymnasium")
NETWORKS = ("mlp_lstm", "pokemon")
_MODULE_CLASS = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")


def broken_rules(config: Config) -> Iterator[Rule]:
    """Rules that `config` breaks."""
    yield from _names(config)
    yield from _opponents(config)
    yield from _sizes(config)
    yield from _server(config)


def _names(config: Config) -> Iterator[Rule]:
    for path, name, known in (("game", config.game, GAMES), ("network.name", config.network.name, NETWORKS)):
        if name not in known and not _MODULE_CLASS.match(name):
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            yield (path,), f"expected {', '.join(known)} or module:Class, got {name!r}{hint}"
    if config.network.name == "pokemon" and config.game == "gymnasium":
        yield (
            ("network.name", "game"),
            "the network pokemon reads the Pokémon observation layout; use mlp_lstm for the game gymnasium",
        )
    if config.game == "pokemon" and config.pokemon.transport == "websocket" and "bo3" in config.pokemon.format:
        yield (
            ("pokemon.format", "pokemon.transport"),
            "over WebSocket a best of three takes rooms of its own, which are not played; name the format without bo3, "
            "or set transport: ipc, which plays it as single games",
        )


def _opponents(config: Config) -> Iterator[Rule]:
    shares = {name: getattr(config.opponents, name) for name in config.opponents.__struct_fields__}
    paths = tuple(f"opponents.{name}" for name in shares)
    known = {"pokemon": tuple(shares), "gymnasium": ("self_play",)}.get(config.game, ("self_play", "past"))
    if strangers := [name for name, share in shares.items() if share and name not in known]:
        nobody = "has one seat and nobody opposite" if config.game == "gymnasium" else "has none of Pokémon's bots"
        yield ("opponents", "game", *paths), f"the game {config.game} {nobody}; leave {', '.join(strangers)} out"
        return
    if abs(sum(shares.values()) - 1.0) > 1e-6:
        parts = " + ".join(f"{name} {share:g}" for name, share in shares.items() if share)
        yield (
            ("opponents", *paths),
            f"the shares must add up to 1, because every game has exactly one kind of opponent; "
            f"they add up to {sum(shares.values()):g} ({parts or 'all are 0'})",
        )
    if config.opponents.past > 0 and config.learner.past_resident == 0:
        yield (
            ("opponents.past", "learner.past_resident"),
            "past selves are wanted, but learner.past_resident is 0, so that none would ever be served",
        )


def _sizes(config: Config) -> Iterator[Rule]:
    learner, workers, server = config.learner, config.workers, config.server
    least = learner.unroll_length * learner.minibatches
    if learner.batch_steps < least:
        yield (
            ("learner.batch_steps", "learner.unroll_length", "learner.minibatches"),
            f"expected at least unroll_length x minibatches = {least}, because every minibatch takes whole unrolls; "
            f"got {learner.batch_steps}",
        )
    seats = 2 if config.game == "pokemon" else 1
    wanted = workers.count * workers.envs * seats
    if server.max_sessions < wanted:
        yield (
            ("server.max_sessions", "workers.count", "workers.envs"),
            f"expected at least workers.count x workers.envs x {seats} seats = {wanted}, because the server refuses "
            f"sessions beyond it; got {server.max_sessions}",
        )


def _server(config: Config) -> Iterator[Rule]:
    server = config.server
    if server.deterministic and server.precision == "bfloat16":
        yield (
            ("server.precision", "server.deterministic"),
            "deterministic replies are promised for float32 only; set auto or float32",
        )
    if server.endpoint:
        try:
            check_endpoint(server.endpoint, curve=bool(server.curve_keys))
        except ConfigError as error:
            yield ("server.endpoint",), str(error)
    if server.curve_keys:
        try:
            server_keys(Path(server.curve_keys))
            client_keys(Path(server.curve_keys))  # the workers' own
        except ConfigError as error:
            yield ("server.curve_keys",), str(error)
