"""A source's counters, and the metrics made of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from simul.env_worker.games.base.scoreboard import GameCounters
from simul.env_worker.games.pokemon.host.host_messages import Played
from simul.env_worker.games.pokemon.source.rewards import PARTS
from simul.env_worker.recent_episodes import Episode


class Scoreboard(GameCounters):
    """Counters since start; `metrics` makes plain numbers and dicts of them."""

    def __init__(self, own_part: str = "") -> None:
        """`own_part`: name of the user's reward, where there is one."""
        super().__init__()
        self._own_part = own_part
        self.own_reward = 0.0
        self.turns = 0
        self.redos = 0
        self.invalid_choices = 0
        self.bad_actions = 0
        self.scripted_decisions = 0
        self.scripted_defaults = 0
        self.scripted_replaced = {"raised": 0, "invalid": 0}
        self.turn_limit_ties = 0
        self.previews = 0
        self.parse_errors: Counter[str] = Counter()
        self.reward_parts = [0.0] * len(PARTS)

    def finish(
        self, opponent: str, outcome: int | None, turns: int, episode: Episode | None = None, past_self: str = ""
    ) -> None:
        """A battle was played out or truncated, as for `count_game`, after so many turns."""
        self.turns += turns
        self.count_game(opponent, outcome, episode, past_self)

    def replace_scripted(self, why: str, said: str) -> None:
        """A scripted player's choice was replaced by a random legal one: `why` is raised or invalid."""
        self.scripted_replaced[why] += 1
        if self.scripted_replaced[why] == 1:
            self.events.append(
                f"a random legal choice took the place of a scripted player's ({why}: {said}); later ones are counted"
            )

    def count_played(self, played: Played) -> None:
        """What bots of the host did; for a refused answer the simulator chose."""
        self.scripted_decisions += played.decisions
        self.scripted_defaults += played.refused
        self.scripted_replaced["invalid"] += played.refused
        self.previews += played.previews

    def metrics(self, alive: int) -> dict[str, Any]:
        """started = finished + aborted + alive; truncated and ties are among the finished."""
        metrics = super().metrics(alive)
        metrics["episodes"]["turn_limit_ties"] = self.turn_limit_ties
        return {
            **metrics,
            "turns": self.turns,
            "redos": self.redos,
            "invalid_choices": self.invalid_choices,
            "bad_actions": self.bad_actions,
            "scripted": {
                "decisions": self.scripted_decisions,
                "defaults": self.scripted_defaults,
                **self.scripted_replaced,
            },
            "team_previews": self.previews,
            "parse_errors": dict(self.parse_errors),
            "reward_parts": dict(zip(PARTS, self.reward_parts))
            | ({self._own_part: self.own_reward} if self._own_part else {}),
        }
