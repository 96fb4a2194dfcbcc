// How two Pokemon stand against each other: expected damage, before stages. The same as matchup.py.

class Attack {
	constructor(physical, special, effectiveness) {
		this.physical = physical; // fraction of full hp weighted by accuracy
		this.special = special;
		this.effectiveness = effectiveness;
	}
}

/** One move against one target: fraction of full hp it takes if it hits. */
class Blow {
	constructor(damage, effectiveness, stab, teraDamage) {
		this.damage = damage;
		this.effectiveness = effectiveness;
		this.stab = stab;
		this.teraDamage = teraDamage;
	}
}

export const NO_BLOW = new Blow(0, 0, 0, 0);

/** The best of a profile's moves against another profile; remembered as long as the user's profile lives. */
export function attack(chart, user, target) {
	let found = user.attacks.get(target.number);
	if (found === undefined) {
		found = strongest(chart, user.weapons, target.armour);
		user.attacks.set(target.number, found);
	}
	return found;
}

/** The move in one slot in detail. */
export function blow(chart, user, slot, target) {
	const weapon = user.slots[slot];
	if (weapon === undefined || weapon === null) return NO_BLOW;
	const armour = target.armour;
	const multiplier = effectiveness(chart, weapon.type, armour);
	let teraDamage = 0;
	if (weapon.teraType) {
		const teraMultiplier = effectiveness(chart, weapon.teraType, armour);
		if (teraMultiplier) teraDamage = damage(weapon, armour, weapon.teraStab * teraMultiplier);
	}
	if (multiplier === 0) return new Blow(0, 0, 0, teraDamage);
	return new Blow(damage(weapon, armour, weapon.stab * multiplier), multiplier, weapon.stab - 1, teraDamage);
}

function strongest(chart, weapons, target) {
	let physical = 0, special = 0, best = 0;
	for (const weapon of weapons) {
		const multiplier = effectiveness(chart, weapon.type, target);
		if (multiplier === 0) continue;
		const dealt = damage(weapon, target, weapon.stab * multiplier) * weapon.accuracy;
		if (weapon.special) {
			if (dealt > special) special = dealt;
		} else if (dealt > physical) {
			physical = dealt;
		}
		if (multiplier > best) best = multiplier;
	}
	return new Attack(physical, special, best);
}

function damage(weapon, target, factor) {
	if (weapon.fixed) return weapon.fraction || weapon.flat / target.hp;
	const scale = weapon.foeAttack ? weapon.scale * target.attack : weapon.scale;
	return (scale / target.defences[weapon.defence] + 2) * factor * target.perHp;
}

function effectiveness(chart, type, target) {
	if (target.immune && target.immune === type) return 0;
	const row = chart[type];
	return target.type2 ? row[target.type1] * row[target.type2] : row[target.type1];
}
