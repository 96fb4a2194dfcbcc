"""The scripted players by name: poke-env's, and the bots that the simulator host plays."""

from __future__ import annotations

from simul.env_worker.games.pokemon.opponents.scripted import PLAYERS

HOST_BOTS = {"damage": "one_ply"}  # with their names in `node/bots/seat.mjs`
SCRIPTED = (*PLAYERS, *HOST_BOTS)
