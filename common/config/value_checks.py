"""Checks each value of a configuration against the types of `schema.py`.

msgspec reports the first problem only, so the struct types are walked here; every problem carries its dotted path.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from msgspec import inspect

from simul.common.config.automatic import AUTO, AUTOMATIC
from simul.common.config.schema import Config
from simul.common.errors import did_you_mean, nearest_name

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
    raise TypeError(f"simul.common.config.schema uses {kind}, which simul.common.config.value_checks does not check")


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
