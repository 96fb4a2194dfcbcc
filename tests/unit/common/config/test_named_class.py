"""A class of the user's: what is said where its module cannot be imported."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simul.common.config.named_class import load_class, name_of_callable
from simul.common.config.trust import EVERYTHING
from simul.common.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\n\n1 / 0\n", r"cannot be imported: NAME\.py:3: ZeroDivisionError: division by zero\.$"),
        ("import no_such_library\n", r"NAME\.py:1: ModuleNotFoundError: No module named 'no_such_library'\.$"),
        ("def broken(:\n", r"SyntaxError: .*NAME\.py, line 1"),
        (None, r"ModuleNotFoundError: No module named 'NAME'\. Run from the directory that holds it, or install it\.$"),
    ],
)
def test_a_module_that_raises_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, text: str | None, says: str
) -> None:
    name = f"users_module_{abs(hash(request.node.name))}"
    if text is not None:
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=says.replace("NAME", name)):
        load_class(f"{name}:Env", trust=EVERYTHING)


def make_env() -> None:
    """Stands for a function of the user's."""


class Own:
    """Stands for a class of the user's."""

    class Inner:
        """Cannot be named."""


def of_main() -> None:
    """As a script or a notebook defines it."""


of_main.__module__ = "__main__"


def hidden() -> None:
    """What its module has under this name is another function: as with a decorator."""


ANOTHER, hidden = hidden, make_env  # type: ignore[assignment]


def test_the_name_of_a_function_or_class_leads_back_to_it() -> None:
    from tests.support import gym_envs
    from tests.support.turn_games import take_any

    kinds = [
        found for found in vars(gym_envs).values() if isinstance(found, type) and found.__module__ == gym_envs.__name__
    ]
    for found in (take_any, *kinds):
        assert load_class(name_of_callable(found), trust=EVERYTHING) is found
    assert kinds


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (lambda: None, "a lambda"),
        (functools.partial(make_env), "a partial object, which has no name"),
        (Own.Inner, r"Own\.Inner, which lies inside"),
        (of_main, r"of_main of this script or notebook \(__main__\)"),
        (ANOTHER, "hidden, which the module .* does not have under this name"),
    ],
)
def test_what_cannot_be_imported_by_its_name_is_refused_with_the_way_out(found: Callable[..., Any], says: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot import {says}.*: define .* mygame.py say"):
        name_of_callable(found)
