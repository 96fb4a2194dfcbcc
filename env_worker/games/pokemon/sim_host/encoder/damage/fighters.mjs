// What the seat knows of a Pokemon and of the field, as the damage formula sees it. The same as damage/reading.py.

import { STELLAR } from './state.mjs';

const SIXTHS = 6;
const NO_STAGES = [0, 0, 0, 0, 0], NO_EFFECTS = [];

/** A Pokemon as the formula sees it at one moment. */
export class Fighter {
	constructor(tables, mon, profile, exactHp, out, down) {
		this.species = mon.species;
		this.level = profile.level;
		this.stats = profile.stats;
		this.types = profile.type2 ? [profile.type1, profile.type2] : [profile.type1];
		this.baseTypes = profile.base2 ? [profile.base1, profile.base2] : [profile.base1];
		this.ability = profile.ability;
		this.item = profile.item === tables.unknownItem || !profile.item ? '' : profile.item;
		this.tera = profile.tera;
		this.terastallized = profile.terastallized;
		this.hp = exactHp ? mon.hp || 0 : steps(tables, mon, profile);
		this.maxHp = exactHp ? mon.maxHp || 1 : SIXTHS;
		this.status = mon.status === null || mon.status === 'FNT' ? '' : mon.status;
		const { boosts } = mon;
		this.stages = out ? [boosts.atk, boosts.def, boosts.spa, boosts.spd, boosts.spe] : NO_STAGES;
		this.effects = out && mon.effects.size ? [...mon.effects.keys()].filter(name => tables.effects.has(name)).sort() :
			NO_EFFECTS;
		this.down = down;
	}

	withoutAbility() {
		return Object.assign(Object.create(Fighter.prototype), this, { ability: '' });
	}

	terastallize() {
		const types = this.tera === STELLAR ? this.types : [this.tera];
		return Object.assign(Object.create(Fighter.prototype), this, { types, terastallized: true });
	}
}

/** Sixths that stand for: full, over a half, a half, a third; always full where no ability asks. */
function steps(tables, mon, profile) {
	if (!tables.hpAbilities.has(profile.ability)) return SIXTHS;
	const hp = mon.hp || 0, full = mon.maxHp || 1;
	if (hp >= full) return 6;
	return 3 * hp <= full ? 2 : 2 * hp <= full ? 3 : 5;
}

/** Everything of it that may change the damage while its profile stays. */
export function stateOf(tables, mon, profile, exactHp, out) {
	const hp = exactHp ? `${mon.hp}/${mon.maxHp}` : steps(tables, mon, profile);
	if (!out) return `${hp}${mon.status}0`;
	const { boosts, effects } = mon;
	const stages = (((boosts.atk * 13 + boosts.def) * 13 + boosts.spa) * 13 + boosts.spd) * 13 + boosts.spe;
	let known = '';
	for (const name of effects.keys()) if (tables.effects.has(name)) known += name;
	return `${hp}${mon.status}${stages}${known}`;
}

export class Surroundings {
	constructor(tables, battle, ownAbility, foeAbility) {
		this.low = 0;
		this.high = 0;
		this.harsh = 0;
		this.gravity = battle.fields.has('GRAVITY');
		if (!tables.calm.has(ownAbility) && !tables.calm.has(foeAbility)) {
			for (const name of battle.weather.keys()) {
				const [fact, harsh] = tables.weathers.get(name) ?? [[0, 0], 0];
				this.add(fact);
				this.harsh = harsh;
			}
		}
		for (const name of battle.fields.keys()) this.add(tables.terrains.get(name) ?? [0, 0]);
		this.key = `${this.low},${this.high},${this.harsh},${this.gravity}`;
	}

	add(fact) {
		this.low |= fact[0];
		this.high |= fact[1];
	}
}
