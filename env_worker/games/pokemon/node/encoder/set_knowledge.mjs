// What each foe may still have, by the sets of random battles.

import { POKEMON, POSSIBLE } from './layout.mjs';

const TEAM_SIZE = 6;
const MOVE_SLOTS = POKEMON.size.moves;
const KINDS = ['moves', 'abilities', 'tera_types'];
const REMEMBERED = 16384; // foes, over all battles of the host
const LIKELY = 0.15; // chance from which a hidden move counts as a threat

/** One kind of set; fields as in random_sets.py. */
class Role {
	constructor([level, moves, rows, abilities, teras]) {
		this.level = level;
		this.moves = moves;
		this.rows = rows;
		this.abilities = abilities;
		this.teras = teras;
	}
}

/** What a foe may still have. */
class Possible {
	constructor(numbers, likely) {
		this.numbers = numbers; // of its block
		this.likely = likely; // [MoveInfo, chance] of hidden moves, the likeliest first; null: its sets are not known
	}
}

/** The sets of a generation. */
export class KnownSets {
	/** @param {object} roles species -> its roles; @param {Iterable<MoveInfo>} moves */
	constructor(roles, moves) {
		this.infos = new Map();
		for (const info of moves) if (!this.infos.has(info.row)) this.infos.set(info.row, info);
		this.roles = new Map(Object.entries(roles).map(([id, all]) => [id, all.map(role => new Role(role))]));
		this.remembered = new Map();
	}

	/** A Possible. @param {number} ability its row, 0 while unknown */
	of(mon, ability) {
		const shown = [...mon.moveSet.learned.keys()];
		const key = `${mon.species} ${mon.level} ${ability} ${mon.terastallizedType} ${shown}`;
		let found = this.remembered.get(key);
		if (found === undefined) {
			if (this.remembered.size >= REMEMBERED) this.remembered.clear();
			const roles = this.roles.get(mon.species) ?? this.roles.get(mon.dex.species(mon.species).base) ?? [];
			const chances = possibilities(roles, mon.level, shown, ability, mon.terastallizedType);
			found = new Possible(this.likeliest(chances), roles.length ? this.likelyMoves(chances[0]) : null);
			this.remembered.set(key, found);
		}
		return found;
	}

	/** @param {Map<number, number>} moves row -> chance */
	likelyMoves(moves) {
		const likely = [...moves].filter(([row, chance]) => chance >= LIKELY && this.infos.has(row));
		return likely.sort((a, b) => b[1] - a[1]).map(([row, chance]) => [this.infos.get(row), Math.min(chance, 1)]);
	}

	/** Ids, then their chances; of equals the first. */
	likeliest(chances) {
		const numbers = new Float16Array(POSSIBLE.width), { at, size } = POSSIBLE;
		KINDS.forEach((kind, i) => {
			const first = [...chances[i]].sort((a, b) => b[1] - a[1]).slice(0, size[kind]);
			first.forEach(([row, chance], slot) => {
				numbers[at[kind] + slot] = row;
				numbers[at[`${kind}_chance`] + slot] = Math.min(chance, 1);
			});
		});
		return numbers;
	}
}

/** What the numbers of a foe were made from. */
class Shown {
	constructor() {
		this.mon = null;
		this.species = '';
		this.level = 0;
		this.moves = 0;
		this.ability = null;
		this.tera = 0;
	}

	/** Remember a foe; true if nothing has changed. */
	same(mon) {
		const { species, level, moveSet: { learned: { size } }, innateAbility: ability, terastallizedType: tera } = mon;
		if (this.mon === mon && this.species === species && this.level === level && this.moves === size &&
			this.ability === ability && this.tera === tera) return true;
		this.mon = mon;
		this.species = species;
		this.level = level;
		this.moves = size;
		this.ability = ability;
		this.tera = tera;
		return false;
	}
}

export class SetBlocks {
	/** @param {Float16Array} buffer one seat's observation */
	constructor(buffer, tables) {
		this.buffer = buffer;
		this.tables = tables;
		this.shown = Array.from({ length: TEAM_SIZE }, () => new Shown());
	}

	/** @param {object[]} foes in the order of `foe.*` */
	write(foes) {
		const { sets, abilities, layout } = this.tables, { width } = POSSIBLE;
		for (let i = 0; i < TEAM_SIZE; i++) {
			const at = layout.set_start + i * width;
			if (i < foes.length) {
				if (this.shown[i].same(foes[i])) continue;
				this.buffer.set(sets.of(foes[i], abilities.get(foes[i].innateAbility) ?? 0).numbers, at);
			} else if (this.shown[i].mon !== null) { // all that were brought have been out
				this.shown[i] = new Shown();
				this.buffer.fill(0, at, at + width);
			}
		}
	}
}

/** Those that agree, or all of them if none does. */
function narrowed(roles, agrees) {
	const left = roles.filter(agrees);
	return left.length ? left : roles;
}

/** [moves, abilities, tera types]: row -> chance, in the order in which the roles name them. */
function possibilities(roles, level, told, ability, tera) {
	roles = narrowed(roles, role => role.level === 0 || role.level === level);
	const shown = told.filter(move => roles.some(role => role.moves.includes(move)));
	roles = narrowed(roles, role => shown.every(move => role.moves.includes(move)));
	roles = narrowed(roles, role => role.abilities.includes(ability));
	roles = narrowed(roles, role => role.teras.includes(tera));
	const weights = roles.map(role => likelihood(role.moves.length, shown.length));
	const total = weights.reduce((sum, weight) => sum + weight, 0);
	const moves = new Map(), abilities = new Map(), teras = new Map();
	roles.forEach((role, i) => {
		const share = weights[i] / total;
		const hidden = role.rows.filter((row, slot) => !shown.includes(role.moves[slot]));
		if (hidden.length && shown.length < MOVE_SLOTS) {
			add(moves, hidden, share * Math.min((MOVE_SLOTS - shown.length) / hidden.length, 1));
		}
		if (role.abilities.length && !ability) add(abilities, role.abilities, share / role.abilities.length);
		if (role.teras.length && !tera) add(teras, role.teras, share / role.teras.length);
	});
	return [moves, abilities, teras];
}

/** Chance that `shown` given moves are among the four drawn from a pool. */
function likelihood(pool, shown) {
	let chance = 1;
	if (pool <= MOVE_SLOTS) return chance;
	for (let i = 0; i < Math.min(shown, MOVE_SLOTS); i++) chance *= (MOVE_SLOTS - i) / (pool - i);
	return chance;
}

function add(chances, rows, chance) {
	for (const row of rows) chances.set(row, (chances.get(row) ?? 0) + chance);
}
