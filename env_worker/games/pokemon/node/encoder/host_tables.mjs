// What the Python side knows before any battle (see host_tables.py), in the shape the encoder looks it up.

import { DamageTables } from '../damage/tables.mjs';
import { moveId } from '../tracker/dex.mjs';
import { stagingOf } from './expected_damage.mjs';
import { KnownSets } from './set_knowledge.mjs';

const POWER = /(?:[0-9]+|null)$/; // a Frustration without power is frustrationnull

/** One move of the generation being played; fields as in movedex.py. `stat`: the numbers that never change. */
class MoveInfo {
	constructor([row, type, category, power, accuracy, levelDamage, fraction, flat, fixed, ownDefence, foeAttack,
		hitsDefence, stat]) {
		this.row = row;
		this.type = type;
		this.category = category;
		this.power = power;
		this.accuracy = accuracy;
		this.levelDamage = levelDamage;
		this.fraction = fraction;
		this.flat = flat;
		this.fixed = fixed;
		this.ownDefence = ownDefence;
		this.foeAttack = foeAttack;
		this.hitsDefence = hitsDefence;
		this.share = fraction > 0 && fraction < 1; // of the present hp
		this.staging = stagingOf(this);
		this.stat = Float16Array.from(stat);
	}
}

/** Accuracy data of one move; fields as in hit_terms.py. */
class HitTerms {
	constructor(id, [accuracy, sure, priority, target, price, charges, ohko]) {
		this.id = id;
		this.accuracy = accuracy;
		this.sure = sure;
		this.priority = priority;
		this.target = target;
		this.price = price;
		this.charges = charges;
		this.ohko = ohko;
	}
}

const NO_TERMS = new HitTerms('', [1, true, 0, 'normal', 1, false, false]);

export class EncoderTables {
	/** @param {object} raw `encoder_tables(gen)` of host_tables.py, from JSON */
	constructor(raw) {
		this.gen = raw.gen;
		this.doubles = raw.doubles;
		this.layout = raw.layout;
		this.tracker = raw.tracker; // for SeatTracker
		this.damage = new DamageTables(raw.gen, raw.damage);
		this.hitTerms = new Map(Object.entries(raw.hit_terms).map(([id, terms]) => [id, new HitTerms(id, terms)])); // for bots
		this.species = new Map(Object.entries(raw.species));
		this.abilities = new Map(Object.entries(raw.ability));
		this.items = new Map(Object.entries(raw.item));
		this.types = new Map(Object.entries(raw.types));
		this.stellar = this.types.get('STELLAR');
		this.chart = raw.chart;
		this.sideSlots = new Map(Object.entries(raw.side_slots));
		this.weatherSlots = new Map(Object.entries(raw.weather_slots));
		this.terrainSlots = new Map(Object.entries(raw.terrain_slots));
		this.statusSlots = new Map(Object.entries(raw.status_slots));
		this.volatileSlots = new Map(Object.entries(raw.volatile_slots));
		this.immunities = new Map(Object.entries(raw.immunities));
		this.itemPower = new Map(Object.entries(raw.item_power));
		this.abilityPower = new Map(Object.entries(raw.ability_power));
		this.behindScreen = raw.behind_screen;
		this.bulk = new Map(Object.entries(raw.bulk));
		this.noItem = this.items.get(raw.no_item);
		this.moveRows = new Map(Object.entries(raw.move));
		this.moves = new Map(Object.entries(raw.moves).map(([id, numbers]) => [id, new MoveInfo(numbers)]));
		this.sets = raw.sets && new KnownSets(raw.sets, this.moves.values());
		this.teraBlast = this.moveRows.get('terablast');
	}

	// What a server spells otherwise than the data is not kept: it may be anything, in a process of many battles.

	/** Row of a move as requests spell it (`return102`, `hiddenpowerfire60`). */
	moveRow(name) {
		return this.moveRows.get(name) ?? this.moveRows.get(name.replace(POWER, '')) ?? 0;
	}

	/** Of a move as requests spell it; NO_TERMS for what the move data does not know, and for ''. */
	hitTermsOf(name) {
		return this.hitTerms.get(name) ?? this.hitTerms.get(moveId(name)) ?? NO_TERMS;
	}

	/** null for what the move data does not know (recharge, fight). */
	moveInfo(name) {
		return this.moves.get(name) ?? this.moves.get(dataName(name)) ?? null;
	}

	/** Row of an item: `unknown_item` is 0, nothing held (null or empty) has its own. */
	itemRow(item) {
		return item ? this.items.get(item) ?? 0 : this.noItem;
	}

	typeRow(name) {
		return name ? this.types.get(name.toUpperCase()) ?? 0 : 0;
	}
}

function dataName(name) {
	if (name.startsWith('hiddenpower')) return name.replace(POWER, '');
	if (name.startsWith('return')) return 'return';
	if (name.startsWith('frustration')) return 'frustration';
	return name;
}
