"""`simul play` of Pokémon: what is asked of its player."""

from __future__ import annotations

import contextlib

import pytest

from simul.common.role.run_directory import RunDir
from simul.launch import cli
from simul.launch.processes import role_process
from simul.launch.supervisor import inference_only


@pytest.fixture
def played(tmp_path, monkeypatch) -> list[str]:
    """The options that the player was started with."""
    found: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(inference_only, "frozen_run", lambda *_, **__: contextlib.nullcontext(RunDir(tmp_path)))
    monkeypatch.setattr(role_process, "run_in_foreground", lambda _, arguments: found.extend(arguments) or 0)
    return found


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (["--page"], {"--server=local", "--accept=1"}),
        (["--page-port", "8123"], {"--server=local", "--port=8123", "--accept=1"}),
        (["--page", "--server", "local", "--port", "8000", "--accept", "3"],
         {"--server=local", "--port=8000", "--accept=3"}),
    ],
)  # fmt: skip
def test_the_page_is_the_client_of_a_showdown_server_of_its_own(played, options, asked):
    assert cli.main(["play", "pokemon", *options]) == 0
    names = ("--server", "--port", "--accept", "--challenge", "--page")
    assert {option for option in played if option.startswith(names)} == asked


def test_the_page_of_another_showdown_server_is_its_own(played, capsys):
    assert cli.main(["play", "pokemon", "--page", "--server", "showdown", "--accept", "1"]) == 2
    assert "for the one at showdown leave --page out, open its client, and challenge" in capsys.readouterr().err
    assert played == []
