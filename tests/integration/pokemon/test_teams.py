"""The real validator, and a format that is played with team files and team preview."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.schema import OpponentsConfig
from simul.common.config.trust import EVERYTHING
from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.formats.team_draws import TeamDraws, check_battles
from simul.env_worker.games.pokemon.formats.teams import TeamText, legal_teams
from simul.env_worker.games.pokemon.opponents.scripted import ScriptedChoice, ScriptedPlayer
from simul.env_worker.games.pokemon.tables.layout import GLOBAL_WIDTH, PREVIEW, width
from tests.support.battles import check_accounts, make_source, played

BUILDERS = "tests.support.pokemon.teambuilders"
FOLDER = Path(__file__).parents[2] / "golden" / "pokemon" / "teams"
TEAMS = FOLDER / "gen9ou.txt"
BSS = partial(PokemonConfig, format="gen9bssregi", teams=str(FOLDER / "gen9bssregi.txt"), max_turns=60)
MANY = ("Mew", "Eevee", "Ditto", "Snorlax", "Absol", "Pikachu", "Onix")
PICKS = 3  # decisions that a team preview of gen9bssregi takes


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"format": "gen9randombatle"}, "did you mean gen9randombattle"),
        ({"format": "gen9RandomBattle"}, "'gen9RandomBattle' 'gen9randombattle'; write it so"),
        ({"format": "gen7ag", "teams": str(TEAMS)}, "'gen7ag' 'gen7anythinggoes'; write it so"),
        ({"format": "gen9randombattle@@@Inverse Moon"}, "custom rules that the simulator refuses: Unrecognized rule"),
        ({"format": "gen9metronomebattle", "teams": str(TEAMS)}, "its name does not say"),
        ({"format": "gen5triplescustomgame"}, "neither in singles nor in doubles"),
        ({"format": "gen6randombattleb12p6noteampreview"}, "teams of more than six Pokemon"),
        ({"format": "gen9chatbats"}, "species of its own"),
        ({"format": "gen9ou"}, r"pokemon\.teams"),
        ({"format": "gen8ou", "teams": str(TEAMS)}, "Great Tusk"),
        # Its rules use a global of Showdown's.
        ({"format": "gen9inheritance", "teams": str(TEAMS)}, "Dragapult is banned"),
        ({"format": "gen9randombattle", "teams": str(TEAMS)}, "no effect"),
        ({"format": "gen9randombattle", "opponent_teams": str(TEAMS)}, r"pokemon\.opponent_teams would have no effect"),
        ({"format": "gen9randombattle", "teams": f"{BUILDERS}:Alternating"}, r"pokemon\.teams would have no effect"),
        ({"format": "gen9ou", "teams": f"{BUILDERS}:Illegal"}, "Illegal: .*Mewtwo"),
    ],
)
def test_what_cannot_be_played_is_one_sentence(host, settings, words):
    with pytest.raises(ConfigError, match=words):
        TeamDraws.opened(PokemonConfig(**settings), host, EVERYTHING)


def test_before_a_run_a_simulator_of_its_own_checks_the_battles():
    check_battles(PokemonConfig())
    with pytest.raises(ConfigError, match=r"pokemon\.teams"):
        check_battles(PokemonConfig(format="gen9ou"))


@pytest.mark.parametrize(
    ("team", "words"),
    [
        ([f"{name}\n- Tackle" for name in MANY], "my.txt: it has 7 Pokemon, 6 can be observed"),
        (["Mew\n- Tackle\n- Splash\n- Surf\n- Growl\n- Leer"], "my.txt: Mew has 5 moves, 4 can be chosen"),
        (
            ["Rotom-Wash\n- Surf", "Rotom-Heat\n- Surf"],
            "my.txt: two of its Pokemon are called Rotom.*give one a nickname",
        ),
        (["Rex (Mew)\n- Surf", "Rex (Ditto)\n- Surf"], "my.txt: two of its Pokemon are called Rex"),
    ],
)
def test_a_team_that_no_observation_describes_is_refused(host, team, words):
    """Custom games allow 24 Pokemon and 24 moves."""
    with pytest.raises(ConfigError, match=words):
        legal_teams(host, "gen9customgame", [TeamText("my.txt", "\n\n".join(team))])


def test_two_of_a_species_may_have_names_of_their_own(host):
    assert len(legal_teams(host, "gen9customgame", [TeamText("my.txt", "Rex (Mew)\n- Surf\n\nMew\n- Surf")])) == 1


def test_every_seat_picks_its_team_first():
    rows, metrics = played(make_source(BSS(), envs=3, episodes=3))
    check_accounts(metrics)
    assert metrics["episodes"]["finished"] == 3
    assert metrics["team_previews"] == 6
    assert metrics["invalid_choices"] == metrics["bad_actions"] == 0
    assert metrics["parse_errors"] == {}
    start = GLOBAL_WIDTH - width(PREVIEW)
    previews = {key for key, row in rows.items() if np.frombuffer(row, np.float16)[start]}
    assert previews == {(env, seat, 0, step, 0) for env in range(3) for seat in (0, 1)
                        for step in range(PICKS)}  # fmt: skip


def test_scripted_opponents_answer_the_preview():
    kinds = ("random", "max_base_power", "simple_heuristics")
    opponents = OpponentsConfig(self_play=0.0, **dict.fromkeys(kinds, 1 / 3))
    rows, metrics = played(make_source(BSS(), opponents, envs=3, episodes=6, record=False))
    assert rows
    battles = {kind: sum(tally.values()) for kind, tally in metrics["results"].items()}
    assert (battles.keys(), sum(battles.values())) == (set(kinds), 6)
    assert metrics["team_previews"] == 12
    assert metrics["scripted"]["invalid"] == 0


@pytest.mark.parametrize(
    "config",
    [BSS(), PokemonConfig(format="gen9randomdoublesbattle"),
     PokemonConfig(format="gen9vgc2025regi", teams=str(FOLDER / "gen9bssregi.txt"))],
    ids=lambda config: config.format,
)  # fmt: skip
def test_choices_that_a_scripted_player_cannot_make_are_replaced_by_random_legal_ones(config, monkeypatch):
    asked = Counter()

    def choose(player, battle, request, seed):
        """By turns raises and chooses what is illegal."""
        why = ("raised", "invalid")[asked.total() % 2]
        asked[why] += 1
        if why == "raised":
            raise IndexError("of poke-env")
        return ScriptedChoice("move 9")

    monkeypatch.setattr(ScriptedPlayer, "_chosen", choose)
    opponents = OpponentsConfig(self_play=0.0, simple_heuristics=1.0)
    _, metrics = played(make_source(config, opponents, envs=3, episodes=3, record=False))
    assert asked.total() > 15
    assert metrics["scripted"] == {"decisions": asked.total(), "defaults": 0, **asked}
    for why in asked:
        assert sum(f"({why}: " in event for event in metrics["events"]) == 1
