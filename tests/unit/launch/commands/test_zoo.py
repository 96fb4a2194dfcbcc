"""`simul zoo`, and `zoo:NAME` in every command that takes a checkpoint."""

from __future__ import annotations

import re

import pytest

from simul.common.checkpoints.zoo import ZOO
from simul.launch import cli
from simul.launch.command_line import make_parser
from simul.launch.loadtest.options import parse


@pytest.mark.parametrize(
    "line",
    [
        ["serve", "--checkpoint"], ["eval", "--checkpoint"], ["play", "--checkpoint"], ["watch", "--checkpoint"],
        ["up", "cartpole", "--from"], ["policies", "load", "name"],
    ],
)  # fmt: skip
def test_every_command_that_takes_a_checkpoint_takes_one_of_the_zoo(line, capsys):
    options = vars(make_parser().parse_args([*line, "zoo:cartpole"]))
    assert str(ZOO / "cartpole") in str(options.values())
    with pytest.raises(SystemExit):
        make_parser().parse_args([*line, "zoo:cartpol"])
    assert "; did you mean zoo:cartpole?" in capsys.readouterr().err


def test_the_load_test_takes_one_of_the_zoo():
    assert parse(["--checkpoint", "zoo:cartpole"]).checkpoint == ZOO / "cartpole"


def test_the_list_and_the_cards(capsys):
    assert cli.main(["zoo"]) == 0
    listed = capsys.readouterr().out
    assert re.search(
        r"^zoo:cartpole +gymnasium:CartPole-v1 +mean return +0\.1 2026-11-26\n +500\.0 +$", listed, re.M
    ), "in 80 columns"
    assert cli.main(["zoo", "list"]) == 0
    assert capsys.readouterr().out == listed
    for name in ("cartpole", "zoo:cartpole", str(ZOO / "cartpole")):
        assert cli.main(["zoo", "show", name]) == 0
        assert capsys.readouterr().out == (ZOO / "cartpole" / "card.md").read_text()
    assert cli.main(["zoo", "show", "cartpol"]) == 2
    assert "; did you mean zoo:cartpole?" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["play cartpole", "play pokemon", "watch cartpole", "watch pokemon"])
def test_an_entry_is_not_announced_where_it_does_not_play(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # no run is active
    assert cli.main(line.split()) == 2
    assert "zoo show" not in capsys.readouterr().err


def test_a_folder_is_not_taken_for_a_shipped_entry_and_a_linked_card_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cartpole").mkdir()
    (tmp_path / "cartpole" / "card.md").write_text("# mine\n")
    for name, words in (("cartpole", "# zoo:cartpole\n"), ("./cartpole", "# mine\n")):
        assert cli.main(["zoo", "show", name]) == 0
        assert capsys.readouterr().out.startswith(words)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "card.md").symlink_to(tmp_path / "cartpole" / "card.md")
    assert cli.main(["zoo", "show", "linked"]) == 2
    assert "linked/card.md cannot be read" in capsys.readouterr().err


def test_a_card_of_others_is_cleaned_for_the_terminal(tmp_path, capsys):
    (tmp_path / "card.md").write_text("# it\n\x1b]0;owned\x07 tail")
    assert cli.main(["zoo", "show", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "# it\n\\u001b]0;owned\\u0007 tail\n"
