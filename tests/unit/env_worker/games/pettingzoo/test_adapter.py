"""PettingZoo's environments, state by state as the library plays them; agents that leave early; what is refused."""

from __future__ import annotations

import importlib
import random
import sys
from collections import defaultdict

import numpy as np
import pytest
from gymnasium import spaces

from simul.common.config.games.pettingzoo import PettingZooConfig
from simul.common.config.schema import Config, WorkersConfig
from simul.common.config.trust import EVERYTHING
from simul.common.errors import ConfigError, EnvError
from simul.common.protocol.messages import DECISION, TERMINATED, TRUNCATED
from simul.env_worker.games.loading import build_source, game_spec
from tests.support.turn_games import any_legal, play, played_on

pytest.importorskip("pettingzoo", reason="the extra [pettingzoo] is not installed")

ZOO = "tests.support.zoo_envs"
GAMES = {  # name -> the package that it needs
    "tictactoe_v3": "pygame", "connect_four_v3": "pygame", "leduc_holdem_v4": "rlcard", "hanabi_v5": "shimmy",
}  # fmt: skip


def config(env_id: str, **kwargs) -> Config:
    return Config(
        game="pettingzoo", pettingzoo=PettingZooConfig(id=env_id, kwargs=kwargs), workers=WorkersConfig(envs=2)
    )


def builder(env_id: str, **kwargs):
    from simul.env_worker.games.pettingzoo.game import game_builder

    return game_builder(config(env_id, **kwargs), EVERYTHING)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", GAMES)
def test_games_are_those_of_the_library(name):
    """The library's own loop of `agent_iter` and `last` beside ours, by the same seeds and actions."""
    pytest.importorskip(GAMES[name], reason=f"{GAMES[name]} is not installed")
    ours = builder(f"classic.{name}")()
    theirs, draw = importlib.import_module(f"pettingzoo.classic.{name}").env(), random.Random(1)
    for seed in range(30):
        ours.reset(seed)
        theirs.reset(seed=seed)
        totals: dict[str, float] = defaultdict(float)
        for agent in theirs.agent_iter():
            observed, reward, terminated, truncated, info = theirs.last()
            totals[agent] += reward
            if terminated or truncated:
                theirs.step(None)
                continue
            (seat,) = ours.acting()
            assert theirs.possible_agents[seat] == agent
            mask = observed["action_mask"] if "action_mask" in observed else info["action_mask"]
            assert (ours.mask(seat) == mask).all()
            assert (ours.observation(seat) == np.array(observed["observation"], np.float32).reshape(-1)).all()
            assert ours.returns()[seat] == totals[agent]
            action = draw.choice(np.flatnonzero(mask).tolist())
            theirs.step(action)
            ours.apply({seat: action})
        assert ours.acting() == ()
        assert list(ours.returns()) == [totals[agent] for agent in theirs.possible_agents]


@pytest.mark.parametrize("cut", [99, 1, 0])
def test_agents_of_a_parallel_environment_leave_one_by_one(cut):
    game = builder(f"{ZOO}:Leaving", cut=cut)()
    game.reset(0)
    acting = []
    while seats := game.acting():
        acting.append(list(seats))
        assert [game.mask(seat).tolist() for seat in seats] == [[1, 0, 0, 0]] * len(seats)
        game.apply(dict.fromkeys(seats, 0))
    assert acting == [[0, 1, 2], [1, 2], [2]]
    assert list(game.returns()) == [1.0, 2.0, 3.0]
    assert game.truncated() == (cut == 0), "where none has ended"
    assert [game.seat_truncated(seat) for seat in range(3)] == [seat >= cut for seat in range(3)]
    assert [game.observation(seat).tolist() for seat in range(3)] == [[1, 0], [2, 1], [3, 2]], "what each saw last"


@pytest.mark.parametrize("cut", [0, 1])
def test_truncated_agents_end_with_their_final_observations_whatever_became_of_others(cut):
    source = build_source(
        config(f"{ZOO}:Leaving", cut=cut), index=0, episodes=2, greedy=False, record=True, trust=EVERYTHING
    )
    source.start()
    rows = play(source, any_legal(1))
    ends = {(row.env, row.seat): row for row in rows if row.kind != DECISION}
    assert [ends[0, seat].kind for seat in range(3)] == [TERMINATED if seat < cut else TRUNCATED for seat in range(3)]
    assert ends[0, 1].observation.tolist() == [2, 1]
    assert sum(row.reward for row in rows if (row.env, row.seat) == (0, 2)) == 3.0


def test_dead_agents_of_an_aec_environment_take_their_last_step_by_themselves():
    game = builder(f"{ZOO}:Turns")()
    game.reset(0)
    order = []
    while acting := game.acting():
        order.append(acting[0])
        game.apply({acting[0]: 0})
    assert order == [0, 1, 2, 0, 2, 0, 2]
    assert list(game.returns()) == [3.0, 1.0, 4.0], "what the others paid while each was there"
    assert not game.truncated()
    source = build_source(config(f"{ZOO}:Turns"), index=0, episodes=2, greedy=False, record=True, trust=EVERYTHING)
    source.start()
    rows = play(source, any_legal(1))
    assert {row.kind for row in rows if row.kind != DECISION} == {TERMINATED}
    assert [sum(row.reward for row in rows if (row.env, row.seat) == (0, seat)) for seat in range(3)] == [3.0, 1.0, 4.0]


class Continuous:
    """Builds an environment whose actions are a Box."""

    def __new__(cls):
        from tests.support.zoo_envs import Turns

        return Turns(spaces.Box(0, 1, (2,)))


@pytest.mark.parametrize(
    ("env_id", "says"),
    [
        ("classic.conect_four_v3", "no environment 'classic.conect_four_v3'; did you mean classic.connect_four_v3"),
        ("nonsense", "Expected FAMILY.NAME_vN"),
        (f"{ZOO}:Turnz", "has no function 'Turnz'; did you mean Turns"),
        (f"{__name__}:Continuous", r"has actions Box\(.*; expected gymnasium.spaces.Discrete"),
        ("builtins:dict", "makes a dict; expected a PettingZoo AECEnv or ParallelEnv"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_hosted_is_one_sentence(env_id, says, monkeypatch):
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Continuous.__module__])
    with pytest.raises(ConfigError, match=says):
        game_spec(config(env_id), trust=EVERYTHING)


def test_people_see_planes_of_zeros_and_ones_as_a_board_and_other_observations_as_numbers():
    game = builder("classic.connect_four_v3")()
    game.reset(0)
    for seat, action in ((0, 3), (1, 3), (0, 2)):
        game.apply({seat: action})
    lines = game.render(1).splitlines()
    assert lines[0] == "pettingzoo/classic.connect_four_v3, player_1 observes:"
    assert lines[1] == "  0 1 2 3 4 5 6"
    assert lines[-2:] == ["4 . . . 1 . . .", "5 . . 2 2 . . ."]
    assert game.render(0).splitlines()[-1] == "5 . . 1 1 . . ."
    hanabi = builder("classic.hanabi_v5")()
    hanabi.reset(0)
    assert "observes:\n[" in hanabi.render()


def test_a_copy_before_the_first_game_can_be_reset():
    game = builder("classic.tictactoe_v3")()
    copy = game.clone()
    copy.reset(0)
    copy.apply({0: 4})
    game.reset(0)
    assert game.mask(0).all()


def test_a_game_that_its_seed_does_not_determine_cannot_be_copied():
    game = builder(f"{ZOO}:Dice", seeded=False)()
    game.reset(5)
    played_on(game, 1)
    with pytest.raises(EnvError, match=r"cannot be copied: played again with the seed 5 .* their observations differ"):
        game.clone()


def test_an_environments_own_text_is_the_same_for_all_seats():
    game = builder(f"{ZOO}:Turns")()
    game.reset(0)
    assert game.render(0) != game.render(1)
    game._env.render_mode, game._env.render = "ansi", lambda: "all cards"
    assert game.render(0) == game.render(1) == game.render() == "all cards"


def test_an_environment_with_text_shows_it():
    pytest.importorskip("chess", reason="chess is not installed")
    game = builder("classic.chess_v6", render_mode="ansi")()
    game.reset(0)
    assert "r n b q k b n r" in game.render()
