"""Cards of the zoo."""

from __future__ import annotations

from simul.launch.zoo.card import card_facts, card_text, played_games, strength_text

PAIR = {"second": "random", "win_rate": 0.75, "wilson_95": [0.6, 0.85], "battles": 40, "standings": {}}
SCORED = {**PAIR, "second": "rules", "win_rate": 0.5, "standings": {"first": {"mean_score": 1.25}}}


def test_pairs_become_a_table_and_the_strongest_opponent_a_word():
    results = played_games({"pairs": [PAIR, SCORED]})
    assert strength_text(results) == "won 0.500 against rules"
    assert strength_text(results, seats=3) == "scores +1.2 a game against 2 of rules"
    card = card_text("zoo:it", [("licence", "MIT\nand more")], played_games({"pairs": [PAIR]}))
    assert "- licence: MIT and more\n" in card
    assert "`simul eval --checkpoint zoo:it`" in card


def test_names_of_others_are_one_line_and_only_the_list_at_the_top_counts():
    card = card_text("it\n- licence: none\x1b", [("licence", "MIT"), ("origin", "mine")], {})
    assert card.startswith("# it - licence: none\\u001b\n\n- licence: MIT\n- origin: mine\n\n")
    assert card_facts(f"{card}- licence: stolen\n- maker: none") == {"licence": "MIT", "origin": "mine"}
    assert card_facts("# it\n\n- licence: MIT\n- licence: stolen") == {"licence": "MIT"}


def test_scores_are_a_column_where_the_game_has_them():
    card = card_text("it", [], played_games({"pairs": [SCORED]}))
    assert "| against | won | 95% | games | mean score |\n|---|---:|---:|---:|---:|\n" in card
    assert "| rules | 0.500 | [0.600, 0.850] | 40 | 1.25 |" in card
