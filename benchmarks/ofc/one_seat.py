"""A TurnGame as a gymnasium env of one seat: the others are scripted players. This is how people train OFC with SB3."""

from __future__ import annotations

import random
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from simul.common.config.loader import load_config
from simul.env_worker.games.base.players import RandomPlayer
from simul.env_worker.games.base.turn_game import CHANCE, Player, TurnGame
from simul.env_worker.games.loading import turn_game
from simul.env_worker.games.ofc.players import FantasyRulesPlayer, RulePlayer

OPPONENTS: dict[str, type[Player]] = {
    "random": RandomPlayer,
    "rule_based": RulePlayer,
    "fantasy_rules": FantasyRulesPlayer,
}


class OneSeat(gymnasium.Env):
    """The learner's seat moves on by one from episode to episode.

    A seat may have no decision left while the game goes on, as in Fantasyland: the episode's last step plays on to the
    end of the game.

    Args:
        opponent: plays each of the other seats.
        reward_scale: factor of the rewards, which are those of `learned_returns`.
    """

    def __init__(self, game: TurnGame, opponent: Player, reward_scale: float = 1.0) -> None:
        spec = game.spec
        self.observation_space = spaces.Box(-np.inf, np.inf, (spec.observation_size,), spec.dtype().type)
        self.action_space = spaces.Discrete(spec.num_actions)
        self._game = game
        self._opponent = opponent
        self._reward_scale = reward_scale
        self._draw = random.Random(0)
        self._seat = -1
        self._paid = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """A new game, played to the learner's first decision; one without any is passed over."""
        super().reset(seed=seed)
        if seed is not None:
            self._draw = random.Random(seed)
        while True:
            self._seat = (self._seat + 1) % self._game.spec.seats
            self._game.reset(self._draw.getrandbits(31))
            self._paid = 0.0
            self._play_others()
            if self._game.acting():
                return self._game.observation(self._seat), {}

    def step(self, action: int) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """The learner's action, then the others' up to its next decision or the end of the game."""
        self._game.apply({self._seat: int(action)})
        self._play_others()
        over = not self._game.acting()
        total = float(self._game.learned_returns()[self._seat])
        reward, self._paid = (total - self._paid) * self._reward_scale, total
        truncated = over and self._game.truncated()
        return self._game.observation(self._seat), reward, over and not truncated, truncated, {}

    def action_masks(self) -> NDArray[np.bool_]:
        """bool [A], True = legal; all of them where the game is over."""
        if not self._game.acting():
            return np.ones(self._game.spec.num_actions, np.bool_)
        return self._game.mask(self._seat).astype(np.bool_)

    def _play_others(self) -> None:
        game = self._game
        while (acting := game.acting()) and acting[0] != self._seat:
            if acting[0] == CHANCE:
                game.apply({CHANCE: game.draw_chance(self._draw)})
            else:
                game.apply({acting[0]: self._opponent.choose(game, acting[0], self._draw)})


def make_ofc(opponent: str) -> OneSeat:
    """Open Face Chinese as configs/ofc.yaml sets it: the same rules, observations, masks and rewards as ours."""
    config = load_config("ofc")
    return OneSeat(turn_game(config)(), OPPONENTS[opponent](), config.ofc.reward_scale)
