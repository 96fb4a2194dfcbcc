"""Evaluations play every battle twice, with the seats exchanged: real battles of two bots."""

from __future__ import annotations

from typing import Any

import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.matchups import Contestant, Pairing
from simul.common.config.trust import EVERYTHING
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.source import matchmaking as battle_module
from tests.support.battles import make_source, seated

TEAMS = ROOT / "tests" / "golden" / "pokemon" / "teams"
BOTS = (Contestant("strong", bot="max_base_power"), Contestant("random", bot="random"))


class Diary:
    """Who was given which team in which seat, battle after battle, and what the host was told of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.teams: list[dict[str, tuple[str, Any]]] = []  # of a battle: bot -> seat, team
        self.seeds: list[tuple[Any, ...]] = []
        make, start = battle_module.ScriptedPlayer, NodeHost.start_battle

        def make_player(kind: str, doubles: bool):
            player = make(kind, doubles)
            monkeypatch.setattr(player, "choose", self._witnessed(kind, player.choose), raising=False)
            return player

        def start_battle(host, number, battle_format, how):
            self.teams.append({})
            self.seeds.append((how.seed, how.team_seeds, how.teams))
            start(host, number, battle_format, how)

        monkeypatch.setattr(battle_module, "ScriptedPlayer", make_player)
        monkeypatch.setattr(NodeHost, "start_battle", start_battle)

    def _witnessed(self, kind: str, choose):
        def witness(battle, request, seed):
            team = [(mon["details"], mon["moves"], mon["item"]) for mon in request["side"]["pokemon"]]
            self.teams[-1].setdefault(kind, (battle.player_role, team))
            return choose(battle, request, seed)

        return witness


def play(battles: int, config: PokemonConfig, *, index: int = 0, start: int = 0, mirrored: bool = True) -> dict:
    pairing = Pairing(*BOTS, battles, start, mirrored)
    options = {"envs": 1, "seed": 3 + index, "index": index, "mirror_seed": 11}
    return seated(make_source(config, episodes=battles, pairings=[pairing], **options))[1]


@pytest.mark.parametrize(
    "config",
    [PokemonConfig(format="gen1randombattle"), PokemonConfig(format="gen9ou", teams=str(TEAMS / "gen9ou.txt"))],
)
def test_the_same_battle_from_both_sides(config, monkeypatch):
    diary = Diary(monkeypatch)
    metrics = play(5, config)
    first, second, third, fourth, _ = diary.teams
    for one, other in ((first, second), (third, fourth)):
        assert {bot: seat for bot, (seat, _) in one.items()} == {"max_base_power": "p1", "random": "p2"}
        assert {bot: seat for bot, (seat, _) in other.items()} == {"max_base_power": "p2", "random": "p1"}
        assert one["max_base_power"][1] == other["random"][1]
        assert one["random"][1] == other["max_base_power"][1]
    assert diary.seeds[0] == diary.seeds[1] != diary.seeds[2] == diary.seeds[3] != diary.seeds[4]
    assert sum(metrics["mirrored"]["0"].values()) == 2, "the fifth has no counterpart"
    wins = sum(int(wins) * count for wins, count in metrics["mirrored"]["0"].items())
    assert 0 <= sum(tally["wins"] for tally in metrics["results"].values()) - wins <= 1


def test_with_teams_of_the_opponents_each_contestant_keeps_its_own(monkeypatch):
    diary = Diary(monkeypatch)
    config = PokemonConfig(
        format="gen9ou",
        teams="tests.support.pokemon.teambuilders:Alternating",
        opponent_teams=str(TEAMS / "gen9ou.txt"),
        max_turns=3,
    )
    pairing = Pairing(*BOTS, 3)
    seated(make_source(config, envs=1, seed=3, episodes=3, pairings=[pairing], trust=EVERYTHING))
    one, other, next_pair = diary.teams
    for bot in ("max_base_power", "random"):
        assert sets(one[bot]) == sets(other[bot])
        assert one[bot][0] != other[bot][0]
    assert sets(next_pair["max_base_power"]) != sets(one["max_base_power"]), "the Teambuilder alternates"


def sets(found: tuple[str, Any]) -> list[Any]:
    """Moves and items of a team, without the genders that the battle draws seat by seat."""
    return [mon[1:] for mon in found[1]]


@pytest.mark.slow  # .ci/long runs it
def test_every_worker_has_battles_of_its_own_which_do_not_depend_on_their_number(monkeypatch):
    diary = Diary(monkeypatch)
    config = PokemonConfig(format="gen1randombattle", max_turns=3)
    play(4, config)
    play(2, config, index=1, start=2)
    assert diary.seeds[4:] == diary.seeds[2:4]
    metrics = play(2, config, mirrored=False)
    assert diary.seeds[6] != diary.seeds[7]
    assert metrics["mirrored"] == {}
