"""Every command that the documentation prints is accepted by the command line, and every key that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simul.common.config.loader import load_config
from simul.common.config.value_checks import config_keys
from simul.common.transport import new_keys
from simul.launch.command_line import make_parser
from tests.support.documented import PAGES, commands, options_of

PLACEHOLDER = re.compile(r"\b[A-Z][A-Z_]*\b|\$\w+")  # stands for something of the reader's own
KEY = re.compile(r"`((?:learner|server|workers|gymnasium|pokemon|opponents|network)\.[a-z_.]+)(?:[ =:][^`]*)?`")
FILES = {"learner.csv", "server.key"}
OF_A_MAPPING = ("gymnasium.kwargs.", "network.options.")
OWN = {"my.yaml", "first_game/first_game.yaml"}  # configurations that the reader makes


def _ids(page: Path) -> str:
    return page.name


def test_commands_are_found() -> None:
    found = [command for page in PAGES for command in commands(page)]
    assert len(found) > 60
    assert {command.split()[1] for command in found} >= {"up", "init", "eval", "serve", "play", "connect", "policies"}


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_commands_are_accepted(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    new_keys(tmp_path / "keys")
    parser = make_parser()
    for command in commands(page):
        line = options_of(PLACEHOLDER.sub("7", command))
        if line[0] == "loadtest" or "..." in command:  # its parser is its own
            continue
        if line in ([line[0]], ["policies", "load"]):  # a command's name in a sentence
            line = [line[0], "--help"]
        try:
            options = parser.parse_args(line)
        except SystemExit as ended:
            if ended.code:
                pytest.fail(f"{page.name}: {command}")
            continue
        if line[0] == "up" and str(options.config) not in {*OWN, "7"}:
            load_config(options.config, options.overrides, options.mode)


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_keys_of_the_configuration_exist(page: Path) -> None:
    keys = set(config_keys())
    sections = {key.rpartition(".")[0] for key in keys}
    named = {key.rstrip(".") for key in KEY.findall(page.read_text())} - FILES
    unknown = [key for key in named if key not in keys | sections and not key.startswith(OF_A_MAPPING)]
    assert sorted(unknown) == []


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_no_recipe_copies_files_of_a_run(page: Path) -> None:
    assert re.findall(r"^(?:\$ )?cp .*|`cp [^`]*`", page.read_text(), re.MULTILINE) == []
