"""Seats the battles of an evaluation: pairing after pairing, instead of drawing an opponent for each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from simul.common.config.matchups import Contestant, Pairing, result_key
from simul.common.config.schema import OpponentsConfig
from simul.env_worker.games.pokemon.source.matchmaking import LiveBattle, Matchmaker
from simul.env_worker.games.pokemon.source.policy_seat import PolicySeat
from simul.env_worker.games.pokemon.source.scripted_seat import ScriptedSeat


class ScheduledMatchmaker(Matchmaker):
    """Battle number n of the source is the n-th of all pairings. The outcome that counts is `first`'s.

    `mirror_seed`: of mirrored battles, whichever worker plays them, the same for all pairings.
    """

    def __init__(self, pairings: Sequence[Pairing], mirror_seed: str, **options: Any) -> None:
        super().__init__(OpponentsConfig(), **options)
        self._mirror_seed = mirror_seed
        self._schedule = [
            (index, pairing, battle) for index, pairing in enumerate(pairings) for battle in range(pairing.battles)
        ]
        bots = {seat.bot for pairing in pairings for seat in (pairing.first, pairing.second) if seat.bot}
        self._players = self._seated(bots)

    def seed_of(self, number: int) -> str:
        _, pairing, played = self._schedule[number]
        mirror = pairing.mirror(played)
        return super().seed_of(number) if mirror is None else f"{self._mirror_seed}/mirrored/{mirror}"

    def make(self, number: int, env: int, episode: int, rng: random.Random) -> LiveBattle:
        """Seat everybody."""
        index, pairing, played = self._schedule[number]
        first_seat = pairing.first_seat(played)
        by_seat = (pairing.first, pairing.second) if first_seat == 0 else (pairing.second, pairing.first)
        seats = tuple(self._seat(contestant, env, seat, episode, rng) for seat, contestant in enumerate(by_seat))
        battle = LiveBattle(number, env, episode, result_key(index, first_seat), seats)
        battle.learner_seat = first_seat
        mirror = pairing.mirror(played)
        battle.mirror = None if mirror is None else (index, mirror)
        battle.names = (by_seat[0].label, by_seat[1].label)
        return battle

    def _seat(
        self, contestant: Contestant, env: int, seat: int, episode: int, rng: random.Random
    ) -> PolicySeat | ScriptedSeat:
        if contestant.bot:
            return self._scripted_seat(seat, contestant.bot, rng)
        return self._policy_seat(env, seat, episode, contestant.policy, learns=False)
