"""The agent on a real Showdown server, asking a real inference server, against poke-env's own players."""

from __future__ import annotations

import json

import pytest
from poke_env.player import ForfeitBattleOrder, RandomPlayer, SimpleHeuristicsPlayer
from poke_env.teambuilder import Teambuilder

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.trust import EVERYTHING
from simul.common.protocol.decisions import Decision
from simul.common.protocol.messages import ABORTED, DECISION, TERMINATED
from simul.common.role.lifecycle import StopFlag
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.env_worker.games.pokemon.formats.team_draws import TeamList
from simul.env_worker.games.pokemon.play import agent as agent_module
from simul.env_worker.games.pokemon.play.agent import AgentPlayer, DrawnTeams
from simul.env_worker.games.pokemon.play.challenges import PlayEnded
from simul.env_worker.games.pokemon.play.play import report
from simul.env_worker.games.pokemon.source.own_code import observed_spec, own_code
from tests.support.playing import playing
from tests.support.replayed import compare_with_training
from tests.support.showdown import on_loop
from tests.support.stand import Stand
from tests.support.waiting import PATIENCE_SEC

DOUBLES, VGC = "gen9randomdoublesbattle", "gen9championsvgc2026regmb"


def test_battles_at_once_are_sessions_of_their_own_and_their_replays_are_kept(server, stand, tmp_path, monkeypatch):
    monkeypatch.setattr(agent_module, "FINISHED_KEPT", 1)
    foe = server.player(SimpleHeuristicsPlayer, "Heuristics 1")
    with playing(server, stand, "Agent 1", replays=str(tmp_path)) as (agent, bridge, table):
        challenges = on_loop(foe._send_challenges("Agent 1", 4, agent.ps_client.logged_in))
        table.serve(agent.accept(4), StopFlag())
        challenges.result(PATIENCE_SEC)
    assert sum(agent.tally.values()) == 4
    assert (agent.tally["losses"], agent.tally["wins"]) == (foe.n_won_battles, foe.n_lost_battles)
    assert agent.given_up == agent.defaulted == 0
    sessions: dict[int, list[Decision]] = {}
    for decision in bridge.asked:
        sessions.setdefault(decision.env, []).append(decision)
    assert len(sessions) == 4
    for decisions in sessions.values():
        first, *middle, end = decisions
        assert (first.step, first.attempt) == (0, 0)
        assert all(d.kind == DECISION for d in middle)
        assert (end.kind, end.step) == (TERMINATED, middle[-1].step + 1)
    assert 2 <= _most_at_once(bridge.asked) <= 4
    replays = list(tmp_path.glob("*.html"))
    assert len(replays) == 4
    assert len(agent.battles) == 1, "battles that are over are forgotten: memory does not grow with their number"
    assert all("|win|" in replay.read_text() and "|turn|2" in replay.read_text() for replay in replays)


class Quitter(RandomPlayer):
    """Forfeits every other battle."""

    def choose_move(self, battle):
        number = list(self.battles).index(battle.battle_tag)
        return ForfeitBattleOrder() if number % 2 else super().choose_move(battle)


def test_forfeited_battles_are_not_in_the_win_rate(server, stand):
    foe = server.player(Quitter, "Quitter 1")
    with playing(server, stand, "Agent Quit") as (agent, _, table):
        accepted = on_loop(foe._accept_challenges(None, 4, None))
        table.serve(agent.challenge("Quitter 1", 4), StopFlag())
        accepted.result(PATIENCE_SEC)
        lines = report(agent, as_json=False).splitlines()
        result = json.loads(report(agent, as_json=True))
    assert (sum(agent.tally.values()), dict(agent.early)) == (2, {"wins": 2})
    assert lines[1].startswith("2 more ended by forfeit or inactivity: 2 wins, 0 losses; with them the win rate is ")
    assert (result["battles"], result["early_wins"], result["early_losses"]) == (2, 2, 0)
    assert result["win_rate"] == result["wins"] / 2
    assert result["win_rate_with_early"] == (result["wins"] + 2) / 4


class Turn:
    """An observation of the user's."""

    size = 1

    def embed_battle(self, battle):
        return [battle.turn]


def test_an_observation_of_ones_own_is_seen_in_rooms_too(server):
    config = PokemonConfig(observation="tests.integration.pokemon.test_play:Turn", builtin_observation=False)
    own = own_code(config, EVERYTHING)
    foe = server.player(RandomPlayer, "Random Own")
    with (
        Stand(observed_spec(config, EVERYTHING)) as stand,
        playing(server, stand, "Agent Own", own=own) as (agent, bridge, table),
    ):
        accepted = on_loop(foe._accept_challenges(None, 1, None))
        table.serve(agent.challenge("Random Own", 1), StopFlag())
        accepted.result(PATIENCE_SEC)
    assert sum(agent.tally.values()) == 1
    turns = [int(d.observation[0]) for d in bridge.asked if d.kind == DECISION]
    assert turns == sorted(turns)
    assert turns[-1] > 3


@pytest.fixture(scope="module")
def doubles_stand():
    with Stand(pokemon_spec(PokemonConfig(format=DOUBLES))) as running:
        yield running


@pytest.mark.slow  # .ci/long runs it
def test_doubles_are_two_decisions_and_seen_as_in_training(server, doubles_stand):
    foe = server.player(RandomPlayer, "Random Pair", battle_format=DOUBLES)
    with playing(server, doubles_stand, "Agent Pair", battle_format=DOUBLES) as (agent, bridge, table):
        accepted = on_loop(foe._accept_challenges(None, 2, None))
        table.serve(agent.challenge("Random Pair", 2), StopFlag())
        accepted.result(PATIENCE_SEC)
    assert (sum(agent.tally.values()), agent.defaulted) == (2, 0)
    compared = 0
    for env, tag in enumerate(agent.battles):
        asked = [d for d in bridge.asked if d.env == env and d.kind == DECISION]
        compared += compare_with_training(server.battle_log(tag), "Agent Pair", asked, bridge.chosen, DOUBLES)
    assert compared > 30


def test_of_a_vgc_team_four_are_picked(server, doubles_stand):
    team = (ROOT / "tests" / "golden" / "pokemon" / "teams" / f"{VGC}.txt").read_text().split("===")[-1]
    teams = TeamList([Teambuilder.join_team(Teambuilder.parse_showdown_team(team))])
    foe = server.player(RandomPlayer, "Random Four", battle_format=VGC, team=DrawnTeams(teams))
    with playing(server, doubles_stand, "Agent Four", battle_format=VGC, teams=teams) as (agent, bridge, table):
        challenges = on_loop(foe._send_challenges("Agent Four", 1, agent.ps_client.logged_in))
        table.serve(agent.accept(1), StopFlag())
        challenges.result(PATIENCE_SEC)
    assert (sum(agent.tally.values()), agent.defaulted) == (1, 0)
    picks = [d for d in bridge.asked if d.kind == DECISION][:4]
    assert [int(d.mask[1:7].sum()) for d in picks] == [6, 5, 4, 3]


def _most_at_once(asked: list[Decision]) -> int:
    most, running = 0, set()
    for decision in asked:
        (running.add if decision.kind == DECISION else running.discard)(decision.env)
        most = max(most, len(running))
    return most


def test_a_forgotten_session_begins_anew_and_the_battle_goes_on(server, stand):
    foe = server.player(RandomPlayer, "Random 3")
    with playing(server, stand, "Agent 3") as (agent, bridge, table):
        accepted = on_loop(foe._accept_challenges(None, 1, None))
        done: list[Decision] = []

        class Forgetful(StopFlag):
            def __bool__(self) -> bool:
                if not done and len(bridge.asked) > 5:
                    done.append(bridge.asked[-1])
                    key = {name: getattr(done[0], name) for name in ("env", "seat", "episode")}
                    table._client.submit([Decision(**key, step=done[0].step + 1, kind=ABORTED)])  # behind its back
                return False

        table.serve(agent.challenge("Random 3", 1), Forgetful())
        accepted.result(PATIENCE_SEC)
    assert done
    assert sum(agent.tally.values()) == 1
    episodes = [d.episode for d in bridge.asked]
    assert set(episodes) == {0, 1}
    again = next(d for d in bridge.asked if d.episode == 1)
    assert (again.step, bool(again.flags)) == (0, True), "the first decision of the new session opens it"


def test_whoever_turns_us_down_is_named(server, stand):
    with playing(server, stand, "Agent 4") as (agent, _, table), pytest.raises(PlayEnded, match="Nobody at all"):
        table.serve(agent.challenge("Nobody at all", 1), StopFlag())


def test_a_name_that_is_taken_is_said(server, stand):
    with playing(server, stand, "Agent 5") as (first, _, _):
        on_loop(_logged_in(first)).result(PATIENCE_SEC)
        with playing(server, stand, "Agent 5") as (second, _, table), pytest.raises(PlayEnded, match="another --user"):
            table.serve(second.accept(1), StopFlag())


async def _logged_in(agent: AgentPlayer) -> None:
    await agent.ps_client.logged_in.wait()
