"""A class of the user's: what is said where its module cannot be imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from simul.common.config.named_class import load_class
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
