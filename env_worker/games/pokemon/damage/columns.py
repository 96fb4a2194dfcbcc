"""The rows of integers that weapons and armours are: which column holds what."""

from __future__ import annotations

ONE = 4096
WAITING = 3  # rules of a weapon that wait for the target
GUARDS = 5  # rules of a target that wait for the weapon

# weapon
(
    W_FACTS,  # facts of move, user and field
    W_TYPE,
    W_LEVEL,
    W_POWER,
    W_POWER_KIND,
    W_ATTACK,
    W_ATTACK_PLAIN,  # without stages, for a target that is unaware of them
    W_POWER_MOD,
    W_ATTACK_MOD,
    W_DEFENCE_MOD,
    W_FINAL_MOD,
    W_EARLY_MOD,  # gens 3-4: before 2 is added
    W_MIDDLE_MOD,  # gen 4: after it
    W_STAB,
    W_WEATHER,
    W_SPECIAL,  # 1 = meets special defence
    W_BURN,  # 1 = halved by a burn
    W_FIXED,
    W_AMOUNT,
    W_ODDITY,
    W_BITS,
    W_HP,
    W_WEIGHT,
    W_SPEED,
    W_TERA,  # 1 = terastallized: weak attacks are lifted to 60
    W_SCRAPPY,
    W_MOLD,  # 1 = the target's ability does not count
    W_RULES,
) = range(28)
WEAPON_WIDTH = W_RULES + 3 * WAITING

# target
(
    T_FACTS,
    T_TYPE1,
    T_TYPE2,
    T_DEFENCE,
    T_DEFENCE_PLAIN,
    T_SPECIAL,
    T_SPECIAL_PLAIN,
    T_DEFENCE_MOD,
    T_SPECIAL_MOD,
    T_ATTACK,  # for foul play
    T_ATTACK_PLAIN,
    T_HP,
    T_MAX_HP,
    T_FULL_HP,  # in points, exact or estimated
    T_WEIGHT,
    T_SPEED,
    T_ODD,  # 1 wonder guard, 2 tera shell, 4 tar shot, 8 strong winds, 16 terastallized, 32 unaware
    T_RULES,
) = range(18)
TARGET_WIDTH = T_RULES + 3 * GUARDS
WONDER_GUARD, TERA_SHELL, TAR_SHOT, STRONG_WINDS, TERASTALLIZED, UNAWARE = 1, 2, 4, 8, 16, 32
