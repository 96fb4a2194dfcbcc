"""Run directories and checkpoints on the command line."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path

import pytest

from simul.common.errors import ConfigError
from simul.launch import cli
from simul.launch.command_line import make_parser
from simul.launch.option_types import named_run, searched_checkpoint


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


def test_a_checkpoint_may_name_the_settings_of_its_search(tmp_path: Path) -> None:
    assert searched_checkpoint("runs/x") == (Path("runs/x"), ())
    assert searched_checkpoint("runs/x#simulations=16,method=puct") == (
        Path("runs/x"),
        ("simulations=16", "method=puct"),
    )
    assert searched_checkpoint("s3://bucket/run#simulations=16") == ("s3://bucket/run", ("simulations=16",))
    assert searched_checkpoint("s3://bucket/run#1") == ("s3://bucket/run#1", ())
    (tmp_path / "run#1").mkdir()
    assert searched_checkpoint(f"{tmp_path}/run#1").search == (), "a folder of this name"


@pytest.mark.parametrize(
    "settings", ["", "simulations", "simulations=", "a.b=1", "simulations=16;rm", "simulations=1,"]
)
def test_what_is_no_setting_behind_a_checkpoint_is_refused_with_an_example(settings: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="such as simulations=16 of a policy that learned"):
        searched_checkpoint(f"runs/x#{settings}")


@pytest.mark.parametrize("line", [["policies", "load", "old"], ["loadtest", "--checkpoint"]])
def test_the_url_of_a_store_is_refused_where_it_is_not_fetched(line: list[str], capfd) -> None:
    with suppress(SystemExit):  # of argparse; the load test has a parser of its own
        assert cli.main([*line, "s3://bucket/run"]) == 2
    assert "expected a checkpoint on this machine, or zoo:NAME, got s3://bucket/run; the URL" in capfd.readouterr().err
    assert make_parser().parse_args(["up", "cartpole", "--from", "s3://bucket/run"]).origin == "s3://bucket/run"


@pytest.mark.parametrize("number", ["1000000001", "9" * 5000])
def test_more_games_than_a_file_of_results_holds_are_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["league", "--games", number])
    said = f"expected a whole number, at most 1,000,000,000; got one of {len(number)} digits"
    assert said in capsys.readouterr().err
