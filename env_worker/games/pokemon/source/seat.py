"""The two kinds of a policy's seat: encoded by the host, or read here."""

from __future__ import annotations

import numpy as np

from simul.common.protocol.decisions import Decision
from simul.env_worker.games.pokemon.battle_view.seat_battle import Request, SeatBattle, SeatView
from simul.env_worker.games.pokemon.encoding.encoder import SeatEncoder
from simul.env_worker.games.pokemon.encoding.layout import PLAIN, Extras
from simul.env_worker.games.pokemon.encoding.preview import Preview
from simul.env_worker.games.pokemon.simulator.battle_host import BattleHost
from simul.env_worker.games.pokemon.simulator.host_messages import SimEnd, SimRow
from simul.env_worker.games.pokemon.source.policy_seat import PolicySeat, Sight
from simul.env_worker.games.pokemon.source.request_steps import Asking, Turn
from simul.env_worker.games.pokemon.source.rewards import Facts, RewardWeights, Standing
from simul.env_worker.games.pokemon.source.tally import NO_TALLY, TallyKeeper


class HostedSeat(PolicySeat):
    """Encoded by the simulator host: a decision arrives ready-made."""

    def __init__(self, env: int, seat: int, episode: int, policy: str, flags: int, weights: RewardWeights) -> None:
        super().__init__(env, seat, episode, policy, flags, weights)
        self._row: SimRow | None = None

    def decide(self, row: SimRow) -> Decision:
        """The decision that a row asks for."""
        self._row = row
        self.turn = row.turn
        self.request_number = row.request_number
        return self._decision(row.observation, row.mask, row.facts)

    def answer(self, host: BattleHost, battle: int, action: int) -> bool:
        if self._row is None or not 0 <= action < len(self._row.mask) or not self._row.mask[action]:
            return False
        self.waiting = False
        host.act(battle, self.seat, self.request_number, action)
        return True

    def _last_sight(self) -> Sight | None:
        row = self._row
        return None if row is None else (row.observation, row.mask, row.facts)

    def _final(self, end: SimEnd) -> Facts | None:
        return end.facts(self.seat)


class ReadingSeat(PolicySeat):
    """Reads the battle itself: poke-env's state and the Python encoder."""

    def __init__(
        self,
        env: int,
        seat: int,
        episode: int,
        gen: int,
        policy: str,
        flags: int,
        weights: RewardWeights,
        extras: Extras = PLAIN,
    ) -> None:
        super().__init__(env, seat, episode, policy, flags, weights)
        self._gen = gen
        self._extras = extras
        self.battle: SeatView = self._make_battle(f"p{seat + 1}")
        self._asking: Asking | None = None
        self._action = -1
        free_switches = weights.tally
        self._tally = None if free_switches is None else TallyKeeper(f"p{seat + 1}", free_switches)

    def hear(self, lines: str, request: Request | None) -> None:
        """Take the lines that come with a request, or with None: the battle is over."""
        if self._tally is not None:
            self._tally.take(lines, request)
        elif request is None:
            return  # nobody asks where it ended
        self.battle.feed(lines)

    def decide(self, request_number: int, request: Request) -> Decision:
        """The first decision that a request asks for; the seat's lines have been fed before."""
        self.request_number = request_number
        self._asking = self._ask(request)
        self.turn = self.battle._turn
        return self._encoded()

    def follow_up(self) -> Decision | None:
        """The next one, where a request takes several."""
        if self._asking is None or self.waiting or self._asking.complete:
            return None
        return self._encoded()

    def refuse(self) -> Decision | None:
        """The simulator calls the last action invalid and the request stays open: ask again without it.

        None if nothing else is legal.
        """
        assert self._asking is not None
        self.redo = True
        self._asking.refuse()
        self._asking.choices.mask[self._action] = 0
        return self._encoded() if any(self._asking.choices.mask) else None

    def answer(self, host: BattleHost, battle: int, action: int) -> bool:
        mask = self._asking.choices.mask if self._asking is not None else b""
        if self._asking is None or not 0 <= action < len(mask) or not mask[action]:
            return False
        self.waiting = False
        self._action = action
        command = self._asking.pick(action)
        if command is not None:
            host.choose(battle, self.seat, self.request_number, command)
        return True

    def _encoded(self) -> Decision:
        """The open decision."""
        assert self._asking is not None
        return self._decision(*self._look(self._asking))

    def _look(self, asking: Asking) -> Sight:
        """Observation, mask and facts as they are now."""
        observation, standing = asking.encode()
        return observation, np.frombuffer(bytes(asking.choices.mask), dtype=np.uint8), self._facts(standing)

    def _facts(self, standing: Standing) -> Facts:
        tally = NO_TALLY if self._tally is None else self._tally.tally
        return Facts(standing, self.turn, tally)

    def _final(self, end: SimEnd) -> Facts | None:
        if self._tally is None:
            return None
        return self._facts(self._survey())._replace(turn=end.turns + 1)

    def _last_sight(self) -> Sight | None:
        return self._look(self._asking) if self._asking is not None else None

    def _make_battle(self, role: str) -> SeatView:
        battle = SeatBattle(role, self._gen)
        self._encoder = SeatEncoder(battle, self._gen, self._extras)
        return battle

    def _ask(self, request: Request) -> Asking:
        if "teamPreview" in request:
            return Preview(self.battle, self._gen, request, self._extras)
        self.battle.sync(request)
        return Turn(request, self.battle, self._encoder)

    def _survey(self) -> Standing:
        """How the battle stands, without an observation."""
        self._encoder.survey()
        return self._encoder.standing
