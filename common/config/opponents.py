"""Names of opponents, and mixes of them in one string: `random:0.2,mybot:MyBot:0.4,self:0.4`. Pure."""

from __future__ import annotations

import re
from typing import Any

from simul.common.config.game_description import POLICIES
from simul.common.config.games import GAMES
from simul.common.config.schema import NOT_KINDS, OpponentsConfig
from simul.common.errors import ConfigError, did_you_mean

KINDS = tuple(key for key in OpponentsConfig.__struct_fields__ if key not in NOT_KINDS)
SCRIPTED = tuple(kind for kind in KINDS if kind not in POLICIES)  # of all games; they need no network
MIX = "random:0.2,self:0.8"  # example, for messages
ZOO_PREFIX = "zoo:"  # of a shipped policy, `simul.common.checkpoints.zoo`
OWN = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")  # module:Class of a player of one's own
SHORT = {"self": "self_play"} | {short: full for game in GAMES.values() for short, full in game.short_names.items()}


def opponent_kind(name: str, among: tuple[str, ...] = KINDS) -> str:
    """The full name of an opponent, given that, its short one, or module:Class.

    Raises ConfigError with the nearest names.
    """
    kind = SHORT.get(name, name)
    if name.startswith(ZOO_PREFIX):
        raise ConfigError(no_opponent(name))
    if kind in among or is_own(name):
        return kind
    hint = did_you_mean(name, [*among, *(short for short, full in SHORT.items() if full in among)]) or "."
    raise ConfigError(f"there is no opponent {name!r}{hint} Opponents are {_listed(among)}, or module:Class.")


def no_opponent(name: str) -> str:
    """The sentence about `zoo:NAME` in the place of an opponent."""
    return (
        f"{name} is a policy, and opponents are scripted players here; in `simul eval` and `watch` name it with "
        f"--checkpoint {name}."
    )


def is_own(name: str) -> bool:
    """True for module:Class, the name of a player of one's own."""
    return OWN.fullmatch(name) is not None and not name.startswith(ZOO_PREFIX)


def parse_mix(text: str) -> dict[str, Any]:
    """The section `opponents`: the share of every kind, 0 for kinds not named. The caller checks that they add up to 1.

    The last colon of a part separates the share.

    Raises:
        ConfigError: an unknown name, a name given twice, or a share that is not a number.
    """
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, colon, share = (piece.strip() for piece in part.rpartition(":"))
        if not colon:
            raise ConfigError(f"expected NAME:SHARE,NAME:SHARE,... such as {MIX}; got {part.strip()!r}")
        if is_own(part.strip()) and SHORT.get(name, name) not in KINDS:
            raise ConfigError(f"the share of {part.strip()} is missing: write {part.strip()}:0.2")
        kind = opponent_kind(name)
        if kind in shares:
            raise ConfigError(f"{kind} is given twice in {text!r}")
        try:
            shares[kind] = float(share)
        except ValueError:
            raise ConfigError(f"the share of {name} must be a number such as 0.2, got {share!r}") from None
    own = {kind: share for kind, share in shares.items() if is_own(kind)}
    named = {kind: share for kind, share in shares.items() if kind not in own}
    return {**dict.fromkeys(KINDS, 0.0), **named, "classes": own}


def _listed(kinds: tuple[str, ...]) -> str:
    short = {full: name for name, full in SHORT.items()}
    return ", ".join(f"{kind} ({short[kind]})" if kind in short else kind for kind in kinds)
