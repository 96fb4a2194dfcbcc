"""A run directory on the command line: as an argument or as `--run-dir`, the same for every command."""

from __future__ import annotations

from pathlib import Path

import pytest

from simul.common.config.option_types import named_run
from simul.common.errors import ConfigError
from simul.launch import cli
from simul.launch.command_line import make_parser


@pytest.mark.parametrize("command", ["status", "down", "logs"])
def test_a_run_is_named_in_either_way(command: str) -> None:
    def named(*arguments: str) -> Path | None:
        return named_run(make_parser().parse_args([command, *arguments]))

    assert named() is None
    assert named("runs/x") == named("--run-dir", "runs/x") == Path("runs/x")
    with pytest.raises(ConfigError, match=r"got runs/x and --run-dir runs/y: give one of the two"):
        named("runs/x", "--run-dir", "runs/y")


@pytest.mark.parametrize("arguments", [["runs/x", "runs/y"], ["--run-dir", "runs/x", "--run-dir", "runs/y"]])
def test_plot_takes_several(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plot", *arguments]) == 2
    assert "runs/x" in capsys.readouterr().err
    assert cli.main(["plot"]) == 2
    assert "Expected a run directory, got none" in capsys.readouterr().err
