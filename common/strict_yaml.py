"""YAML -> `Config`, strictly: every problem is reported at once, with its dotted path and what was expected.

msgspec reports the first problem only, so the struct types are walked here; `common.config_rules` holds the rules
that span several keys.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import inspect

from common.config import Config
from common.config_rules import broken_rules
from common.errors import ConfigError
from common.opponents import MIX, parse_mix

Tree = dict[str, Any]
Problems = dict[str, str]  # dotted path -> sentence

# YAML 1.1 reads 3e-4 as a string; people mean the number, as YAML 1.2 does.
_FLOAT = re.compile(r"^[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$")


def load_config(path: Path | str, overrides: Sequence[str] = ()) -> Config:
    """The configuration in the file at `path`, with `a.b=c` overrides on top.

    Raises:
        ConfigError: names every problem at once.
    """
    problems: Problems = {}
    tree = _read(Path(path), problems)
    _spread_mix(tree, problems)  # before opponents.random=0.5 is laid on top of it
    for override in overrides:
        _override(tree, override, problems)
    return _to_config(tree, problems, str(path))


def config_from_tree(tree: Tree, source: str, overrides: Sequence[str] = ()) -> Config:
    """The configuration in plain builtins (a checkpoint's meta.json), checked like a file."""
    problems: Problems = {}
    for override in overrides:
        _override(tree, override, problems)
    return _to_config(tree, problems, source)


def _to_config(tree: Tree, problems: Problems, source: str) -> Config:
    _spread_mix(tree, problems)
    checked = _section(inspect.type_info(Config), tree, "", problems)
    config = msgspec.convert(checked, Config)
    for paths, sentence in broken_rules(config):
        broken = any(problem == path or problem.startswith(f"{path}.") for path in paths for problem in problems)
        if not broken:  # a rule over a broken value would only add noise
            problems[paths[0]] = sentence
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "".join(f"\n  {path}: {sentence}" for path, sentence in problems.items())
        raise ConfigError(f"{count} in {source}:{lines}")
    return config


def _spread_mix(tree: Tree, problems: Problems) -> None:
    """`opponents: "random:0.2,self:0.8"` becomes the mapping that it stands for."""
    mix = tree.get("opponents", {})
    if isinstance(mix, dict):
        return
    try:
        if not isinstance(mix, str):
            raise ConfigError(f"expected a section of shares, or one string of them such as {MIX}; got {_shown(mix)}")
        tree["opponents"] = parse_mix(mix)
    except ConfigError as error:
        problems["opponents"] = str(error)
        del tree["opponents"]


def _read(path: Path, problems: Problems) -> Tree:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"The configuration {path} cannot be read: {reason}.") from None
    loader = _Loader(text)
    try:
        tree = loader.get_single_data()
    except yaml.YAMLError as error:
        raise ConfigError(f"The configuration {path} is not YAML: {_one_line(error)}.") from None
    finally:
        loader.dispose()
    problems.update(loader.duplicates)
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"The configuration {path} must be a mapping of keys, got {_shown(tree)}.")
    return tree


class _Loader(yaml.SafeLoader):
    """SafeLoader that keeps a list of duplicate keys and reads 3e-4 as a number."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.duplicates: Problems = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                line = key.start_mark.line + 1
                self.duplicates[f"line {line}"] = f"the key {name!r} stands here for the second time"
            seen.add(name)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


def _override(tree: Tree, override: str, problems: Problems) -> None:
    path, equals, text = override.partition("=")
    if not equals or not path:
        problems[f"--set {override}"] = "expected KEY=VALUE, for example learner.clip=0.1"
        return
    loader = _Loader(text)
    try:
        value = loader.get_single_data()
    except yaml.YAMLError as error:
        problems[f"--set {override}"] = f"the value is not YAML: {_one_line(error)}"
        return
    finally:
        loader.dispose()
    *parents, last = path.split(".")
    for name in parents:
        below = tree.get(name)
        if isinstance(below, str) and below:
            problems[f"--set {override}"] = f"{name} is given as a whole, {_shown(below)}: set it so or by its keys"
            return
        if not isinstance(below, dict):
            tree[name] = below = {}
        tree = below
    tree[last] = value


def _section(info: inspect.Type, value: object, path: str, problems: Problems) -> Tree:
    """Known and valid keys of `value`; the others go to `problems`, so that the defaults stand in for them."""
    assert isinstance(info, inspect.StructType)
    fields = {field.name: field.type for field in info.fields}
    if not isinstance(value, dict):
        problems[path] = f"expected a section with keys such as {', '.join(list(fields)[:3])}, got {_shown(value)}"
        return {}
    checked: Tree = {}
    for key, below in value.items():
        dotted = f"{path}.{key}" if path else str(key)
        if key not in fields:
            problems[dotted] = f"there is no such key{_nearest(str(key), path, fields)}"
            continue
        kind = fields[key]
        if isinstance(kind, inspect.StructType):
            checked[key] = _section(kind, below, dotted, problems)
        elif isinstance(kind, inspect.VarTupleType):
            checked[key] = _sections(kind.item_type, below, dotted, problems)
        elif (sentence := _mismatch(kind, below)) is not None:
            problems[dotted] = f"expected {sentence}, got {_shown(below)}"
        else:
            checked[key] = int(below) if isinstance(kind, inspect.IntType) else below  # 2e6 means 2000000
    return checked


def _sections(info: inspect.Type, value: object, path: str, problems: Problems) -> list[Tree]:
    """A list of sections; without the keys that must be there, an item is left out."""
    assert isinstance(info, inspect.StructType)
    needed = [field.name for field in info.fields if field.required]
    if not isinstance(value, list | tuple):
        problems[path] = f"expected a list of sections with the keys {', '.join(needed)}, got {_shown(value)}"
        return []
    checked = [_section(info, below, f"{path}.{number}", problems) for number, below in enumerate(value)]
    for number, item in enumerate(checked):
        for name in needed:
            if name not in item and not any(problem.startswith(f"{path}.{number}") for problem in problems):
                problems[f"{path}.{number}"] = f"the key {name} is missing"
    return [item for item in checked if all(name in item for name in needed)]


def _mismatch(kind: inspect.Type, value: object) -> str | None:
    """What was expected where `value` does not fit `kind`, else None."""
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
            return None if value in kind.values else "one of " + ", ".join(str(v) for v in kind.values)
        case inspect.DictType():
            fits = isinstance(value, dict) and all(isinstance(key, str) for key in value)
            return None if fits else "a mapping of names to values"
        case inspect.StrType():
            return None if isinstance(value, str) else "text"
    raise TypeError(f"common.config uses {kind}, which common.strict_yaml does not check")


def _in_range(kind: inspect.IntType | inspect.FloatType, value: Any) -> bool:
    if not math.isfinite(value):
        return False
    low = (kind.ge is None or value >= kind.ge) and (kind.gt is None or value > kind.gt)
    return low and (kind.le is None or value <= kind.le) and (kind.lt is None or value < kind.lt)


def _range_text(kind: inspect.IntType | inspect.FloatType) -> str:
    bounds = ((">=", kind.ge), (">", kind.gt), ("<=", kind.le), ("<", kind.lt))
    text = " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)
    return f" {text}" if text else ""


def _nearest(key: str, path: str, fields: dict[str, inspect.Type]) -> str:
    """`; did you mean learner.clip?`: the nearest key of this section, else of any section."""
    prefix = f"{path}." if path else ""
    close = difflib.get_close_matches(key, fields, n=1)
    if close:
        return f"; did you mean {prefix}{close[0]}?{_keys_of(fields[close[0]])}"
    elsewhere = {dotted.rpartition(".")[2]: dotted for dotted in config_keys()}
    close = difflib.get_close_matches(key, elsewhere, n=1, cutoff=0.8)
    if close:
        return f"; did you mean {elsewhere[close[0]]}?"
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


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
