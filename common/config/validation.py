"""Checks of a configuration: each value against the types of `schema.py`, then rules that span several keys.

msgspec reports the first problem only, so the struct types are walked here; every problem carries its dotted path.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import inspect

from simul.common.config.automatic import AUTO, AUTOMATIC
from simul.common.config.game_description import FROZEN, TABLE_PLAYER
from simul.common.config.games import GAMES, game_called
from simul.common.config.opponents import is_own, no_opponent
from simul.common.config.schema import Config
from simul.common.config.section import Rule
from simul.common.config.zoo import PREFIX
from simul.common.errors import ConfigError, did_you_mean, nearest_name
from simul.common.transport import check_endpoint, client_keys, server_keys

Tree = dict[str, Any]
Problems = dict[str, str]  # dotted path -> sentence
CUTOFF_OF_WORDS = 0.7  # of similarity: gpu is not nearly cpu
ELSEWHERE = {  # keys that a reader may expect; their values are secrets, and a configuration is copied
    "notify": (
        "addresses of notices are secrets and do not belong in a configuration. Set the environment variable "
        "SIMUL_NOTIFY, or write them to ~/.config/simul/notify (chmod 600)"
    ),
}


def check_section(info: inspect.Type, value: object, path: str, problems: Problems) -> Tree:
    """Known and valid keys of `value`, for the struct `info` at the dotted `path`.

    The others are added to `problems`; their defaults apply.
    """
    assert isinstance(info, inspect.StructType)
    fields = {field.name: field.type for field in info.fields}
    if not isinstance(value, dict):
        problems[path] = (
            f"expected a section with keys such as {', '.join(list(fields)[:3])}, got {describe_value(value)}"
        )
        return {}
    checked: Tree = {}
    for key, below in value.items():
        dotted = f"{path}.{key}" if path else str(key)
        if dotted in ELSEWHERE:
            problems[dotted] = ELSEWHERE[dotted]
            continue
        if key not in fields:
            problems[dotted] = f"there is no such key{_nearest(str(key), path, fields)}"
            continue
        kind = fields[key]
        if isinstance(kind, inspect.StructType):
            checked[key] = check_section(kind, below, dotted, problems)
        elif isinstance(kind, inspect.VarTupleType):
            each = _check_sections if isinstance(kind.item_type, inspect.StructType) else _check_values
            checked[key] = each(kind.item_type, below, dotted, problems)
        elif (sentence := _mismatch(kind, below)) is not None:
            also = f" or {AUTO}" if dotted in AUTOMATIC else ""
            problems[dotted] = f"expected {sentence}{also}, {_got(kind, below, [AUTO] if also else ())}"
        elif isinstance(kind, inspect.DictType) and not isinstance(kind.value_type, inspect.AnyType):
            checked[key] = _check_mapping(kind.value_type, below, dotted, problems)
        elif below is None:
            checked[key] = ""  # `metrics_callback:` or --set metrics_callback=
        else:
            checked[key] = int(below) if _is_whole(kind, below) else below  # 2e6 means 2000000
    return checked


def _check_sections(info: inspect.Type, value: object, path: str, problems: Problems) -> list[Tree]:
    """A list of sections; an item without its required keys is left out."""
    assert isinstance(info, inspect.StructType)
    needed = [field.name for field in info.fields if field.required]
    if not isinstance(value, list | tuple):
        problems[path] = f"expected a list of sections with the keys {', '.join(needed)}, got {describe_value(value)}"
        return []
    checked = [check_section(info, below, f"{path}.{number}", problems) for number, below in enumerate(value)]
    for number, item in enumerate(checked):
        for name in needed:
            if name not in item and not any(problem.startswith(f"{path}.{number}") for problem in problems):
                problems[f"{path}.{number}"] = f"the key {name} is missing"
    return [item for item in checked if all(name in item for name in needed)]


def _check_values(kind: inspect.Type, value: object, path: str, problems: Problems) -> list[Any]:
    """A list of values, without those that do not fit or come again."""
    if not isinstance(value, list | tuple):
        example = f"[{value}]" if isinstance(value, str) and value.isidentifier() else "[a, b]"
        problems[path] = f"expected a list such as {example}, got {describe_value(value)}"
        return []
    checked: list[Any] = []
    for number, below in enumerate(value):
        if (sentence := _mismatch(kind, "" if below is None else below)) is not None:
            problems[f"{path}.{number}"] = f"expected {sentence}, {_got(kind, below)}"
        elif below in checked:
            problems[f"{path}.{number}"] = f"{below!r} is given twice"
        else:
            checked.append("" if below is None else below)
    return checked


def _check_mapping(kind: inspect.Type, value: dict[str, Any], path: str, problems: Problems) -> Tree:
    """A mapping of names to values, without those that do not fit."""
    wrong = {name: sentence for name, below in value.items() if (sentence := _mismatch(kind, below)) is not None}
    for name, sentence in wrong.items():
        problems[f"{path}.{name}"] = f"expected {sentence}, {_got(kind, value[name])}"
    return {name: below for name, below in value.items() if name not in wrong}


def _mismatch(kind: inspect.Type, value: object) -> str | None:
    """What was expected, where `value` does not fit `kind`; else None."""
    match kind:
        case inspect.IntType():
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            fits = whole and not isinstance(value, bool) and _in_range(kind, value)
            return None if fits else f"a whole number{_range_text(kind)}"
        case inspect.FloatType():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return None if number and _in_range(kind, value) else f"a number{_range_text(kind)}"
        case inspect.BoolType():
            return None if isinstance(value, bool) else "true or false"
        case inspect.LiteralType():
            some = "one of " if len(kind.values) > 1 else ""
            return None if value in kind.values else some + ", ".join(str(v) for v in kind.values)
        case inspect.UnionType():
            mismatches = [_mismatch(each, value) for each in kind.types]
            return None if None in mismatches else " or ".join(filter(None, mismatches))
        case inspect.DictType():
            fits = isinstance(value, dict) and all(isinstance(key, str) for key in value)
            return None if fits else "a mapping of names to values"
        case inspect.StrType():
            if isinstance(value, str | None):
                return None if len(value or "") >= (kind.min_length or 0) else "text that is not empty"
            return "text"
    raise TypeError(f"simul.common.config.schema uses {kind}, which simul.common.config.validation does not check")


def _got(kind: inspect.Type, value: object, also: Iterable[str] = ()) -> str:
    """`got VALUE`, and the nearest of the words that `kind` takes; `also`: other words."""
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    words = [word for each in kinds if isinstance(each, inspect.LiteralType) for word in each.values]
    known = [*(word for word in words if isinstance(word, str)), *also]
    hint = did_you_mean(value, known, cutoff=CUTOFF_OF_WORDS) if isinstance(value, str) else ""
    return f"got {describe_value(value)}{hint}"


def _is_whole(kind: inspect.Type, value: object) -> bool:
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    return not isinstance(value, str) and any(isinstance(each, inspect.IntType) for each in kinds)


def _in_range(kind: inspect.IntType | inspect.FloatType, value: Any) -> bool:
    try:
        if not math.isfinite(value):
            return False
    except OverflowError:  # a whole number beyond any float
        return False
    low = (kind.ge is None or value >= kind.ge) and (kind.gt is None or value > kind.gt)
    return low and (kind.le is None or value <= kind.le) and (kind.lt is None or value < kind.lt)


def _range_text(kind: inspect.IntType | inspect.FloatType) -> str:
    bounds = ((">=", kind.ge), (">", kind.gt), ("<=", kind.le), ("<", kind.lt))
    present = [(sign, bound) for sign, bound in bounds if bound is not None]
    text = " and ".join(f"{sign} {bound}" if isinstance(bound, int) else f"{sign} {bound:g}" for sign, bound in present)
    return f" {text}" if text else ""


def _nearest(key: str, path: str, fields: dict[str, inspect.Type]) -> str:
    """`; did you mean learner.clip?`: the nearest key of this section, else of any section."""
    prefix = f"{path}." if path else ""
    if near := nearest_name(key, fields):
        return f"; did you mean {prefix}{near}?{_keys_of(fields[near])}"
    elsewhere = {dotted.rpartition(".")[2]: dotted for dotted in config_keys()}
    if near := nearest_name(key, elsewhere, cutoff=0.8):
        return f"; did you mean {elsewhere[near]}?"
    return f"; the keys here are {', '.join(fields)}"


def _keys_of(kind: inspect.Type) -> str:
    return f" Its keys are {', '.join(f.name for f in kind.fields)}" if isinstance(kind, inspect.StructType) else ""


def config_keys() -> list[str]:
    """Every dotted key of `Config` that holds a value (sections themselves are not listed)."""

    def walk(info: inspect.Type, prefix: str) -> list[str]:
        if not isinstance(info, inspect.StructType):
            return [prefix]
        return [key for field in info.fields for key in walk(field.type, f"{prefix}.{field.name}".lstrip("."))]

    return walk(inspect.type_info(Config), "")


def describe_value(value: object) -> str:
    """A value as shown in an error message, shortened."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


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
            sentence = no_opponent(name) if name.startswith(PREFIX) else expected
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
            sentence = no_opponent(name) if name.startswith(PREFIX) else "expected module:Class"
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
