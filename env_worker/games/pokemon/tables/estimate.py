"""What the encoder's estimate of damage knows of abilities and items; `node/encoder/expected_damage.mjs` computes it.

Pairs are factors of physical and special damage.
"""

from __future__ import annotations

# Ability -> the attacking type it makes harmless (ids of PokemonType).
GROUND, WATER, ELECTRIC, FIRE, GRASS = 11, 18, 4, 7, 10
IMMUNITIES = {
    "levitate": GROUND,
    "eartheater": GROUND,
    "waterabsorb": WATER,
    "stormdrain": WATER,
    "dryskin": WATER,
    "voltabsorb": ELECTRIC,
    "motordrive": ELECTRIC,
    "lightningrod": ELECTRIC,
    "flashfire": FIRE,
    "wellbakedbody": FIRE,
    "sapsipper": GRASS,
}
ITEM_POWER = {"lifeorb": (1.3, 1.3), "choiceband": (1.5, 1.0), "choicespecs": (1.0, 1.5), "lightball": (2.0, 2.0)}
ABILITY_POWER = {"hugepower": (2.0, 1.0), "purepower": (2.0, 1.0), "gorillatactics": (1.5, 1.0), "hustle": (1.5, 1.0)}
BULK = {"furcoat": (2.0, 1.0), "icescales": (1.0, 2.0)}
