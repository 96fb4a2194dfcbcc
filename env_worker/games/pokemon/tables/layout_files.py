"""Stand-in until the module itself is here."""

from simul.env_worker.games.pokemon.encoding.layout_files import files

__all__ = ["files"]
