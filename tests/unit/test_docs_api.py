"""The pages of docs/api: their snippets run, and their tables and signatures are those of the code.

Snippets that start processes are marked `<!-- runs -->` instead, see tests/integration/test_recipes.py.
"""

from __future__ import annotations

import inspect
import re
from typing import get_args

import pytest

import simul
from simul.common.protocol.decisions import Action, Decision, Failure
from simul.common.protocol.messages import (
    FROM_CONTROL,
    FROM_LEARNER,
    TO_CLIENT,
    TO_CONTROL,
    TO_LEARNER,
    TO_SERVER,
    TO_SUPERVISOR,
)
from simul.common.protocol.specs import EntityGroup, Slice
from simul.common.runtime.installation import ROOT
from simul.env_worker.source import EnvSource

PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))
SNIPPETS = [
    (page.stem, snippet)
    for page in PAGES
    for snippet in re.findall(
        r"(?<!<!-- runs -->\n\n)^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL
    )
]


@pytest.mark.parametrize(("name", "snippet"), SNIPPETS, ids=[name for name, _ in SNIPPETS])
def test_a_snippet_runs_and_prints_what_its_comments_say(
    name: str, snippet: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(snippet, name, "exec"), {"__name__": "__main__"})  # noqa: S102
    printed = capsys.readouterr().out.splitlines()
    said = re.findall(r"^ *print\(.*\)(?:  # ([^,:\n]*))?", snippet, re.MULTILINE)
    assert len(printed) == len(said)
    assert [line for line, word in zip(printed, said) if word and line != word] == []


def test_every_page_has_a_snippet_and_the_first_lists_what_the_package_offers() -> None:
    assert {name for name, _ in SNIPPETS} | {"simul"} == {page.stem for page in PAGES}
    listed = re.findall(r"^\| `(\w+)` \|.*\.py` \|$", (ROOT / "docs" / "api" / "simul.md").read_text(), re.MULTILINE)
    assert sorted(listed) == simul.__all__


@pytest.mark.parametrize("name", ["train", "evaluate", "serve", "load_policy"])
def test_the_signatures_are_those_of_the_code(name: str) -> None:
    signature = inspect.signature(getattr(simul, name))
    parameters = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    plain = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    page = " ".join((ROOT / "docs" / "api" / "simul.md").read_text().replace('"', "'").split())
    assert f"simul.{name}{plain} " in page


@pytest.mark.parametrize(
    ("page", "described"),
    [
        ("simul", (simul.Run, simul.Server, simul.Client, simul.ColumnClient)),
        ("turn_game", (simul.TurnGame,)),
        ("game_spec", (simul.GameSpec, Slice, EntityGroup)),
        ("env_source", (EnvSource, Decision, Action, Failure)),
    ],
)
def test_tables_name_every_public_member(page: str, described: tuple[type, ...]) -> None:
    table = (ROOT / "docs" / "api" / f"{page}.md").read_text().partition("\n:::")[0]
    members = {name for each in described for name in {*vars(each), *each.__annotations__} if not name.startswith("_")}
    assert sorted(name for name in members if not re.search(rf"`{name}\b", table)) == []


def test_the_page_of_messages_names_every_one() -> None:
    tables = (ROOT / "docs" / "api" / "messages.md").read_text().partition("\n:::")[0]
    ways = TO_SERVER | TO_CLIENT | TO_LEARNER | FROM_LEARNER | TO_CONTROL | FROM_CONTROL | TO_SUPERVISOR
    tags = [str(each.__struct_config__.tag) for each in get_args(ways)]
    assert len(tags) > 20
    assert [tag for tag in tags if f"`{tag}`" not in tables] == []
