// The damage formula's tables of one generation, as tables/damage/tables.py sends them. Facts are two words of 31 bits.

const TRAILING_DIGITS = /[0-9]+$/;

/** One move; fields as in tables/damage/moves.py. */
class DamageMove {
	constructor(id, [type, category, power, powerKind, typeKind, fixed, amount, oddity, bits, , fewHits, hits, mask]) {
		this.id = id;
		this.type = type;
		this.category = category;
		this.power = power;
		this.powerKind = powerKind;
		this.typeKind = typeKind;
		this.fixed = fixed;
		this.amount = amount;
		this.oddity = oddity;
		this.bits = bits;
		this.fewHits = fewHits;
		this.hits = hits;
		this.low = mask[0];
		this.high = mask[1];
	}
}

class Rule {
	constructor([stage, mod, low, high, species]) {
		this.stage = stage;
		this.mod = mod;
		this.low = low;
		this.high = high;
		this.species = species;
	}

	suits(species) {
		return this.species.length === 0 || this.species.some(prefix => species.startsWith(prefix));
	}
}

const NO_RULES = [];
const map = object => new Map(Object.entries(object));

export class DamageTables {
	constructor(gen, raw) {
		this.gen = gen;
		this.facts = raw.facts;
		this.pairLow = raw.pair_facts[0];
		this.pairHigh = raw.pair_facts[1];
		this.stageCount = raw.stages.length;
		this.stage = Object.fromEntries(raw.stages.map((name, place) => [name, place]));
		this.ruleTables = Object.fromEntries(Object.entries(raw.rules).map(([who, named]) => [
			who, new Map(Object.entries(named).map(([name, found]) => [name, found.map(rule => new Rule(rule))])),
		]));
		this.eviolite = ['defence', 'special_defence'].map(name => new Rule([this.stage[name], 6144, 0, 0, []]));
		this.exponents = raw.exponents;
		this.immune = raw.immune;
		this.weights = map(raw.weights);
		this.unfinished = new Set(raw.unfinished);
		this.moves = new Map(Object.entries(raw.moves).map(([id, numbers]) => [id, new DamageMove(id, numbers)]));
		this.retyping = map(raw.retyping);
		this.byWeather = raw.by_weather;
		this.byTerrain = raw.by_terrain;
		this.byForme = raw.by_forme;
		this.itemTypes = map(raw.item_types);
		this.stuck = Object.entries(raw.stuck);
		this.alwaysStuck = raw.always_stuck;
		this.heavyItems = new Set(raw.heavy_items);
		this.speedAbilities = map(raw.speed_abilities);
		this.mold = new Set(raw.mold);
		this.scrappy = new Set(raw.scrappy);
		this.uncritical = new Set(raw.uncritical);
		this.unbreakable = new Set(raw.unbreakable);
		this.weathers = map(raw.weathers);
		this.terrains = map(raw.terrains);
		this.screens = [...new Set(Object.values(raw.screens))].sort();
		this.screenBits = new Map(Object.entries(raw.screens).map(([name, screen]) =>
			[name, 1 << this.screens.indexOf(screen)]));
		this.screenLists = Array.from({ length: 1 << this.screens.length }, (_, bits) =>
			this.screens.filter((_, place) => bits & 1 << place));
		this.effects = new Set(raw.effects);
		this.hpAbilities = new Set(raw.hp_abilities);
		this.calm = new Set(raw.calm);
		this.unknownItem = raw.unknown_item;
	}

	/** The same bits give the same list. @param {number} bits several of `screenBits` */
	screensOf(bits) {
		return this.screenLists[bits];
	}

	rules(who, name) {
		return this.ruleTables[who].get(name) ?? NO_RULES;
	}

	/** A move as requests spell it (`hiddenpowerfire60`, `return102`); null for what does no damage. */
	move(name) {
		if (name.startsWith('hiddenpower')) {
			const move = this.moves.get(name.replace(TRAILING_DIGITS, ''));
			if (move === undefined) return null;
			const digits = TRAILING_DIGITS.exec(name);
			const made = Object.assign(Object.create(DamageMove.prototype), move, { id: 'hiddenpower' });
			if (this.gen <= 5) made.power = digits ? Number(digits[0]) : 70;
			return made;
		}
		for (const plain of ['return', 'frustration']) if (name.startsWith(plain)) return this.moves.get(plain) ?? null;
		return this.moves.get(name) ?? null;
	}

	/** An attack without a name, a rule or an effect of its own. */
	plainMove(type, category, power) {
		return new DamageMove('', [type, category, power, 0, 0, 0, 0, 0, 0, 0, false, [1, 0], this.facts.meets_screens]);
	}
}
