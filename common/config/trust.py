"""Values of a configuration that name code, and which of them may be run.

The schema marks the keys (`simul.common.config.section.Names`, `ArgumentsOf`). A value of a marked key out of data (a
run directory, a checkpoint, a replay, a store) is run only where a `Trust` covers it. Pure.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from simul.common.config.schema import Config, NetworkConfig
from simul.common.config.section import ArgumentsOf, Names, Section
from simul.common.errors import ConfigError
from simul.common.runtime.terminal_text import printable

SHIPPED = frozenset({"simul.env_worker.games.gymnasium.memory:MemoryEnv"})  # module:NAME of Simul's own
MOST_SHOWN = 160  # characters of a value in an error
WAY = ", or name these values on the command line, in a configuration or with --set"
Mark = Names | ArgumentsOf
Tree = Mapping[str, Any]


class MarkedValue(NamedTuple):
    """The value of a marked key. `text`: as JSON with sorted keys, so that equal values are equal."""

    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.key}: {_cut(self.text)}"


class Trust(msgspec.Struct, frozen=True):
    """Which values of marked keys may be run.

    Attributes:
        everything: the user says so: `--trust`, or a configuration that the command line names.
        values: those that may be run where not everything may.
        reason: why no others may, as the rest of a sentence.
    """

    everything: bool = False
    values: frozenset[MarkedValue] = frozenset()
    reason: str = "nothing on the command line names it"

    def covers(self, value: MarkedValue) -> bool:
        """True if `value` may be run."""
        return self.everything or value in self.values

    def and_also(self, values: Iterable[MarkedValue]) -> Trust:
        """The same, and `values`."""
        return msgspec.structs.replace(self, values=self.values.union(values))

    def check_name(self, name: str) -> None:
        """Raises ConfigError unless `module:NAME` may be imported; whatever key names it."""
        known = name in SHIPPED or any(value.text == _json(name) for value in self.values)
        if not known and not self.everything:
            raise _refusal(f"importing {_cut(_json(name))}", self.reason)

    def check_module(self, module: str) -> None:
        """Raises ConfigError unless a callable of `module` may be imported."""
        names = (*(_json(name) for name in SHIPPED), *(value.text for value in self.values))
        if not self.everything and not any(name.startswith(f'"{module}:') for name in names):
            raise _refusal(f"importing the module {_cut(_json(module))}", self.reason)

    def check_program(self, words: Sequence[str]) -> None:
        """Raises ConfigError unless the command line of these words may be run."""
        lines = (msgspec.json.decode(value.text) for value in self.values if value.text.startswith('"'))
        if not self.everything and not any(_words(line) == [*words] for line in lines):
            raise _refusal(f"running {_cut(_json(shlex.join(words)))}", self.reason)


NOTHING = Trust()
EVERYTHING = Trust(everything=True)


def values_at_marked_keys(tree: Tree) -> frozenset[MarkedValue]:
    """Every value of a marked key in settings as plain builtins, whole or a part of them."""
    found = ((key, mark, value) for key, mark in marked_keys() if (value := _at(tree, key)))
    return frozenset(_marked(key, each) for key, mark, value in found for each in _each(mark, value))


def values_to_trust(settings: Config | Tree) -> frozenset[MarkedValue]:
    """The values of marked keys that name something to run, whatever the configured game."""
    tree: Tree = msgspec.to_builtins(settings) if isinstance(settings, Config) else settings
    found = {key: (mark, value) for key, mark in marked_keys() if (value := _at(tree, key))}
    return frozenset(
        _marked(key, each)
        for key, (mark, value) in found.items()
        for each in _each(mark, value)
        if _needs_trust(mark, each, tree)
    )


def network_values(network: NetworkConfig) -> frozenset[MarkedValue]:
    """`values_to_trust` of the network that a checkpoint's meta.json names."""
    return values_to_trust({"network": msgspec.to_builtins(network)})


def check_trust(values: Iterable[MarkedValue], trust: Trust, source: str, way: str = WAY) -> None:
    """Raises ConfigError where `trust` does not cover one of the `values` out of `source`.

    `way`: what else to do than to say --trust.
    """
    refused = sorted(value for value in values if not trust.covers(value))
    if refused:
        shown = ", ".join(map(str, refused))
        raise _refusal(f"{printable(source)} names what would be run, {shown}", trust.reason, way)


def programs_of(config: Config) -> dict[str, str]:
    """Command lines of the scripted players that are programs, by the key of the game's section that has them."""
    section = f"{config.game}."
    keys = [
        key.removeprefix(section) for key, mark in marked_keys() if mark is Names.PROGRAM and key.startswith(section)
    ]
    return {key: getattr(config.game_section, key) for key in keys}


@cache
def marked_keys() -> tuple[tuple[str, Mark], ...]:
    """(dotted key, mark) of every marked key of the schema."""
    return tuple(_walk(Config, ""))


def _walk(section: type[Section], prefix: str) -> Iterator[tuple[str, Mark]]:
    for name, hint in get_type_hints(section, include_extras=True).items():
        if isinstance(hint, type) and issubclass(hint, Section):
            yield from _walk(hint, f"{prefix}{name}.")
        elif get_origin(hint) is Annotated:
            yield from ((f"{prefix}{name}", mark) for mark in get_args(hint) if isinstance(mark, Mark))


def _each(mark: Mark, value: Any) -> Iterable[Any]:
    """Every name where a key takes several, or names are its keys: each is trusted for itself."""
    return value if mark is Names.CODE and isinstance(value, Mapping | list | tuple) else (value,)


def _needs_trust(mark: Mark, value: Any, tree: Tree) -> bool:
    """`value` is not empty."""
    if mark is Names.PROGRAM:
        return True
    if mark is Names.CODE:
        return _has_colon(value)
    # Registered environments may take module:NAME as an argument (Gymnasium's GymV26Environment-v0).
    return _has_colon(_at(tree, mark.callable)) or _has_colon(value)


def _has_colon(value: Any) -> bool:
    """True if a text in `value`, at any depth, has a colon and is no name that Simul ships."""
    left = [value]
    while left:
        below = left.pop()
        if isinstance(below, Mapping):
            left += [*below.keys(), *below.values()]
        elif isinstance(below, list | tuple | set | frozenset):
            left += below
        elif isinstance(below, str) and ":" in below and below not in SHIPPED:
            return True
    return False


def _at(tree: Tree, key: str) -> Any:
    below: Any = tree
    for name in key.split("."):
        if not isinstance(below, Mapping):
            return None
        below = below.get(name)
    return below


def _marked(key: str, value: Any) -> MarkedValue:
    return MarkedValue(key, _json(value))


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value, order="sorted", enc_hook=repr).decode()
    except RecursionError:
        raise ConfigError("The value of a key that names what is run is nested too deeply.") from None
    except (TypeError, OverflowError, ValueError):  # what YAML has and JSON has not
        return repr(value)


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, posix=os.name != "nt")
    except ValueError:
        return []


def _cut(text: str) -> str:
    """A value in a sentence, in ASCII: letters that only look like others show."""
    text = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
    return printable(text.encode("ascii", "backslashreplace").decode())


def _refusal(what: str, reason: str, way: str = WAY) -> ConfigError:
    return ConfigError(
        f"{what}, and {printable(reason)}: if you trust it, say so with --trust (trust=True in Python){way}."
    )
