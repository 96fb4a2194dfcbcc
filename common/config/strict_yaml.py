"""YAML, read strictly: numbers as YAML 1.2 has them, no key twice, no key without a space after its colon, no dates."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from msgspec import inspect

from simul.common.config.opponents import is_own
from simul.common.errors import ConfigError

_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_NUMBERS = {  # as YAML 1.2 reads them: to YAML 1.1, 3e-4 is text, and 1:30 is 90; 010, an 8 there, is text
    _INT: re.compile(r"^[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F]+)$"),
    _FLOAT: re.compile(
        r"^(?:[-+]?(?:[0-9][0-9_]*\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?[0-9]+[eE][-+]?[0-9]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
}
MAX_LEVELS = 20
TOO_DEEP = "nested too deeply, or contains itself: sections contain keys only"


def read_other_yaml(path: Path, what: str) -> Any:
    """The value in a YAML file that is no configuration, read as strictly. `what`: for messages, such as `the space`.

    Raises ConfigError.
    """
    title = f"{what[0].upper()}{what[1:]} {path}"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{title} cannot be read: {reason}.") from None
    value, faults = parse_yaml(text, title, inspect.AnyType())
    if faults:
        lines = "".join(f"\n  line {line}: {sentence}" for line, sentence in faults.items())
        raise ConfigError(f"{title} has faults:{lines}")
    return value


def parse_yaml(text: str, title: str, kind: inspect.Type) -> tuple[Any, dict[int, str]]:
    """The value of a YAML document and, by line, sentences about what is not strict. Raises ConfigError."""
    try:
        loader = StrictLoader(text, kind)
        try:
            value = loader.get_single_data()
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError, TypeError) as error:  # too many digits in a number; a list as a key
        raise ConfigError(f"{title} is not YAML: {one_line(error)}.") from None
    except RecursionError:
        raise ConfigError(f"{title} is {TOO_DEEP}.") from None
    if deeper_than(MAX_LEVELS, value):
        raise ConfigError(f"{title} is {TOO_DEEP}.")
    return value, loader.faults


class StrictLoader(yaml.SafeLoader):
    """SafeLoader that reads 3e-4 as a number and reports duplicate keys and keys without a space after the colon.

    Where `kind`, the type of the whole document, has text, a number is the text that was written.
    """

    def __init__(self, text: str, kind: inspect.Type) -> None:
        super().__init__(text)
        self.faults: dict[int, str] = {}  # sentence by line
        self._kind = kind

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None:
            _keep_text(node, self._kind)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        whole = []
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            before, colon, after = name.rpartition(":")
            if colon and value.value == "" and value.style is None:  # {hidden:8}, a key without a value
                hint = f", and an opponent {name} requires a share: {name}: 0.2" if is_own(name) else ""
                self.faults[line] = f"YAML requires a space after a colon: {before}: {after}{hint}"
                continue
            if name in seen:
                self.faults[line] = f"the key {name!r} is given twice here"
            seen.add(name)
            whole.append((key, value))
        node.value = whole
        return super().construct_mapping(node, deep)


StrictLoader.yaml_implicit_resolvers = {  # no key takes a date: run_dir: 2026-11-22 is text
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (*_NUMBERS, "tag:yaml.org,2002:timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern in _NUMBERS.items():
    StrictLoader.add_implicit_resolver(_tag, _pattern, list("-+.0123456789"))


def _keep_text(node: yaml.Node, kind: inspect.Type) -> None:
    """Numbers below `node` become text where `kind` is text: `name: 2048`."""
    if isinstance(node, yaml.MappingNode) and isinstance(kind, inspect.StructType):
        fields = {field.name: field.type for field in kind.fields}
        for key, value in node.value:
            if key.value == "modes" and isinstance(value, yaml.MappingNode):
                for _, settings in value.value:
                    _keep_text(settings, kind)
            elif key.value in fields:
                _keep_text(value, fields[key.value])
    elif isinstance(node, yaml.SequenceNode) and isinstance(kind, inspect.VarTupleType):
        for item in node.value:
            _keep_text(item, kind.item_type)
    elif isinstance(node, yaml.ScalarNode) and isinstance(kind, inspect.StrType) and node.tag in _NUMBERS:
        node.tag = "tag:yaml.org,2002:str"


def deeper_than(levels: int, value: Any) -> bool:
    """True if `value` nests deeper than `levels`; a YAML alias may refer to its own parent and never end."""
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return bool(below) and (levels == 0 or any(deeper_than(levels - 1, item) for item in below))


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())
