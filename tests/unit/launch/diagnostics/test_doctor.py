"""What a game's own checks find."""

from __future__ import annotations

from simul.common.config.games import GAMES
from simul.launch.diagnostics.doctor import SETUP, game_findings


def test_findings_of_a_games_checks_come_with_their_fixes(monkeypatch, tmp_path):
    monkeypatch.setenv("SIMUL_NODE", str(tmp_path / "absent"))
    node, simulator = game_findings("pokemon", GAMES["pokemon"].checks)
    assert (node.name, simulator.name) == ("node", "simulator")
    assert "is not a Node that runs" in node.found
    assert node.fix.startswith("unset SIMUL_NODE")
    assert simulator.fix


def test_checks_that_do_not_run_are_one_finding():
    (finding,) = game_findings("chess", "simul.no_such_module")
    assert (finding.name, finding.fix) == ("chess", SETUP)
    assert "no_such_module" in finding.found
