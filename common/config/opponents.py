"""Names of opponents, and mixes of them in one string: `random:0.2,max:0.2,heuristics:0.2,self:0.4`. Pure."""

from __future__ import annotations

import difflib

from simul.common.config.game_description import POLICIES
from simul.common.config.games import GAMES
from simul.common.config.schema import OpponentsConfig
from simul.common.errors import ConfigError

KINDS: tuple[str, ...] = OpponentsConfig.__struct_fields__
SCRIPTED = tuple(kind for kind in KINDS if kind not in POLICIES)  # of all games; they need no network
MIX = "random:0.2,self:0.8"  # example, for messages
SHORT = {"self": "self_play"} | {short: full for game in GAMES.values() for short, full in game.short_names.items()}


def opponent_kind(name: str, among: tuple[str, ...] = KINDS) -> str:
    """The full name of an opponent, given that or its short one. Raises ConfigError with the nearest names."""
    kind = SHORT.get(name, name)
    if kind in among:
        return kind
    close = difflib.get_close_matches(name, [*among, *(short for short, full in SHORT.items() if full in among)], 1)
    hint = f"Did you mean {close[0]}? " if close else ""
    raise ConfigError(f"there is no opponent {name!r}. {hint}Opponents are {_listed(among)}.")


def parse_mix(text: str) -> dict[str, float]:
    """Share of every kind, 0 for kinds not named. The caller checks that they add up to 1.

    Raises:
        ConfigError: an unknown name, a name given twice, or a share that is not a number.
    """
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, colon, share = (piece.strip() for piece in part.partition(":"))
        if not colon:
            raise ConfigError(f"expected NAME:SHARE,NAME:SHARE,... such as {MIX}; got {part.strip()!r}")
        kind = opponent_kind(name)
        if kind in shares:
            raise ConfigError(f"{kind} is given twice in {text!r}")
        try:
            shares[kind] = float(share)
        except ValueError:
            raise ConfigError(f"the share of {name} must be a number such as 0.2, got {share!r}") from None
    return {**dict.fromkeys(KINDS, 0.0), **shares}


def _listed(kinds: tuple[str, ...]) -> str:
    short = {full: name for name, full in SHORT.items()}
    return ", ".join(f"{kind} ({short[kind]})" if kind in short else kind for kind in kinds)
