"""Results of pairs in a file: they add up, only alike games count together, and a file of others is only numbers."""

from __future__ import annotations

import json

import msgspec
import pytest

from simul.common.errors import ConfigError
from simul.launch.ratings import pair_results
from simul.launch.ratings.elo import elo_ratings
from simul.launch.ratings.league_file import read_league
from simul.launch.ratings.pair_results import (
    PairResult,
    PairResults,
    add_result,
    payoffs,
    rate,
    read_results,
)

HERE, ELSEWHERE = "0" * 16, "1" * 16
NAMES = {"a": "past/1", "b": "past/2", "c": "random", "d": "largest", "e": "mcts"}


def pair(first: str, second: str, wins: int, losses: int, settings: str = HERE, **further) -> PairResult:
    games = wins + losses
    return PairResult(
        first, second, settings, 2, games, wins, losses, 0, 0, **{"beaten": float(wins), **further}
    )  # fmt: skip


def results(*pairs: PairResult) -> PairResults:
    found = PairResults()
    for each in pairs:
        found = found.with_pair({key: NAMES.get(key, key) for key in (each.first, each.second)}, each)
    return found


def test_games_of_a_pair_add_up_under_the_same_settings_only(tmp_path):
    file = tmp_path / "league.json"
    labels = {"a": "past/1", "b": "past/2"}
    add_result(file, labels, pair("a", "b", 6, 4, groups={"1": 4, "2": 1}))
    add_result(file, labels, pair("a", "b", 0, 10, ELSEWHERE))
    add_result(file, labels, pair("a", "b", 5, 1, groups={"2": 2, "1": 1}))
    kept = read_results(file)
    (known,) = kept.of(HERE)
    assert (known.wins, known.losses, known.scheduled, known.beaten) == (11, 5, 16, 11.0)
    assert known.groups == {"1": 5, "2": 3}
    assert kept.between("b", "a", HERE) == known
    assert kept.of(ELSEWHERE) == [pair("a", "b", 0, 10, ELSEWHERE)]
    assert [path.name for path in tmp_path.iterdir()] == ["league.json"]


def test_the_interval_of_games_from_drawn_openings_goes_over_their_groups():
    groups = {"0": 25, "2": 25}  # both games of each opening end alike: 50 independent results
    assert pair("a", "b", 50, 50, openings=4, groups=groups).effective_games == 50
    assert pair("a", "b", 50, 50, groups=groups).effective_games == 100
    repeated = pair("a", "b", 50, 50, groups=groups, distinct=2)
    assert (repeated.effective_games, repeated.plus(repeated).distinct) == (2, 2), "the same two again"
    assert repeated.plus(pair("a", "b", 3, 0)).distinct == 3, "as many as can differ where it is not known"
    drawn = pair("a", "b", 50, 50, openings=4, groups=groups, distinct=90)
    assert drawn.plus(drawn).distinct == 180, "further openings are others"
    assert pair("a", "b", 3, 0).plus(pair("a", "b", 3, 0)).distinct == 0


def test_ratings_are_those_of_all_pairs_that_hang_together():
    kept = results(
        pair("a", "b", 30, 10), pair("b", "c", 25, 15), pair("d", "e", 9, 1), pair("a", "c", 0, 9, ELSEWHERE)
    )
    found, apart, _ = rate(kept, HERE, ["b"])
    assert apart == ["largest", "mcts"]
    alone = elo_ratings(
        ["past/1", "past/2", "random"], [("past/1", "past/2", 40, 0.75), ("past/2", "random", 40, 0.625)]
    )
    assert [(each["label"], each["elo"]) for each in found] == [
        (each["label"], pytest.approx(each["elo"])) for each in alone
    ]
    assert [(each["key"], each["games"]) for each in found] == [("a", 40), ("b", 80), ("c", 40)]
    unplayed = elo_ratings(["a", "b", "never"], [("a", "b", 40, 0.75), ("a", "never", 0, 0.0)])
    assert [each["label"] for each in unplayed] == ["a", "b"]


def test_the_newest_pair_says_which_settings_are_shown(tmp_path):
    for each in (pair("a", "b", 9, 1), pair("a", "c", 9, 1, ELSEWHERE)):
        add_result(tmp_path / "league.json", {key: NAMES[key] for key in (each.first, each.second)}, each)
    assert [each["label"] for each in read_league(tmp_path).best_first] == ["past/1", "random"]


def test_the_matrix_has_the_asked_contestants_only():
    kept = results(pair("a", "b", 30, 10), pair("b", "c", 25, 15))
    matrix = payoffs(kept, HERE, ["b", "a"], ["then", "now"])
    assert [each["label"] for each in matrix["contestants"]] == ["then", "now"]
    ((first, second, wins, battles),) = [
        (each["first"], each["second"], each["wins"], each["battles"]) for each in matrix["pairs"]
    ]
    assert (first, second, wins, battles) == ("now", "then", 30, 40)


def test_of_too_many_those_are_rated_that_played_last(monkeypatch):
    monkeypatch.setattr(pair_results, "MOST_CONTESTANTS", 3)
    many = results(*(pair(f"k{n}", f"k{n + 1}", 1, 1) for n in range(5)))
    found, apart, older = rate(many, HERE)
    assert ({each["key"] for each in found}, apart, older) == ({"k3", "k4", "k5"}, [], 3)
    found, apart, older = rate(many, HERE, ["k1", "k2"])
    assert ({each["key"] for each in found}, apart, older) == ({"k1", "k2"}, ["k4"], 3)


def changed(**changes) -> str:
    plain = msgspec.to_builtins(results(pair("a", "b", 6, 4, groups={"1": 4, "2": 1})))
    plain["pairs"][0] |= changes
    return json.dumps(plain)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "truncated"),
        ("[" * 100_000, ""),
        ("[]", "Expected `object`"),
        ('{"format": "another"}', "Invalid enum value"),
        (changed(wins=-1), ">= 0"),
        (changed(wins=1 << 80), ""),
        (changed(beaten=10.5), "the games of a pair do not add up"),
        (changed(scheduled=3), "the games of a pair do not add up"),
        (changed(groups={"1": 6}), "the groups of a pair do not add up"),
        (changed(groups={"3": 1}), "the groups of a pair do not add up"),
        (changed(second="z"), "not of two contestants that it names"),
        (changed(second="a"), "not of two contestants that it names"),
        (changed(settings="x"), "regex"),
        (changed(run="rm"), "unknown field"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path, content, words):
    file = tmp_path / "league.json"
    file.write_text(content)
    with pytest.raises(ConfigError, match=rf"does not hold results of pairs, .*{words}.*\. Move it away") as refused:
        read_results(file)
    assert "\n" not in str(refused.value)


def test_a_pair_that_is_there_twice_is_refused(tmp_path):
    file = tmp_path / "league.json"
    plain = msgspec.to_builtins(results(pair("a", "b", 6, 4)))
    plain["pairs"].append({**plain["pairs"][0], "first": "b", "second": "a"})
    file.write_text(json.dumps(plain))
    with pytest.raises(ConfigError, match="a pair is there twice"):
        read_results(file)


def test_a_file_that_cannot_be_written_is_a_sentence(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere/elo\.json cannot be written: No such file"):
        add_result(tmp_path / "nowhere" / "elo.json", NAMES, pair("a", "b", 1, 1))
