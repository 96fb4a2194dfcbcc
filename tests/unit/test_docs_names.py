"""Files, folders and modules that the documentation names exist; its lines are not too long."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import simul
from simul.common.runtime.installation import ROOT
from simul.launch.monitoring.curves.figures import CURVES

PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = (
    "common", "env_worker", "inference_server", "launch", "learner",
    "configs", "zoo", "tests", "benchmarks", "examples", "docs",
)  # fmt: skip
TOP_LEVEL = {"README.md", "ARCHITECTURE.md", "CHANGELOG.md", ".ci/run"}
OF_THE_READER = {  # saved by the reader, in a run directory, or for any name
    "my.yaml", "config.yaml", "best.yaml", "first_game/env.py", "first_game/network.py", "docs/NAME.md",
}  # fmt: skip
WIDTH = 120
WRAPPED = [*PAGES, ROOT / "SECURITY.md", ROOT / "CHANGELOG.md", ROOT / "tests" / "README.md"]
NO_PROSE = re.compile(r"^\s*(?:\||#|<!--|\[[^]]+\]: |:::)")  # tables, headings, comments, definitions of links
NAME = re.compile(r"`([\w./-]+\.(?:py|mjs|cjs|md|yaml)|(?:" + "|".join(FOLDERS) + r")/[\w./-]*|simul(?:\.\w+)+)`")


@pytest.fixture(scope="module")
def files() -> set[str]:
    """Every file and folder of the checkout, relative to its root; folders end in a slash."""
    found = set(TOP_LEVEL)
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if "node_modules" not in path.parts and "__pycache__" not in path.parts:
                found.add(path.relative_to(ROOT).as_posix() + ("/" if path.is_dir() else ""))
    return found | {f"{folder}/" for folder in FOLDERS}


def _exists(name: str, files: set[str]) -> bool:
    if name.startswith("simul."):
        path = name.removeprefix("simul.").replace(".", "/")
        return any(f"{path}{end}" in files for end in (".py", "/", "")) or _exists_in_module(path, files)
    return name in files or f"{name}/" in files or any(file.endswith(f"/{name}") for file in files)


def _exists_in_module(path: str, files: set[str]) -> bool:
    """`path` is a module and a name that its source defines."""
    module, _, name = path.rpartition("/")
    if not module:
        return name in simul.__all__
    source = next((file for file in (f"{module}.py", f"{module}/__init__.py") if file in files), None)
    return source is not None and re.search(rf"\b{name}\b", (ROOT / source).read_text()) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_file_and_module_that_a_page_names_exists(page: Path, files: set[str]) -> None:
    named = set(NAME.findall(page.read_text())) - OF_THE_READER - set(CURVES)
    assert sorted(name for name in named if "*" not in name and "NAME" not in name and not _exists(name, files)) == []


def test_code_blocks_import_modules_that_exist(files: set[str]) -> None:
    imports = [
        (page.name, *match)
        for page in PAGES
        for match in re.findall(r"^from (simul[\w.]*) import ([\w, ]+)", page.read_text(), re.MULTILINE)
    ]
    assert imports
    for page, module, names in imports:
        for name in names.split(", "):
            assert module == "simul" or _exists(f"{module}.{name}", files), (page, module, name)


@pytest.mark.parametrize("page", WRAPPED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_lines_of_prose_are_wrapped(page: Path) -> None:
    text = re.sub(r"^\s*```.*?^\s*```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in text.splitlines() if len(line) > WIDTH and not NO_PROSE.match(line)] == []


def test_commands_of_the_first_page_fit_a_line() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert [line for line in lines if len(line) > WIDTH and not NO_PROSE.match(line)] == []
