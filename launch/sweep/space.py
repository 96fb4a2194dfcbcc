"""The space of a sweep: which settings are searched, and between which values. Pure but for reading its file.

learner.learning_rate: {low: 1e-4, high: 1e-2, log: true}
learner.epochs: {low: 1, high: 8}                # whole numbers, as the key takes
learner.unroll_length: {choices: [16, 32, 64]}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import inspect

from simul.common.config.loader import type_at
from simul.common.config.schema import WATCHING
from simul.common.config.setting_lines import setting_lines
from simul.common.config.strict_yaml import read_other_yaml
from simul.common.errors import ConfigError, did_you_mean

RANGE, CHOICES = ("low", "high", "log", "int", "step"), ("choices",)
FORMS = "{low: 1e-4, high: 1e-2, log: true}, {low: 1, high: 8} or {choices: [16, 32]}"
MOST = 10**18
MOST_CHOICES = 100  # of a key: each is loaded before the first trial, and a few trials say nothing of more
OF_THE_SWEEP = ("game", "stop_after_decisions", "learner.checkpoint_every_sec", *WATCHING)  # all trials have the same
OF_EACH_TRIAL = ("run_dir", "store", "server.endpoint", "server.prometheus_port", "prometheus_port")  # set by the sweep


@dataclass(frozen=True)
class Dimension:
    """One key that is searched: whole or other numbers from `low` to `high`, or `choices` as YAML writes them."""

    key: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    step: float | None = None
    choices: tuple[str, ...] = ()

    def ends(self) -> tuple[str, ...]:
        """Settings `KEY=VALUE` that a configuration must take for all of them to be taken."""
        return tuple(self.setting(value) for value in self.choices or (self.low, self.high))

    def setting(self, value: object) -> str:
        """`KEY=VALUE` as `--set` takes it. `value`: a number of the range, or one of `choices`."""
        return f"{self.key}={value}" if self.choices else setting_lines({self.key: value})[0]


def read_space(path: Path) -> list[Dimension]:
    """The dimensions in a YAML file. Raises ConfigError, with every problem at once."""
    return space_of(read_other_yaml(path, "the space"), str(path))


def space_of(tree: object, source: str) -> list[Dimension]:
    """Likewise, of plain builtins. `source`: for messages."""
    if not isinstance(tree, Mapping) or not tree:
        what = "is empty" if not tree else "is no mapping"
        raise ConfigError(f"The space {source} {what}: expected keys of the configuration, each with {FORMS}.")
    problems: list[str] = []
    found = []
    for key, given in tree.items():
        try:
            found.append(_dimension(str(key), given))
        except ConfigError as error:
            problems.append(f"{key}: {error}")
    raise_problems(problems, source)
    return found


def check_space(space: Sequence[Dimension], load: Callable[[str], object], source: str) -> None:
    """Ask `load`, which raises ConfigError, for the ends of every range and for every choice, each alone."""
    problems = []
    for dimension in space:
        for setting in dimension.ends():
            try:
                load(setting)
            except ConfigError as error:
                problems += [line.strip() for line in str(error).splitlines()[1:]] or [str(error)]
                break  # the other end would say the same of an unknown key
    raise_problems(problems, source)


def raise_problems(problems: Sequence[str], source: str) -> None:
    """Raises ConfigError that lists the problems of a space; returns where there are none."""
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise ConfigError(f"{count} in the space {source}:" + "".join(f"\n  {problem}" for problem in problems))


def _dimension(key: str, given: object) -> Dimension:
    _check_owner(key, given)
    if not isinstance(given, Mapping):
        raise ConfigError(f"expected {FORMS}; got {given!r}")
    for name, below in given.items():
        if name not in (*RANGE, *CHOICES):
            if isinstance(below, Mapping):
                raise ConfigError(f"keys of a space have dots and are not nested: write {key}.{name}: {FORMS}")
            raise ConfigError(f"there is no {name!r} in a range{did_you_mean(name, [*RANGE, *CHOICES])}")
    if "choices" in given:
        return _choices(key, given)
    return _range(key, given)


def _check_owner(key: str, given: object) -> None:
    """Raises ConfigError where the key, or one below it that a choice sets, is no trial's to have."""
    choices = given.get("choices") if isinstance(given, Mapping) else None
    mappings = [each for each in choices if isinstance(each, Mapping)] if isinstance(choices, list) else []
    below = [line.partition("=")[0] for each in mappings for line in setting_lines({key: each})]
    for owned, sentence in (
        (OF_EACH_TRIAL, "the sweep sets it for each trial"),
        (OF_THE_SWEEP, "all trials of a sweep have the same; set it on the command line, with --set"),
    ):
        for path in (key, *below):
            if any(path == own or path.startswith(f"{own}.") for own in owned):
                raise ConfigError(sentence if path == key else f"{path}: {sentence}")


def _choices(key: str, given: Mapping[str, Any]) -> Dimension:
    choices = given["choices"]
    if len(given) > 1:
        raise ConfigError("choices stand alone, without low, high, log, int and step")
    if not isinstance(choices, list) or not choices:
        raise ConfigError(f"expected choices: a list of values such as [16, 32]; got {choices!r}")
    if len(choices) > MOST_CHOICES:
        what = f"{MOST_CHOICES} choices, or a range with low, high and step"
        raise ConfigError(f"expected at most {what}; got {len(choices)} choices")
    lines = [setting_lines({key: [choice]})[0] for choice in choices]  # in a list a mapping is one value, too
    texts = tuple(line.removeprefix(f"{key}=[").removesuffix("]") for line in lines)
    if twice := next((text for text in texts if texts.count(text) > 1), None):
        raise ConfigError(f"the choice {twice} is given twice")
    return Dimension(key, choices=texts)


def _range(key: str, given: Mapping[str, Any]) -> Dimension:
    for name in ("low", "high"):
        if name not in given:
            raise ConfigError(f"{name} is missing: expected {FORMS}")
    low, high, step = given["low"], given["high"], given.get("step")
    for name, value in (("low", low), ("high", high), ("step", step)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ConfigError(f"expected a number as {name}; got {value!r}")
        if isinstance(value, int) and abs(value) > MOST:
            raise ConfigError(f"expected a number as {name}, at most {MOST:g}; got one of {len(str(value))} digits")
    for name in ("log", "int"):
        if not isinstance(given.get(name, False), bool):
            raise ConfigError(f"expected true or false as {name}; got {given[name]!r}")
    takes_whole = _takes_whole(key)
    by_default = isinstance(low, int) and isinstance(high, int) if takes_whole is None else takes_whole
    log, whole = given.get("log", False), given.get("int", by_default)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ConfigError(f"low and high must be finite; got low {low}, high {high}")
    if not low < high:
        raise ConfigError(f"low must be less than high; got low {low}, high {high}")
    if log and low <= 0:
        raise ConfigError(f"a logarithmic range begins above 0; got low {low}")
    if step is not None and (log or not 0 < step <= high - low):
        raise ConfigError(f"expected a step above 0 that fits between low and high, and no log; got {step}")
    if takes_whole and not whole:
        raise ConfigError("it takes whole numbers, and int is false")
    if whole and not all(float(value).is_integer() for value in (low, high, step or 1)):
        raise ConfigError(f"it takes whole numbers; got low {low}, high {high}{f', step {step}' if step else ''}")
    numbers = [int(value) if whole else float(value) for value in (low, high)]
    return Dimension(key, numbers[0], numbers[1], log, whole, step)


def _takes_whole(key: str) -> bool | None:
    """Whether the key's type takes whole numbers only; None where it takes any value."""
    kinds = list(_plain_kinds(type_at(key)))
    if any(isinstance(kind, inspect.FloatType) for kind in kinds):
        return False
    return any(isinstance(kind, inspect.IntType) for kind in kinds) or None


def _plain_kinds(kind: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from _plain_kinds(each)
    else:
        yield kind
