"""A class or function of the user's, named in the configuration as module:Class."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

from simul.common.config.trust import Trust
from simul.common.errors import ConfigError, did_you_mean
from simul.common.runtime.error_place import describe_error
from simul.common.runtime.installation import append_working_directory

_CALLERS = frozenset({__file__})


def load_class(name: str, kind: str = "class", *, trust: Trust) -> Callable[..., Any]:
    """The class, or another callable, called `module:Class`; `kind`: what errors call it.

    Raises ConfigError, before anything is imported where `trust` does not cover the name.
    """
    trust.check_name(name)
    module_name, _, class_name = name.partition(":")
    if not class_name:
        raise ConfigError(f"{name!r} names no {kind}; expected module:NAME.")
    try:
        module = import_user_module(module_name, trust)
    except (Exception, SystemExit) as error:
        missing = isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}.")
        what = f"{type(error).__name__}: {error}" if missing else describe_error(error, _CALLERS)
        hint = " Run from the directory that holds it, or install it." if missing else ""
        raise ConfigError(f"The module {module_name!r} of {name!r} cannot be imported: {what}.{hint}") from error
    found = getattr(module, class_name, None)
    if isinstance(found, ModuleType):
        raise ConfigError(f"{name} is a module; expected a class or a function in it, {module_name}.{class_name}:NAME.")
    if not callable(found):
        hint = did_you_mean(class_name, [n for n in dir(module) if not n.startswith("_")]) or "."
        read = f" It was read from {module.__file__}." if getattr(module, "__file__", None) else ""
        raise ConfigError(f"The module {module_name!r} has no {kind} {class_name!r}{hint}{read}")
    return found


def name_of_callable(found: Callable[..., Any]) -> str:
    """`found`, a function or class at the top level of a module, as module:NAME: how other processes import it.

    Raises ConfigError where they could not.
    """
    module, name = getattr(found, "__module__", None), getattr(found, "__qualname__", None)
    if not module or not name:
        problem = f"a {type(found).__name__} object, which has no name of its own"
    elif "<lambda>" in name:
        problem = "a lambda, which has no name of its own"
    elif module == "__main__":
        problem = f"{name} of this script or notebook (__main__)"
    elif "." in name:
        problem = f"{name}, which lies inside another function or class"
    elif getattr(sys.modules.get(module), name, None) is not found:
        problem = f"{name}, which the module {module} does not have under this name"
    else:
        return f"{module}:{name}"
    raise ConfigError(
        f"A run imports its game by name, and cannot import {problem}: define a function or class at the top level of "
        "a file, mygame.py say, import it from there, and pass that."
    )


def import_user_module(name: str, trust: Trust) -> ModuleType:
    """Import the module of a `module:Class`, from the working directory first. Raises whatever the module raises.

    Raises ConfigError where `trust` covers nothing of the module.
    """
    trust.check_module(name)
    append_working_directory()
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        with suppress(ValueError):  # the module may have changed the path
            sys.path.remove(folder)
