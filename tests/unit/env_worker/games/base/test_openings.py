"""Evaluated games begin with drawn plies: alike from every seat, fewer where the game would end."""

from __future__ import annotations

import numpy as np
import pytest

from simul.common.config.matchups import IDENTITY_BITS, Contestant, Pairing
from simul.common.config.schema import OpponentsConfig
from simul.common.protocol.messages import DECISION
from simul.env_worker.games.base.openings import LISTED, PLIES, Openings, opening_plies
from simul.env_worker.games.base.players import RandomPlayer
from simul.env_worker.games.base.source import TurnGameSource
from simul.launch.evaluation.openings import distinct_games
from tests.support.small_games import TicTacToe
from tests.support.turn_games import HighCard, play

FIRST_LEGAL = lambda row: int(np.flatnonzero(row.mask)[0])  # noqa: E731  (a greedy policy)
GREEDY = Pairing(Contestant("a", policy="learner"), Contestant("b", policy="eval/1"), 24)


class Deterministic(TicTacToe):
    deterministic = True


def hosted(make=Deterministic, **options) -> TurnGameSource:
    given = {"envs": 3, "seed": 7, "episodes": 24, "pairings": [GREEDY], "mirror_seed": 5, "openings": "auto"}
    source = TurnGameSource(make, {"random": RandomPlayer}, opponents=OpponentsConfig(), **(given | options))
    source.start()
    return source


def games_of(source: TurnGameSource) -> set[int]:
    return {each & (1 << IDENTITY_BITS) - 1 for each in source.metrics()["game_identities"]}


def first_boards(rows) -> dict[int, list[float]]:
    """Squares of both seats at the first decision of each game, by its number."""
    starts = sorted((row for row in rows if row.step == 0), key=lambda row: row.observation[:18].sum())
    boards = {}
    for row in starts:
        own, other = row.observation[:9], row.observation[9:18]
        boards.setdefault(row.env + 3 * row.episode, [*own, *other] if row.seat == 0 else [*other, *own])
    return boards


def test_greedy_players_repeat_one_game_without_openings_and_play_many_with_them():
    without, drawn = hosted(openings=0), hosted()
    for source in (without, drawn):
        play(source, FIRST_LEGAL)
    assert len(games_of(without)) == 1
    assert without.metrics()["opening_plies"] == 0
    assert len(games_of(drawn)) > 8
    assert drawn.metrics()["opening_plies"] == PLIES


def test_both_games_of_a_pair_begin_alike_and_other_workers_draw_the_same():
    boards = first_boards(play(hosted(), FIRST_LEGAL))
    assert len(boards) == 24
    assert {sum(board) for board in boards.values()} == {PLIES - 1, PLIES}, "fewer where random turns end the game soon"
    assert all(boards[number] == boards[number + 1] for number in range(0, 24, 2))
    assert len({tuple(board) for board in boards.values()}) > 8
    later = Pairing(GREEDY.first, GREEDY.second, 6, start=18)
    others = first_boards(play(hosted(pairings=[later], episodes=6, seed=8), FIRST_LEGAL))
    assert [others[number] for number in range(6)] == [boards[number] for number in range(18, 24)]


def test_all_pairings_begin_alike_and_the_games_of_each_are_counted_alone():
    half = [Pairing(GREEDY.first, Contestant(name, policy=name), 12) for name in ("eval/1", "eval/2")]
    source = hosted(pairings=half)
    boards = first_boards(play(source, FIRST_LEGAL))
    assert [boards[number] for number in range(12)] == [boards[12 + number] for number in range(12)]
    identities = source.metrics()["game_identities"]
    counts = [distinct_games({"game_identities": identities}, pairing) for pairing in range(2)]
    assert counts[0] == counts[1] == len(games_of(source)) > 4, "equal players: the same games in both pairings"


def test_an_opening_leaves_every_seat_something_to_decide():
    rows = play(hosted(openings=9), FIRST_LEGAL)
    plies = [sum(board) for board in first_boards(rows).values()]
    assert len(plies) == 24
    assert 3 <= min(plies) <= max(plies) <= 7, "random turns have gone on for two more, and end a game after 5 to 9"
    decided = {(row.env, row.episode, row.seat) for row in rows if row.kind == DECISION}
    assert len(decided) > 40, "of 48 seats; who plays on may end a game at once"


def test_a_game_of_one_turn_for_each_seat_has_no_opening():
    rows = play(hosted(lambda: HighCard(seats=2, rounds=1), openings=4), FIRST_LEGAL)
    assert {row.observation[1] for row in rows if row.step == 0} == {0.0}


def test_replays_hold_the_opening_and_lead_to_the_same_end(tmp_path):
    from simul.common.config.schema import Config
    from simul.env_worker.games.base.replays import ReplayFolder, actions_of, game_settings, read_replay

    source = hosted(openings=9, replays=ReplayFolder(tmp_path, game_settings(Config())))
    play(source, FIRST_LEGAL)
    files = sorted(tmp_path.glob("*.json"))
    assert len(files) == 24
    drawn = {read_replay(file).drawn_plies for file in files}
    assert len(drawn) > 1, "fewer where the game would end"
    for file in files:
        replay, game = read_replay(file), Deterministic()
        plies = replay.drawn_plies
        assert [move.drawn for (move,) in replay.turns] == plies * [True] + (len(replay.turns) - plies) * [False]
        assert file.with_suffix(".txt").read_text().startswith(f"{replay.headline}\n")
        assert replay.headline.endswith(f"; the first {plies} plies were drawn")
        for turn in replay.turns:
            game.apply(actions_of(turn))
        assert not game.acting()
        assert list(game.returns()) == replay.returns


@pytest.mark.parametrize(
    ("asked", "make", "plies"), [("auto", TicTacToe, 0), (3, TicTacToe, 3), ("auto", Deterministic, 4)]
)
def test_automatic_openings_are_for_games_that_their_actions_determine(asked, make, plies):
    assert opening_plies(asked, make()) == plies


def test_only_games_that_may_repeat_are_identified():
    dealt = hosted(lambda: HighCard(seats=2))
    play(dealt, FIRST_LEGAL)
    assert "game_identities" not in dealt.metrics(), "each has cards of its own, and a report is small"


def test_training_has_openings_where_they_are_asked_for():
    for plies in (0, 3):
        rows = play(hosted(pairings=(), openings=plies), FIRST_LEGAL)
        boards = first_boards(rows).values()
        assert {sum(1 for square in board if square) for board in boards} == {plies}


def test_chance_draws_its_events_within_an_opening_as_well():
    rounds = {
        openings: play(hosted(lambda: HighCard(seats=2), openings=openings), FIRST_LEGAL) for openings in (0, 1, 2)
    }
    begun = {openings: {row.observation[1] for row in rows if row.step == 0} for openings, rows in rounds.items()}
    assert begun == {0: {0.0}, 1: {1.0}, 2: {1.0}}, "seats that act at once take a ply together, and one round is left"
    cards = [[row.observation[0] for row in rows if row.step == 0] for rows in rounds.values()]
    assert cards[0] == cards[1] == cards[2]


def test_more_games_than_a_report_holds_are_not_counted_by_halves():
    openings = Openings(4, deterministic=True)
    for number in range(LISTED + 1):
        for _ in range(2):  # a game that comes again takes no place
            openings.add(0, Deterministic(), 0, [{0: number}])
        assert len(openings.figures().get("game_identities", ())) == (number + 1 if number < LISTED else 0)
