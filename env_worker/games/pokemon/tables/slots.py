"""Where conditions of a side, weather, terrain, status and volatile states are written, by poke-env's names."""

from __future__ import annotations

SIDE_SLOTS = {
    "STEALTH_ROCK": (0, 1.0),
    "SPIKES": (1, 1 / 3),
    "TOXIC_SPIKES": (2, 1 / 2),
    "STICKY_WEB": (3, 1.0),
    "REFLECT": (4, 1.0),
    "LIGHT_SCREEN": (5, 1.0),
    "AURORA_VEIL": (6, 1.0),
    "SAFEGUARD": (7, 1.0),
    "MIST": (7, 1.0),
    "TAILWIND": (8, 1.0),
}
SUN, RAIN, SAND, SNOW, WIND = range(5)
WEATHER_SLOTS = {
    "SUNNYDAY": SUN,
    "DESOLATELAND": SUN,
    "RAINDANCE": RAIN,
    "PRIMORDIALSEA": RAIN,
    "SANDSTORM": SAND,
    "SNOWSCAPE": SNOW,
    "HAIL": SNOW,
    "DELTASTREAM": WIND,
}
TERRAIN_SLOTS = {
    "ELECTRIC_TERRAIN": 0,
    "GRASSY_TERRAIN": 1,
    "MISTY_TERRAIN": 2,
    "PSYCHIC_TERRAIN": 3,
}
STATUS_SLOTS = {
    "BRN": 0,
    "FRZ": 1,
    "PAR": 2,
    "PSN": 3,
    "SLP": 4,
    "TOX": 5,
}
BOUND = (
    "bind clamp fire_spin g_max_centiferno g_max_sandblast infestation magma_storm sand_tomb snap_trap thunder_cage "
    "trapped whirlpool wrap"
)
EFFECTS_OF_VOLATILE = (
    "substitute",
    "confusion",
    "leech_seed",
    "taunt",
    "encore",
    "disable",
    "yawn",
    "perish0 perish1 perish2 perish3",
    "salt_cure",
    f"{BOUND} partially_trapped no_retreat octolock ingrain",
    "protosynthesis protosynthesisatk protosynthesisdef protosynthesisspa protosynthesisspd protosynthesisspe "
    "quark_drive quarkdriveatk quarkdrivedef quarkdrivespa quarkdrivespd quarkdrivespe",
    "flash_fire charge",
    "torment attract throat_chop heal_block imprison embargo",
    "dynamax",
)
PERISH_COUNT = {"perish3": 0.25, "perish2": 0.5, "perish1": 0.75}
VOLATILE_SLOTS = {
    name.upper(): (slot, PERISH_COUNT.get(name, 1.0))
    for slot, names in enumerate(EFFECTS_OF_VOLATILE)
    for name in names.split()
}
