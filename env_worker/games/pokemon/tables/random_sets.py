"""Stand-in until the module itself is here."""

from simul.env_worker.games.pokemon.encoding.set_knowledge import KNOWN_FORMATS, Role, check_sets_known, known_sets

__all__ = ["KNOWN_FORMATS", "Role", "check_sets_known", "known_sets"]
