"""What a format's name says, and its spec, without starting anything; the simulator confirms the name later."""

from __future__ import annotations

import re

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.pokemon.tables import doubles_layout, layout
from simul.env_worker.games.pokemon.tables.vocabulary import vocabulary

DOUBLES_NAMES = ("doubles", "vgc", "2v2")


def generation(battle_format: str) -> int:
    """The generation in a format's name. Raises ConfigError."""
    found = re.match(r"gen([1-9])", battle_format)
    if found is None:
        raise ConfigError(f"pokemon.format: `{battle_format}` names no generation; try gen9randombattle.")
    return int(found.group(1))


def is_doubles(battle_format: str) -> bool:
    """Whether two Pokemon a side stand on the field; custom rules, behind `@@@`, say nothing of it."""
    return any(name in battle_format.partition("@@@")[0] for name in DOUBLES_NAMES)


def custom_rules(battle_format: str) -> tuple[str, ...]:
    """The rules behind `@@@`, in one spelling, by which formats can be compared."""
    return rules_alike(battle_format.partition("@@@")[2])


def rules_alike(listed: str) -> tuple[str, ...]:
    """Comma-separated rules without capitals and spaces, in their order: later rules change earlier ones."""
    rules = ("".join(rule.lower().split()) for rule in listed.split(","))
    return tuple(rule for rule in rules if rule)


def same_format(one: str, other: str) -> bool:
    """Whether two names are of one format with the same custom rules."""
    return one.partition("@@@")[0] == other.partition("@@@")[0] and custom_rules(one) == custom_rules(other)


ENCODER_VERSION = 5  # raise it when a number changes its meaning but not its place


def pokemon_spec(config: PokemonConfig) -> GameSpec:
    """The spec of the configured game. Raises ConfigError where a setting does not fit the format."""
    doubles, extras = is_doubles(config.format), layout.extras_of(config)
    if doubles and extras.attackers == layout.TEAM_SIZE:
        raise ConfigError(
            f"pokemon.damage_attackers: {extras.attackers} asks for blocks that doubles ({config.format}) do not have; "
            "leave it out: each move's damage on either foe is observed anyway."
        )
    return GameSpec(
        name=f"pokemon/{config.format}",
        observation_size=doubles_layout.OBSERVATION_SIZE if doubles else layout.observation_size(extras),
        num_actions=doubles_layout.NUM_ACTIONS if doubles else layout.NUM_ACTIONS,
        observation_dtype="float16",
        seats=2,
        encoder_version=ENCODER_VERSION,
        layout=doubles_layout.slices() if doubles else layout.slices(extras),
        opponent_labels=2 if doubles else 1,
        opponent_classes=layout.FIRST_MOVE_CLASS + vocabulary().sizes["move"],
    )
