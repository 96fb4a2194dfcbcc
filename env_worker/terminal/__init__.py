"""TurnGames in a terminal, for people: `simul play` and `simul watch`."""
