"""Requests that say only what has changed are whole again."""

from copy import deepcopy

from simul.env_worker.games.pokemon.host.host_messages import RequestTeams

REX, ROY = {"ident": "p1: Rex", "condition": "100/100", "moves": ["pound"]}, {"ident": "p1: Roy", "condition": "50/90"}


def complete(teams: RequestTeams, pokemon: list, battle: int = 1, seat: int = 0) -> list:
    request = {"side": {"id": "p1", "pokemon": deepcopy(pokemon)}}
    teams.complete(battle, seat, request)
    return request["side"]["pokemon"]


def test_entries_are_put_together_from_the_request_before():
    teams = RequestTeams()
    assert complete(teams, [REX, ROY]) == [REX, ROY]
    hurt = {**REX, "condition": "1/100"}
    assert complete(teams, [1, [0, {"condition": "1/100"}]]) == [ROY, hurt]
    assert complete(teams, [1, 0]) == [hurt, ROY]


def test_what_has_not_changed_is_the_same_object():
    teams = RequestTeams()
    rex, roy = complete(teams, [REX, ROY])
    hurt, same = complete(teams, [[0, {"condition": "1/100"}], 1])
    assert same is roy
    assert rex["condition"] == "100/100"
    assert hurt["moves"] is rex["moves"]


def test_seats_and_battles_are_kept_apart():
    teams = RequestTeams()
    complete(teams, [REX])
    complete(teams, [ROY], seat=1)
    complete(teams, [ROY], battle=2)
    assert complete(teams, [0]) == [REX]
    assert complete(teams, [0], seat=1) == complete(teams, [0], battle=2) == [ROY]


def test_nothing_is_kept_of_a_battle_that_is_over():
    teams = RequestTeams()
    complete(teams, [REX])
    complete(teams, [ROY], battle=2)
    teams.complete(1, 0, None)
    teams.forget(2)
    assert teams._entries == {}
