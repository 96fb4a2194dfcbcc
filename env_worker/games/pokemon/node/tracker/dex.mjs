// The static tables of one generation (host_tables.py) and how protocol text is looked up in them.

/** A protocol line that cannot be taken. */
export class ParseFailure extends Error {}

/** A line that is malformed or contradicts what is known; `-prepare` passes over one about its target. */
export class ValueFailure extends ParseFailure {}

const CACHE_LIMIT = 20000; // nicknames are free text

/** Remembers what a pure function of one string returned. */
function remembered(compute) {
	const cache = new Map();
	return text => {
		let found = cache.get(text);
		if (found === undefined) {
			if (cache.size >= CACHE_LIMIT) cache.clear();
			found = compute(text);
			cache.set(text, found);
		}
		return found;
	};
}

/** Letters and digits in lower case: the key of a name in the tables. */
export const toId = remembered(text => text.replace(/[^\p{L}\p{N}]/gu, '').toLowerCase());

/** The key of a move; Return, Frustration and Hidden Power have one each, whatever their name says of power and type. */
export const moveId = remembered(name => {
	const id = toId(name);
	for (const family of ['return', 'frustration', 'hiddenpower']) if (id.startsWith(family)) return family;
	return id;
});

export class BaseStats {
	constructor([hp, atk, def, spa, spd, spe]) {
		this.hp = hp;
		this.atk = atk;
		this.def = def;
		this.spa = spa;
		this.spd = spd;
		this.spe = spe;
	}
}

class Species {
	constructor(id, [types, stats, abilities, base, formeAbility]) {
		this.id = id;
		this.types = types;
		this.baseStats = new BaseStats(stats);
		this.abilities = abilities;
		this.base = base;
		this.formeAbility = formeAbility;
	}
}

class MoveKind {
	constructor([aimsAtAll, stored, protects, hasPower, type, fullPp, basePp, pressed, atAllFoes]) {
		this.aimsAtAll = aimsAtAll;
		this.stored = stored;
		this.protects = protects;
		this.hasPower = hasPower;
		this.type = type;
		this.fullPp = fullPp;
		this.basePp = basePp; // before PP Ups
		this.pressed = pressed; // costs more under Pressure
		this.atAllFoes = atAllFoes; // and more under that of any foe, whomever it aims at
	}
}

const NO_KIND = new MoveKind([false, false, false, false, 0, 1, 1, false, false]);

function namesWhere(flags, index) {
	return new Set(Object.keys(flags).filter(name => flags[name][index]));
}

export class Dex {
	constructor(tables) {
		this.gen = tables.gen;
		this.unknownItem = tables.unknown_item;
		this.skipped = new Set(tables.skipped);
		this.types = new Map(Object.entries(tables.types));
		this.speciesById = new Map();
		for (const id in tables.species) this.speciesById.set(id, new Species(id, tables.species[id]));
		this.moves = new Map();
		for (const id in tables.moves) this.moves.set(id, new MoveKind(tables.moves[id]));
		this.specialMoves = new Set(tables.special_moves);
		this.breaksProtect = namesWhere(tables.effects, 0);
		this.endsOnTurn = namesWhere(tables.effects, 1);
		this.stackable = new Set(tables.stackable);
		this.passed = new Set(tables.passed); // effects that Baton Pass hands over
		this.statuses = new Map();
		for (const name of tables.statuses) this.statuses.set(name, name).set(name.toLowerCase(), name);
		this.electric = tables.types.ELECTRIC;
		this.effect = remembered(text => effectName(tables.effects, text));
		this.weather = remembered(text => tables.weather[underscored(text)] ?? 'UNKNOWN');
		this.field = remembered(text => fieldName(tables.fields, text));
		this.side = remembered(text => tables.sides[underscored(text)] ?? 'UNKNOWN');
	}

	species(id) {
		const species = this.speciesById.get(id);
		if (species === undefined) throw new ParseFailure(`species ${id}`);
		return species;
	}

	/** PokemonType value of a name in any case. */
	type(name) {
		const type = this.types.get(name) ?? this.types.get(name.toUpperCase());
		if (type === undefined) throw new ParseFailure(`type ${name}`);
		return type;
	}

	status(name) {
		const status = this.statuses.get(name) ?? this.statuses.get(name.toUpperCase());
		if (status === undefined) throw new ParseFailure(`status ${name}`);
		return status;
	}

	/** What is known of a move. Throws for an id without an entry. */
	moveKind(id) {
		const kind = this.moves.get(id) ?? (id.startsWith('z') ? this.moves.get(id.slice(1)) : undefined);
		if (kind !== undefined) return kind;
		if (this.specialMoves.has(id)) return NO_KIND;
		throw new ValueFailure(`move ${id}`);
	}
}

function underscored(text) {
	return text.replaceAll('move: ', '').replaceAll(' ', '_').replaceAll('-', '_').toUpperCase();
}

function effectName(effects, text) {
	const name = underscored(text.replaceAll('item: ', '').replaceAll('move: ', '').replaceAll('ability: ', ''));
	if (name === 'FALLENUNDEFINED') return 'FALLEN';
	return Object.hasOwn(effects, name) ? name : 'UNKNOWN';
}

/** Unlike the others, a field keeps its hyphens. */
function fieldName(fields, text) {
	let name = text.replaceAll('ability: ', '').replaceAll('move: ', '').replaceAll(' ', '_');
	if (name.endsWith('terrain') && !name.endsWith('_terrain')) name = name.replaceAll('terrain', '_terrain');
	return fields[name.toUpperCase()] ?? 'UNKNOWN';
}

const dexes = new WeakMap();

/** The same tables give the same Dex. */
export function dexOf(tables) {
	let dex = dexes.get(tables);
	if (dex === undefined) {
		dex = new Dex(tables);
		dexes.set(tables, dex);
	}
	return dex;
}
