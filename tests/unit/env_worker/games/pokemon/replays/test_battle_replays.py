"""Replays: one log and one page a battle."""

from __future__ import annotations

import pytest

from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.replays.battle_replays import BattleReplays
from tests.support.replays import log_of

LOG = "|player|p1|a@1|\n|player|p2|random|\n|move|p1a: X|Tackle|p2a: Y\n|win|a@1\n"


def test_a_battle_becomes_a_log_and_a_page(tmp_path):
    replays = BattleReplays(tmp_path / "replays", 3)
    replays.expect(7, ("a@1", "random"))
    assert not replays.complete
    replays.save(7, LOG)
    assert replays.complete
    page = (tmp_path / "replays" / "a@1-vs-random-3-7.html").read_text()
    assert (tmp_path / "replays" / "a@1-vs-random-3-7.log").read_text() == LOG
    assert log_of(page) == LOG
    assert "replay-embed.js" not in page


def test_the_page_may_play_with_showdowns_own_player(tmp_path):
    replays = BattleReplays(tmp_path, 3, "showdown")
    replays.expect(7, ("a@1", "random"))
    replays.save(7, LOG)
    page = (tmp_path / "a@1-vs-random-3-7.html").read_text()
    assert LOG in page
    assert "replay-embed.js" in page
    assert "{" not in page.split("<h1")[1].split("</h1>")[0], "every field is filled in"


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"folder for replays .* cannot be written"):
        BattleReplays(tmp_path / "file" / "x", 0)


def test_a_battle_whose_host_died_is_waited_for_no_longer(tmp_path):
    replays = BattleReplays(tmp_path, 0)
    replays.expect(1, ("a", "b"))
    replays.expect(2, ("a", "b"))
    replays.forget(1)
    assert not replays.complete
    replays.forget_all()
    assert replays.complete
