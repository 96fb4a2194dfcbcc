"""`auto`: processes and threads for the machine. The table is that of docs/pokemon.md."""

from __future__ import annotations

import re

import pytest

from simul.common.config import automatic
from simul.common.config.automatic import settle_automatic
from simul.common.config.games import GAMES
from simul.common.config.loader import load_config
from simul.common.errors import ConfigError
from simul.common.runtime.installation import ROOT
from simul.common.runtime.machine_limits import MachineLimits

ALL = {"server": {"threads": "auto"}, "learner": {"threads": "auto"}, "workers": {"count": "auto"}}
PLENTY = 10**6


def settled(game: str, cores: float, memory_mib: float = PLENTY, **sections: dict[str, object]) -> list[object]:
    """Threads of server and learner, workers."""
    tree = {name: {**section, **sections.get(name, {})} for name, section in ALL.items()}
    tree |= {name: section for name, section in sections.items() if name not in ALL}
    settle_automatic(tree, GAMES[game], MachineLimits(cores, memory_mib))
    return [tree["server"]["threads"], tree["learner"]["threads"], tree["workers"]["count"]]


def test_the_documented_table_is_what_applies():
    page = (ROOT / "docs" / "pokemon.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    found = {int(cores): [int(number) for number in numbers] for cores, *numbers in rows}
    assert list(found) == [1, 2, 4, 16, 64]
    for cores, (server, learner, pokemon, blokus) in found.items():
        assert settled("pokemon", cores) == [server, learner, pokemon]
        assert settled("blokus", cores) == [server, learner, blokus]


def test_what_is_set_stays_and_what_others_take_is_left_to_them():
    assert settled("pokemon", 16, workers={"count": 3}) == [2, 2, 3]
    assert settled("pokemon", 16, learner={"threads": 6}) == [2, 6, 8]
    assert settled("pokemon", 16, cluster={"servers": {"count": 3}, "learner": {"ranks": 2}}) == [2, 2, 6]
    assert settled("pokemon", 3.7) == [1, 1, 2], "a quota leaves a part of a core"


def test_memory_bounds_the_workers():
    assert settled("pokemon", 64, memory_mib=16 * 1024)[2] == 20
    assert settled("pokemon", 64, memory_mib=1024)[2] == 1


def test_it_is_said_and_other_words_are_refused(monkeypatch):
    monkeypatch.setattr(automatic, "usable_machine", lambda: MachineLimits(6, 8000))
    notes: list[str] = []
    config = load_config("cartpole", ["workers.count=auto"], notes=notes)
    assert (config.workers.count, config.server.threads) == (4, 1)
    assert notes == ["auto: workers.count 4 (6 cores and 8,000 MiB may be used)"]
    with pytest.raises(ConfigError, match="expected a whole number >= 1 and <= 1024 or auto, got 'all'"):
        load_config("cartpole", ["workers.count=all"])
