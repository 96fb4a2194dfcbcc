"""Battles that are watched while they run, on the real simulator."""

from __future__ import annotations

import re

import numpy as np

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.protocol.messages import DECISION
from tests.support.battles import Table, make_source


def play(source, see):
    """All battles; `see` is called with each decision before it is answered."""
    source.start()
    try:
        table = Table(source)
        poll = source.poll

        def seen():
            decisions = poll()
            for decision in decisions:
                if decision.kind == DECISION:
                    see(decision)
            return decisions

        source.poll = seen
        while not source.idle():
            table.turn()
    finally:
        source.close()


def test_the_log_of_a_watched_battle_is_there_at_each_of_its_decisions():
    source = make_source(envs=2, episodes=6)
    source.spectate(1)
    seen, names = [], set()

    def see(decision):
        lines = source.position(decision.env).battle
        assert bool(lines) == (decision.env == 1)
        if decision.env == 1:
            seen.append((decision.episode, int(([0, *re.findall(r"\|turn\|(\d+)", lines)])[-1])))
            names.update(source.action_name(1, decision.seat, each) for each in np.flatnonzero(decision.mask))

    play(source, see)
    assert {0, 1} <= {episode for episode, _ in seen}, "from the first decision of each battle on"
    assert seen == sorted(seen)
    assert seen[-1][1] > 5
    assert any(re.fullmatch(r"switch to [a-z0-9]+", name) for name in names)
    assert any(re.fullmatch(r"[a-z0-9]+ \+ tera", name) for name in names)


def test_a_battle_is_watched_from_the_middle_and_no_more():
    source = make_source(envs=1, episodes=1)
    source.start()
    try:
        table = Table(source)
        while table.decisions < 10:
            table.turn()
        assert source.position(0).battle == ""
        source.spectate(0)
        while not source.position(0).battle and not source.idle():
            table.turn()
        assert source.position(0).battle.startswith("|")
        source.spectate(None)
        logs = []
        for _ in range(3):
            wanted = table.decisions + 6
            while table.decisions < wanted and not source.idle():
                table.turn()
            logs.append(source.position(0).battle)
        assert logs[1] == logs[2], "what was on its way has come"
    finally:
        source.close()


def test_each_action_of_doubles_has_a_name_of_its_own():
    source = make_source(PokemonConfig(format="gen9randomdoublesbattle"), envs=1, episodes=1)
    found = set()

    def see(decision):
        legal = np.flatnonzero(decision.mask)
        names = {source.action_name(0, decision.seat, action) for action in legal}
        assert len(names) == len(legal), names
        found.update(names)

    play(source, see)
    one = r"(pass|switch to [a-z0-9]+|[a-z0-9]+( \+ tera)?( at (foe [ab]( [a-z0-9]+)?|partner [a-z0-9]+|itself))?)"
    assert [name for name in found if not re.fullmatch(rf"slot a: {one}(; slot b: {one})?", name)] == []
    assert any("; slot b: " in name and " at foe b " in name for name in found)
