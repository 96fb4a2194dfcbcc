"""The pages of docs/api: their snippets run, and the table of names is that of the package.

Snippets that start processes are marked `<!-- runs -->` instead, see tests/integration/test_recipes.py.
"""

from __future__ import annotations

import re

import pytest

import simul
from simul.common.runtime.installation import ROOT

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
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "api" / "simul.md").read_text(), re.MULTILINE)
    assert sorted(listed) == simul.__all__
