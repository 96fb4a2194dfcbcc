"""Checks the rules that span several keys of a configuration whose values are valid each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from simul.common.config.automatic import AUTO
from simul.common.config.game_description import FROZEN, TABLE_PLAYER
from simul.common.config.games import GAMES, game_called
from simul.common.config.opponents import ZOO_PREFIX, is_own, no_opponent
from simul.common.config.schema import Config, OpponentsConfig
from simul.common.config.section import Rule
from simul.common.errors import ConfigError, did_you_mean
from simul.common.transport import check_endpoint, client_keys, server_keys

NETWORKS = ("mlp", "mlp_lstm", "mlp_gru", "attention", "conv_lstm", "board_resnet")  # for any game
MADE_FOR_A_GAME = {name: reads for game in GAMES.values() for name, reads in game.networks.items()}
STORE_SCHEMES = ("s3", "gs", "file")
MOST_PORT = 65535
STORE_URLS = "s3://bucket/run, gs://bucket/run or file:///mnt/disk/run"
MODULE_CLASS = re.compile(r"^[^\W\d][\w.]*:[^\W\d]\w*$")


def broken_rules(config: Config) -> Iterator[Rule]:
    """Rules that `config` breaks; each sentence gives the reason."""
    yield from _names(config)
    yield from _keyword_arguments(config)
    yield from config.game_section.broken_rules()
    yield from _opponents(config)
    yield from _sizes(config)
    yield from _alphazero(config)
    yield from _worlds(config)
    yield from _server(config)
    yield from _measurements(config)
    yield from _store(config)


def _store(config: Config) -> Iterator[Rule]:
    if not config.store:
        return
    scheme, found, rest = config.store.partition("://")
    if not found or not rest.strip("/") or "::" in config.store:
        yield ("store",), f"expected one URL such as {STORE_URLS}, got {config.store!r}"
    elif scheme == "memory":
        yield ("store",), f"memory:// ends with each process; use a URL such as {STORE_URLS}"
    elif "@" in rest.partition("/")[0]:
        yield ("store",), "leave user and password out of the URL: the configuration is no place for them"
    elif scheme not in _store_schemes():
        hint = did_you_mean(scheme, STORE_SCHEMES, "{}://", cutoff=0.5)  # they are short
        yield ("store",), f"the scheme {scheme}:// is unknown{hint}; expected a URL such as {STORE_URLS}"


def _store_schemes() -> list[str]:
    try:
        import fsspec  # only here: a run without a store does not pay for it
    except ImportError:
        return list(STORE_SCHEMES)
    return sorted(fsspec.available_protocols())


def _measurements(config: Config) -> Iterator[Rule]:
    if config.metrics_callback and not MODULE_CLASS.match(config.metrics_callback):
        yield ("metrics_callback",), f"expected module:function, got {config.metrics_callback!r}"
    opponents, known = config.evaluation.opponents, game_called(config.game).scripted
    if opponents and not known:
        yield ("evaluation.opponents", "game"), f"the game {config.game} has no scripted opponents; leave it out"
        return
    seats = game_called(config.game).seats
    if config.evaluation.openings not in (0, AUTO) and game_called(config.game).player != TABLE_PLAYER:
        yield (
            ("evaluation.openings", "game"),
            f"only games of a table with several seats begin with drawn plies, and {config.game} is none; leave it out",
        )
    if known and seats and config.evaluation.every_decisions and not opponents:
        yield (
            ("evaluation.opponents", "game"),
            f"the game {config.game} is evaluated against scripted opponents: name some of {', '.join(known)}",
        )
    for number, name in enumerate(opponents):
        if name not in known and not is_own(name):
            expected = f"expected {', '.join(known)} or module:Class, got {name!r}{did_you_mean(name, known)}"
            sentence = no_opponent(name) if name.startswith(ZOO_PREFIX) else expected
            yield (f"evaluation.opponents.{number}", "evaluation.opponents", "game"), sentence


def _names(config: Config) -> Iterator[Rule]:
    network, networks = config.network.name, (*NETWORKS, *MADE_FOR_A_GAME)
    for path, name, known in (("game", config.game, tuple(GAMES)), ("network.name", network, networks)):
        if name not in known and not MODULE_CLASS.match(name):
            yield (path,), f"expected {', '.join(known)} or module:Class, got {name!r}{did_you_mean(name, known)}"
    if config.game in GAMES and network in MADE_FOR_A_GAME and network not in GAMES[config.game].networks:
        *others, last = (*NETWORKS, *GAMES[config.game].networks)
        fitting = f"{', '.join(others)} or {last}"
        yield (
            ("network.name", "game"),
            f"the network {network} {MADE_FOR_A_GAME[network]}; use {fitting} for the game {config.game}",
        )


def _keyword_arguments(config: Config) -> Iterator[Rule]:
    """Those of a class of one's own are `game_options`, those of a registered Gymnasium env `gymnasium.kwargs`."""
    if config.game_options and config.game in GAMES:
        instead = "gymnasium.kwargs" if config.game == "gymnasium" else f"the keys of the section {config.game}"
        yield ("game_options", "game"), f"only game: module:Class reads it; for game: {config.game} use {instead}"
    if config.gymnasium.kwargs and MODULE_CLASS.match(config.game):
        yield ("gymnasium.kwargs", "game"), f"only game: gymnasium reads it; for game: {config.game} use game_options"


def _opponents(config: Config) -> Iterator[Rule]:
    shares, own = config.opponents.shares(), config.opponents.classes
    paths = tuple(f"opponents.classes.{name}" if name in own else f"opponents.{name}" for name in shares)
    for name in own:
        if not is_own(name):
            sentence = no_opponent(name) if name.startswith(ZOO_PREFIX) else "expected module:Class"
            yield (f"opponents.classes.{name}", "opponents"), sentence
    known = (*game_called(config.game).opponents, *(own if game_called(config.game).pairings else ()))
    if unknown := [name for name, share in shares.items() if share and name not in known]:
        has = f"has only the opponents {', '.join(known)}" if len(known) > 1 else "has one seat and no opponents"
        yield ("opponents", "game", *paths), f"the game {config.game} {has}; leave {', '.join(unknown)} out"
        return
    if abs(sum(shares.values()) - 1.0) > 1e-6:
        parts = " + ".join(f"{name} {share:g}" for name, share in shares.items() if share)
        yield (
            ("opponents", *paths),
            f"the shares must add up to 1, because every game has exactly one kind of opponent; "
            f"they add up to {sum(shares.values()):g} ({parts or 'all are 0'}); the default of self_play is 1",
        )
    if config.opponents.past > 0 and config.learner.past_resident == 0:
        yield (
            ("opponents.past", "learner.past_resident"),
            "past selves are wanted, but learner.past_resident is 0, so that none would ever be served",
        )
    if config.opponents.past_by != OpponentsConfig().past_by and "past" not in known:
        yield (
            ("opponents.past_by", "game"),
            f"expected nothing: past selves are drawn by it, and the game {config.game} has one seat and no opponents",
        )
    if config.opponents.frozen > 0 and not config.opponents.checkpoint:
        yield (
            ("opponents.frozen", "opponents.checkpoint"),
            "a frozen opponent is wanted, but opponents.checkpoint does not name it: a checkpoint, a run directory, "
            "the URL of a store, or zoo:NAME",
        )
    if config.opponents.checkpoint and not config.opponents.frozen:
        wanted = "a share for it in opponents.frozen, such as opponents=frozen:1; it is 0"
        if FROZEN not in known:
            wanted = f"nothing: the game {config.game} has one seat and no opponents"
        yield ("opponents.checkpoint", "opponents.frozen", "game"), f"expected {wanted}"


def _sizes(config: Config) -> Iterator[Rule]:
    learner, workers, server = config.learner, config.workers, config.server
    samples = learner.algorithm == "alphazero"
    least = learner.minibatches if samples else learner.unroll_length * learner.minibatches
    if learner.batch_steps < least:
        expected = "minibatches" if samples else "unroll_length x minibatches"
        why = "is drawn" if samples else "takes whole unrolls"
        yield (
            ("learner.batch_steps", "learner.minibatches", "learner.algorithm", "learner.unroll_length"),
            f"expected at least {expected} = {least}, because every minibatch {why}; got {learner.batch_steps}",
        )
    if learner.burn_in > learner.unroll_length // 2:
        yield (
            ("learner.burn_in", "learner.unroll_length"),
            f"expected at most half of unroll_length, {learner.unroll_length // 2}, because nothing is learned from "
            f"these steps; got {learner.burn_in}",
        )
    for value, schedule in (("learning_rate", "learning_rate_schedule"), ("entropy_coefficient", "entropy_schedule")):
        ends = getattr(learner, value), getattr(learner, f"final_{value}")
        if getattr(learner, schedule) == "exponential" and min(ends) <= 0:
            yield (
                (f"learner.{schedule}", f"learner.{value}", f"learner.final_{value}"),
                f"an exponential schedule has both ends above 0; got {value} {ends[0]:g} and final_{value} {ends[1]:g}",
            )
    seats = config.game_section.seats() or 1  # else checked again with the game's spec
    wanted = config.workers_of_a_server * workers.envs * seats
    if server.max_sessions < wanted:
        yield (
            ("server.max_sessions", "workers.count", "workers.envs"),
            f"expected at least {workers_words(config)} x workers.envs x {seats} seats = {wanted}, because the server "
            f"refuses sessions beyond it; got {server.max_sessions}",
        )


def _worlds(config: Config) -> Iterator[Rule]:
    if not config.search.worlds:
        return
    if config.learner.algorithm == "alphazero":
        yield (
            ("search.worlds", "learner.algorithm"),
            "policies of alphazero search a tree; leave it out, and set search.simulations",
        )
    elif game_called(config.game).player != TABLE_PLAYER:
        yield (
            ("search.worlds", "game"),
            f"worlds are drawn of games that are a simul.TurnGame, and {config.game} is none; leave it out",
        )
    elif config.learner.normalize_rewards:
        yield (
            ("search.worlds", "learner.normalize_rewards"),
            "values of normalized rewards cannot be compared with returns of games that end in a world; leave it out",
        )


def workers_words(config: Config) -> str:
    """What the sessions of one server are counted from, in a sentence."""
    if config.cluster.servers.count == 1:
        return "workers.count"
    return f"{config.workers_of_a_server} workers of a server"


def _alphazero(config: Config) -> Iterator[Rule]:
    learner, network = config.learner, config.network
    if learner.algorithm != "alphazero":
        if learner.weight_decay:
            yield (
                ("learner.weight_decay", "learner.algorithm"),
                f"the algorithm {learner.algorithm} has no weight decay; leave it out, or use alphazero",
            )
        if learner.ending_coefficient:
            yield (
                ("learner.ending_coefficient", "learner.algorithm"),
                f"the algorithm {learner.algorithm} does not learn from samples, which tell how a game ended; leave it "
                "out, or use alphazero",
            )
        return
    if not game_called(config.game).search:
        yield (
            ("learner.algorithm", "game"),
            f"alphazero learns from games played by search, and the game {config.game} has no search; "
            "use ppo, vtrace or reinforce",
        )
    if learner.burn_in:
        yield ("learner.burn_in",), "alphazero learns from single positions, and no state is advanced; leave it out"
    if learner.target_kl:
        yield ("learner.target_kl",), "alphazero makes one pass over what it draws; leave it out"
    if learner.normalize_rewards:
        yield ("learner.normalize_rewards",), "alphazero learns from outcomes between -1 and 1; leave it out"
    if learner.opponent_coefficient:
        yield ("learner.opponent_coefficient",), "alphazero learns from samples, which have no labels; leave it out"
    if network.normalize_observations:
        yield ("network.normalize_observations",), "alphazero keeps no statistics of observations; leave it out"
    if config.replay.min_samples > config.replay.window_samples:
        yield (
            ("replay.min_samples", "replay.window_samples"),
            f"expected at most replay.window_samples = {config.replay.window_samples}, got {config.replay.min_samples}",
        )


def _server(config: Config) -> Iterator[Rule]:
    server = config.server
    if server.deterministic and server.precision == "bfloat16":
        yield (
            ("server.precision", "server.deterministic"),
            "deterministic replies are promised for float32 only; set auto or float32",
        )
    if server.ipc_access != "owner" and not server.endpoint.startswith("ipc://"):
        yield (
            ("server.ipc_access", "server.endpoint"),
            f"{server.ipc_access} lets others connect to an ipc endpoint outside the run directory, whose sockets are "
            f"this user's alone; set server.endpoint to ipc://PATH. Got server.endpoint {server.endpoint!r}",
        )
    if server.endpoint:
        try:
            check_endpoint(server.endpoint, curve=bool(server.curve_keys))
        except ConfigError as error:
            yield ("server.endpoint",), str(error)
    yield from _ports(config)
    if server.curve_keys:
        try:
            server_keys(Path(server.curve_keys))
            client_keys(Path(server.curve_keys))  # the keys of the workers
        except ConfigError as error:
            yield ("server.curve_keys",), str(error)


def _ports(config: Config) -> Iterator[Rule]:
    """Several servers take as many ports in a row."""
    server, count = config.server, config.cluster.servers.count
    _, _, endpoint = server.endpoint.rpartition(":")
    of_endpoint = int(endpoint) if server.endpoint.startswith("tcp://") and endpoint.isdecimal() else 0
    if count > 1 and server.endpoint.startswith("tcp://") and endpoint in ("0", "*"):
        yield (
            ("server.endpoint", "cluster.servers.count"),
            f"{count} servers take as many ports in a row from a given one; got {server.endpoint}",
        )
    if count > 1 and of_endpoint and server.prometheus_port and abs(of_endpoint - server.prometheus_port) < count:
        yield (
            ("server.endpoint", "server.prometheus_port", "cluster.servers.count"),
            f"each of {count} servers takes a port from {of_endpoint} on and one from {server.prometheus_port} on, and "
            "these overlap",
        )
    for key, port in (("server.endpoint", of_endpoint), ("server.prometheus_port", server.prometheus_port)):
        if port and port + count - 1 > MOST_PORT:
            yield (
                (key, "cluster.servers.count"),
                f"{count} servers take the ports {port} to {port + count - 1}; the last one there is is {MOST_PORT}",
            )
    if server.prometheus_port and 0 < config.prometheus_port - server.prometheus_port < count:
        yield (
            ("prometheus_port", "server.prometheus_port", "cluster.servers.count"),
            f"the servers take the ports {server.prometheus_port} to {server.prometheus_port + count - 1}, "
            f"and {config.prometheus_port} is one of them",
        )
    if server.deterministic and count > 1:
        yield (
            ("cluster.servers.count", "server.deterministic"),
            "deterministic runs have one server: which weights a game meets depends on when they reach its server",
        )
