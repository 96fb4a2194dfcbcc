"""Blokus: Duo for two players, Classic for two, three and four."""
