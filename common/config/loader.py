"""YAML -> `Config`, strictly: every problem is reported at once, with its dotted path and what was expected.

`strict_yaml.py` reads the text, `value_checks.py` checks each value, then `rule_checks.py` the rules that span several
keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

import msgspec
import yaml
from msgspec import inspect

from simul.common.config.automatic import settle_automatic
from simul.common.config.game_description import FROZEN, Game
from simul.common.config.games import GAMES, game_called
from simul.common.config.learner_presets import LEARNER_PRESETS, SCHEDULES
from simul.common.config.opponents import MIX, parse_mix
from simul.common.config.rule_checks import broken_rules
from simul.common.config.schema import NOT_KINDS, Config, LearnerConfig
from simul.common.config.strict_yaml import MAX_LEVELS, TOO_DEEP, StrictLoader, deeper_than, one_line, parse_yaml
from simul.common.config.trust import EVERYTHING, Trust, values_at_marked_keys
from simul.common.config.value_checks import ELSEWHERE, Problems, Tree, check_section, describe_value
from simul.common.errors import ConfigError, did_you_mean
from simul.common.runtime.installation import CONFIGS

OPPONENT_SETTINGS = tuple(key for key in NOT_KINDS if key != "classes")
OVERRIDES = "--set"  # what a command line calls them
DEFAULT_MODE = "default"  # the file without its modes
MAX_SHOWN = 100  # characters of an override in an error


def load_config(
    path: Path | str, overrides: Sequence[str] = (), mode: str = DEFAULT_MODE, notes: list[str] | None = None,
    written: dict[str, str] | None = None, given_in: str = OVERRIDES,
) -> Config:  # fmt: skip
    """The configuration in the file at `path`, or shipped by the name `path`, with `a.b=c` overrides on top.

    Args:
        mode: a section of the file's `modes`, whose settings apply above the others.
        notes: gets a sentence about defaults that depend on the game.
        written: gets the place of every dotted key that the user wrote, in `overrides` or a file that is not shipped.
        given_in: what the user calls the overrides.

    Raises:
        ConfigError: names every problem at once.
    """
    problems: Problems = {}
    file = shipped_config(path)
    tree = _read(file, problems)
    if written is not None and file.resolve().parent != CONFIGS.resolve():
        settings = deepcopy(tree)
        _apply_mode(settings, mode, problems)
        written.update((key, f"{key} in {path}") for key in _dotted(settings))
    if written is not None:
        written.update((override.partition("=")[0], _shown(override)) for override in overrides)
    return _to_config(tree, str(path), overrides, mode, problems, notes, given_in)


def shipped_config(path: Path | str) -> Path:
    """The file of a shipped configuration (`pokemon`, `cartpole`); any other path as it is."""
    path = Path(path)
    shipped = CONFIGS / f"{path}.yaml"
    return shipped if len(path.parts) == 1 and not path.suffix and shipped.is_file() else path


def load_game(name: str, overrides: Sequence[str] = ()) -> Config:
    """The configuration of a game, as a command names it.

    Args:
        name: a game (`ofc`), one with its variant (`blokus:classic`, `openspiel:hex`), module:Class of one's own, or a
            configuration.

    Raises:
        ConfigError: names every problem at once.
    """
    game, _, variant = name.partition(":")
    if game in GAMES and (not variant or GAMES[game].variant):
        of_variant = [f"{game}.{GAMES[game].variant}={msgspec.json.encode(variant).decode()}"] if variant else []
        return load_config(GAMES[game].configuration, [*of_variant, *overrides])
    if ":" in name:
        return config_from_tree({"game": name}, name, overrides)
    return load_config(name, overrides)


def command_line_trust(overrides: Sequence[str], game: str = "", *, trust: bool = False) -> Trust:
    """What a command line trusts: the values that its `--set` and its game give, with `--trust` everything.

    `game`: as for `load_game`; empty: none. Problems of either are reported where the configuration is loaded.
    """
    if trust:
        return EVERYTHING
    named: Tree = {}
    for override in overrides:
        _override(named, override, {})
    _spread_mix(named, {})
    values = values_at_marked_keys(named)
    with suppress(ConfigError):
        values |= values_at_marked_keys(msgspec.to_builtins(load_game(game))) if game else frozenset()
    return Trust(values=values)


def _apply_mode(tree: Tree, mode: str, problems: Problems) -> None:
    modes = tree.pop("modes", {})
    if not isinstance(modes, dict):
        problems["modes"] = f"expected sections of settings by name; got {describe_value(modes)}"
        return
    for name, settings in modes.items():
        if not isinstance(name, str) or name == DEFAULT_MODE:
            problems[f"modes.{name}"] = f"expected a name in quotes, not {DEFAULT_MODE}; got {describe_value(name)}"
        elif not isinstance(settings, dict):
            problems[f"modes.{name}"] = f"expected a section of settings; got {describe_value(settings)}"
    if problems:
        return
    if mode in modes:
        _merge(tree, modes[mode])
    elif mode != DEFAULT_MODE:
        raise ConfigError(f"There is no mode {mode!r}; the configuration has {', '.join([DEFAULT_MODE, *modes])}.")


def _merge(tree: Tree, above: Tree) -> None:
    """Settings of `above` replace those of `tree`, section by section."""
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(tree.get(key), dict):
            _merge(tree[key], value)
        else:
            tree[key] = value


def config_from_tree(
    tree: Tree, source: str, overrides: Sequence[str] = (), mode: str = DEFAULT_MODE, given_in: str = OVERRIDES
) -> Config:
    """The configuration in plain builtins (a checkpoint's meta.json), checked like a file."""
    return _to_config(deepcopy(tree), source, overrides, mode, {}, given_in=given_in)


def _to_config(
    tree: Tree, source: str, overrides: Sequence[str], mode: str, problems: Problems,
    notes: list[str] | None = None, given_in: str = OVERRIDES,
) -> Config:  # fmt: skip
    _apply_mode(tree, mode, problems)
    _spread_mix(tree, problems)  # before an override such as opponents.random=0.5
    before = deepcopy(tree)
    kept = {key: value for key, value in tree.get("opponents", {}).items() if key in OPPONENT_SETTINGS}
    settings = [override for override in overrides if _is_opponent_setting(override)]
    for override in overrides:
        if override not in settings:
            _override(tree, override, problems)
    _spread_mix(tree, problems)
    if isinstance(tree.get("opponents"), dict):  # a mix on the command line has none of them
        tree["opponents"] |= {key: value for key, value in kept.items() if key not in tree["opponents"]}
    for override in settings:
        _override(tree, override, problems)
    given = {".".join(_keys_of(override)): override for override in overrides if _shown(override) not in problems}
    name = tree.get("game", Config().game)
    game = game_called(name if isinstance(name, str) else "")
    said = [*_apply_frozen_opponent(tree, given, game), *_apply_learner_defaults(tree, given)]
    said += settle_automatic(tree, game)
    if notes is not None:
        notes.extend(said)
    checked = check_section(inspect.type_info(Config), tree, "", problems)
    config = msgspec.convert(checked, Config)
    read_by: dict[str, Sequence[str]] = {path: (path,) for path in problems}  # the keys that a problem depends on
    for paths, sentence in broken_rules(config):
        broken = any(_within(problem, path) for path in paths for problem in problems)
        if not broken:  # a rule over an invalid value adds no information
            problems[paths[0]], read_by[paths[0]] = sentence, paths
    if problems:
        lines = [_problem_line(path, sentence, read_by[path], given, before) for path, sentence in problems.items()]
        raise ConfigError(_problem_text(lines, source, given_in))
    return config


def _apply_learner_defaults(tree: Tree, overrides: Mapping[str, str]) -> list[str]:
    """Add the defaults of `learner` for the configured game. Returns sentences that name those added or changed."""
    name, given = tree.get("game", Config().game), tree.get("learner", {})
    if not isinstance(name, str) or not isinstance(given, dict):
        return []  # `check_section` reports it
    preset = game_called(name).learner_preset
    added = {key: value for key, value in LEARNER_PRESETS[preset].items() if key not in given}
    learner = tree["learner"] = {**added, **given}
    alone = [
        (first, last)
        for first, last in SCHEDULES
        if last not in given or (f"learner.{first}" in overrides and f"learner.{last}" not in overrides)
    ]
    lowered = list(_lower_final_values(learner, alone))
    values = ", ".join(f"{key} {value}" for key, value in added.items())
    return [*([f"learner defaults of {preset}: {values}"] if added else []), *lowered]


def _lower_final_values(learner: Tree, alone: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A start value that is set alone, below the final value: that becomes the start value. Yields a sentence for each.

    Args:
        alone: (start, final) keys where the final value is a default, or the start value alone is overridden. Values
            that are set together may rise.
    """
    for first, last in alone:
        start, final = learner.get(first), learner.get(last, getattr(LearnerConfig(), last))
        if isinstance(start, int | float) and isinstance(final, int | float) and start < final:
            learner[last] = start
            yield f"learner.{last} is {start:g}, as learner.{first}, which is set without it"


def _problem_line(path: str, sentence: str, read: Sequence[str], given: Mapping[str, str], file: Tree) -> str:
    """`learner.clp: ...`, or `--set learner.clp=1: ...` where a problem comes from an override.

    Args:
        read: dotted paths that the problem depends on.
        given: overrides by key.
        file: the settings below the overrides.
    """
    for key, override in reversed(list(given.items())):
        if any(_within(each, key) or (_within(key, each) and not _has(file, each)) for each in read):
            return f"{_shown(override)}: " + (sentence if path == key else f"{path}: {sentence}")
    return f"{path}: {sentence}"


def _problem_text(lines: Sequence[str], source: str, given_in: str) -> str:
    of_overrides = [line.startswith(f"{OVERRIDES} ") for line in lines]
    places = [source] * (not all(of_overrides)) + [given_in] * any(of_overrides)
    if given_in != OVERRIDES:
        lines = [line.removeprefix(f"{OVERRIDES} ") for line in lines]
    count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
    return f"{count} in {' and '.join(places)}:" + "".join(f"\n  {line}" for line in lines)


def _dotted(tree: Tree, above: str = "") -> Iterator[str]:
    """Every dotted key of `tree` that holds a value."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _dotted(value, f"{above}{key}.")
        else:
            yield f"{above}{key}"


def _within(path: str, above: str) -> bool:
    return path == above or path.startswith(f"{above}.")


def _has(tree: object, path: str) -> bool:
    for name in path.split("."):
        if not isinstance(tree, dict) or name not in tree:
            return False
        tree = tree[name]
    return True


def _spread_mix(tree: Tree, problems: Problems) -> None:
    """Replace `opponents: "random:0.2,self:0.8"` by the mapping that it abbreviates; its keys module:Class are those of
    `classes`.
    """
    mix = tree.get("opponents", {})
    if isinstance(mix, dict):
        own = [name for name in mix if isinstance(name, str) and ":" in name]
        if own and isinstance(mix.setdefault("classes", {}), dict):
            mix["classes"] = {**mix["classes"], **{name: mix.pop(name) for name in own}}
        return
    try:
        if not isinstance(mix, str):
            raise ConfigError(
                f"expected a section of shares, or one string of them such as {MIX}; got {describe_value(mix)}"
            )
        tree["opponents"] = parse_mix(mix)
    except ConfigError as error:
        problems["opponents"] = str(error)
        del tree["opponents"]


def _is_opponent_setting(override: str) -> bool:
    """It sets a key of `opponents` that is no share: it stands beside a mix."""
    section, *below = _keys_of(override)
    return section == "opponents" and below[:1] != [] and below[0] in OPPONENT_SETTINGS


def _apply_frozen_opponent(tree: Tree, given: Mapping[str, str], game: Game) -> list[str]:
    """Where overrides name a frozen opponent and no share, it plays all games. Returns a note that says so."""
    if FROZEN not in game.opponents:
        return []
    shares = [key for key in given if key.partition(".")[0] == "opponents" and not _is_opponent_setting(given[key])]
    opponents = tree.get("opponents")
    if shares or "opponents.checkpoint" not in given or not isinstance(opponents, dict) or not opponents["checkpoint"]:
        return []
    opponents |= parse_mix(f"{FROZEN}:1")
    return ["opponents.checkpoint is given without a share: all games are against it (opponents.frozen: 1)"]


def _shipped_names(wanted: Path) -> str:
    """The names that `load_config` knows, as the end of a sentence, after the nearest to the one that is not there."""
    shipped = sorted(file.stem for file in CONFIGS.glob("*.yaml"))
    return (did_you_mean(wanted, dict.fromkeys([*shipped, *GAMES])) or ".") + f" Shipped by name: {', '.join(shipped)}."


def _read(path: Path, problems: Problems) -> Tree:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        names = _shipped_names(path) if isinstance(error, FileNotFoundError) else "."
        raise ConfigError(f"The configuration {path} cannot be read: {reason}{names}") from None
    tree, faults = parse_yaml(text, f"The configuration {path}", inspect.type_info(Config))
    problems.update((f"line {line}", sentence) for line, sentence in faults.items())
    if tree is None:
        raise ConfigError(
            f"The configuration {path} is empty: expected keys such as game, run_dir and learner. "
            "`simul init NAME` writes a commented one to start from."
        )
    if not isinstance(tree, dict):
        raise ConfigError(f"The configuration {path} must be a mapping of keys, got {describe_value(tree)}.")
    return tree


def type_at(path: str) -> inspect.Type:
    """The type of the value at a dotted key; that of any value for a key that does not exist."""
    kind: inspect.Type = inspect.type_info(Config)
    for name in path.split("."):
        fields = {field.name: field.type for field in kind.fields} if isinstance(kind, inspect.StructType) else {}
        kind = fields.get(name, inspect.AnyType())
    return kind


def _override(tree: Tree, override: str, problems: Problems) -> None:
    path, equals, text = override.partition("=")
    if not equals or not path:
        problems[_shown(override)] = "expected KEY=VALUE, for example learner.clip=0.1"
        return
    loader = StrictLoader(text, type_at(path))
    try:
        value = loader.get_single_data()
    except (yaml.YAMLError, ValueError) as error:
        problems[_shown(override)] = f"the value is not YAML: {one_line(error)}"
        return
    except RecursionError:
        problems[_shown(override)] = f"the value is {TOO_DEEP}"
        return
    finally:
        loader.dispose()
    if deeper_than(MAX_LEVELS, value):
        problems[_shown(override)] = f"the value is {TOO_DEEP}"
        return
    for sentence in loader.faults.values():
        problems[_shown(override)] = sentence
    *parents, last = _keys_of(override)
    for name in parents:
        below = tree.get(name)
        if isinstance(below, str) and below:
            sentence = f"{name} is given as a whole, {describe_value(below)}: set it so or by its keys"
            problems[_shown(override)] = sentence
            return
        if not isinstance(below, dict):
            tree[name] = below = {}
        tree = below
    tree[last] = value


def _keys_of(override: str) -> list[str]:
    """The keys on the way to the value that an override sets. Of an opponent module:Class the dots are its own."""
    path = override.partition("=")[0]
    section, _, name = path.partition(".")
    if section == "opponents" and ":" in name:
        return [section, "classes", name.removeprefix("classes.")]
    return path.split(".")


def _shown(override: str) -> str:
    """As it was given, but for values that are secrets."""
    if (key := override.partition("=")[0]).partition(".")[0] in ELSEWHERE:
        return f"{OVERRIDES} {key}=..."
    return f"{OVERRIDES} {override}" if len(override) <= MAX_SHOWN else f"{OVERRIDES} {override[:MAX_SHOWN]}..."
