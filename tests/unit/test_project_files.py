"""Files for people who come that repeat what another file says: they agree with it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import yaml

from simul.common.runtime.installation import ROOT
from tests.support import browser

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_workflow_runs_the_steps_of_ci_run() -> None:
    (job,) = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"].values()
    steps = [step["run"] for step in job["steps"] if "run" in step]
    assert steps[0].startswith("make setup ")
    checks = (ROOT / ".ci" / "run").read_text().partition('cd "$(dirname "$0")/.."\n')[2].splitlines()
    assert steps[1:] == checks != []
    least = PROJECT["requires-python"].removeprefix(">=")
    assert job["strategy"]["matrix"]["python"][0] == least


def test_the_citation_names_this_version_and_licence() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])


def test_the_image_gets_all_that_the_package_links_to() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    links = {path.readlink().name for path in (ROOT / "simul").iterdir() if path.is_symlink()}
    assert {f"!{name}" for name in (*links, "simul", "pyproject.toml", "constraints.txt", PROJECT["readme"])} <= {
        *ignored
    }
    assert "*" in ignored


def test_the_image_installs_what_the_package_and_its_page_need() -> None:
    joined = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
    (program,) = re.findall(r"\$\(python -c '(.*)'\)", joined)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["page"]]


def test_what_is_said_to_run_in_the_long_tests_runs_there() -> None:
    long = (ROOT / ".ci" / "long").read_text(encoding="utf-8").replace('"', " ").split()
    found = [
        (file.relative_to(ROOT).as_posix(), name)
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(
            r"^@pytest\.mark\.slow  # \.ci/long runs it.*\n(?:@.*\n)*def (test_\w+)",
            file.read_text(encoding="utf-8"),
            re.M,
        )
    ]
    assert len(found) > 10
    run = {word.partition("[")[0] for word in long}
    assert [name for file, name in found if not {file, f"{file}::{name}"} & run] == []


def test_the_wheel_is_installed_with_the_page() -> None:
    pages = [ROOT / "README.md", ROOT / "docs" / "recipes.md"]
    commands = [
        " ".join(line.split())
        for page in pages
        for line in re.findall(r"^pipx install .*", page.read_text().replace(" \\\n", ""), re.M)
    ]
    assert len(commands) == len(pages)
    assert len(set(commands)) == 1
    assert commands[0].endswith(' "$(echo dist/simul-*.whl)[page]"')
    assert 'dist/simul-*.whl)[page]"' in (ROOT / ".ci" / "wheel").read_text()


def test_where_the_tests_in_a_browser_are_skipped_the_check_says_so(monkeypatch) -> None:
    assert (ROOT / ".ci" / "page").read_text().endswith("\n.venv/bin/python -m tests.support.browser\n")
    monkeypatch.setattr(browser, "MISSING", "chromium")
    monkeypatch.setattr(browser, "LACKS", "no chromium: how to install it")
    assert browser.verdict() == "the page was tried in no browser: no chromium: how to install it"
    monkeypatch.setattr(browser, "MISSING", "")
    assert browser.verdict() == "the page works in a browser"
