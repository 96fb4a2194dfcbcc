"""Stand-in until the module itself is here."""

from simul.env_worker.games.pokemon.encoding.host_tables import encoder_tables, makes_a_pokemon, tracker_tables

__all__ = ["encoder_tables", "makes_a_pokemon", "tracker_tables"]
