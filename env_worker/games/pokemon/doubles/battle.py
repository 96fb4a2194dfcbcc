"""poke-env's offline `DoubleBattle` for one seat."""

from __future__ import annotations

from poke_env.battle.double_battle import DoubleBattle

from simul.env_worker.games.pokemon.battle_view.seat_battle import Request, SeatView


class SeatDoubleBattle(SeatView, DoubleBattle):
    """One seat's view of one battle of doubles."""

    def sync(self, request: Request) -> None:
        """Bring the own team in line with a request; its first two entries are the left and the right slot."""
        super().sync(request)
        if request.get("teamPreview"):
            return
        for letter, entry in zip("ab", request["side"]["pokemon"]):
            self._active_pokemon[f"{self._player_role}{letter}"] = self._team[entry["ident"]]
