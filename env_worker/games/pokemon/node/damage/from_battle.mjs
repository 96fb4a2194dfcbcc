// What the seat knows of a Pokemon and of the field, as the damage formula sees it.

import { STELLAR } from './queries.mjs';

const SIXTHS = 6;
const NO_FACT = [0, 0], NO_WEATHER = [NO_FACT, 0], NO_EFFECTS = [];

/** A Pokemon as the formula sees it at one moment: a copy of `from`, so that all of them have one shape. */
export class Fighter {
	constructor(from) {
		this.species = from.species;
		this.level = from.level;
		this.stats = from.stats;
		this.types = from.types;
		this.baseTypes = from.baseTypes;
		this.ability = from.ability;
		this.item = from.item;
		this.tera = from.tera;
		this.terastallized = from.terastallized;
		this.hp = from.hp;
		this.maxHp = from.maxHp;
		this.status = from.status;
		this.stages = from.stages;
		this.effects = from.effects;
		this.down = from.down;
	}

	withoutAbility() {
		const copy = new Fighter(this);
		copy.ability = '';
		return copy;
	}

	terastallize() {
		const copy = new Fighter(this);
		if (this.tera !== STELLAR) copy.types = [this.tera];
		copy.terastallized = true;
		return copy;
	}
}

/** What changes of a Pokemon while its profile stays; of a benched one stages and effects do not count. */
export class Condition {
	constructor() {
		this.hp = 0;
		this.maxHp = 0;
		this.status = '';
		this.stages = 0; // five of them, -6 to 6, as digits
		this.effects = '';
	}

	/** Brings it up to date; false if it was. */
	read(tables, mon, profile, exactHp, out) {
		const hp = exactHp ? mon.hp || 0 : steps(tables, mon, profile), maxHp = exactHp ? mon.maxHp || 1 : SIXTHS;
		const status = mon.status === null || mon.status === 'FNT' ? '' : mon.status;
		const stages = out ? digits(mon.boosts) : 0;
		const effects = out && (mon.effects.size || mon.preparing) ? known(tables, mon).join() : '';
		if (hp === this.hp && maxHp === this.maxHp && status === this.status && stages === this.stages &&
			effects === this.effects) return false;
		this.hp = hp;
		this.maxHp = maxHp;
		this.status = status;
		this.stages = stages;
		this.effects = effects;
		return true;
	}

	/** @param {boolean} out as it was read; @param {number} down fainted team mates */
	fighter(tables, mon, profile, out, down) {
		const { boosts } = mon;
		return new Fighter({
			species: mon.species,
			level: profile.level,
			stats: profile.stats,
			types: [profile.type1, profile.type2, profile.type3].filter(Boolean),
			baseTypes: profile.base2 ? [profile.base1, profile.base2] : [profile.base1],
			ability: profile.ability,
			item: profile.item === tables.unknownItem || !profile.item ? '' : profile.item,
			tera: profile.tera,
			terastallized: profile.terastallized,
			hp: this.hp,
			maxHp: this.maxHp,
			status: this.status,
			stages: out ? [boosts.atk, boosts.def, boosts.spa, boosts.spd, boosts.spe] : [0, 0, 0, 0, 0],
			effects: this.effects ? known(tables, mon) : NO_EFFECTS,
			down,
		});
	}
}

/** Sixths that stand for: full, over a half, a half, a third; always full where no ability asks. */
function steps(tables, mon, profile) {
	if (!tables.hpAbilities.has(profile.ability)) return SIXTHS;
	const hp = mon.hp || 0, full = mon.maxHp || 1;
	if (hp >= full) return 6;
	return 3 * hp <= full ? 2 : 2 * hp <= full ? 3 : 5;
}

function digits(boosts) {
	return (((boosts.atk * 13 + boosts.def) * 13 + boosts.spa) * 13 + boosts.spd) * 13 + boosts.spe;
}

function known(tables, mon) {
	const found = [];
	for (const name of mon.effects.keys()) if (tables.effects.has(name)) found.push(name);
	if (mon.preparing) found.push('PREPARING');
	return found.sort();
}

/** Whether two profiles are of equal fighters: a foe's is made anew with every move it shows. */
export function sameBody(a, b) {
	if (a === b) return true;
	if (a === null || a.level !== b.level || a.ability !== b.ability || a.item !== b.item || a.type1 !== b.type1 ||
		a.type2 !== b.type2 || a.type3 !== b.type3 || a.base1 !== b.base1 || a.base2 !== b.base2 || a.tera !== b.tera ||
		a.terastallized !== b.terastallized) return false;
	for (let i = 0; i < a.stats.length; i++) if (a.stats[i] !== b.stats[i]) return false;
	return true;
}

/** Weather, terrain and gravity. */
export class Surroundings {
	constructor() {
		this.low = 0;
		this.high = 0;
		this.harsh = 0;
		this.gravity = false;
	}

	/** Brings it up to date; false if it was. The abilities are those of the two on the field, '' for none. */
	read(tables, battle, ownAbility, foeAbility) {
		const { low, high, harsh, gravity } = this, { weather, fields } = battle;
		this.low = this.high = this.harsh = 0;
		this.gravity = fields.size > 0 && fields.has('GRAVITY');
		if (weather.size && !tables.calm.has(ownAbility) && !tables.calm.has(foeAbility)) {
			for (const name of weather.keys()) {
				const [fact, strength] = tables.weathers.get(name) ?? NO_WEATHER;
				this.add(fact);
				this.harsh = strength;
			}
		}
		if (fields.size) for (const name of fields.keys()) this.add(tables.terrains.get(name) ?? NO_FACT);
		return low !== this.low || high !== this.high || harsh !== this.harsh || gravity !== this.gravity;
	}

	equals(other) {
		return this.low === other.low && this.high === other.high && this.harsh === other.harsh && this.gravity === other.gravity;
	}

	add(fact) {
		this.low |= fact[0];
		this.high |= fact[1];
	}
}
