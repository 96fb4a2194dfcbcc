// The first part of a Pokemon block: what it is, and in what state. The same as features.py.

import { ppLeft } from '../tracker/counters.mjs';
import { moveId } from '../tracker/dex.mjs';
import { baseSpeed } from './field_state.mjs';

const MOVE_IDS = 3; // place of the first move id in a block
const NUMBERS = 10; // place behind the ids
const STATUSES = 6;
const STATE = NUMBERS + 6 + STATUSES; // sleep_turns, resting, toxic_stage, level
const STATS = STATE + 4;
const MOVE_SLOTS = 4;
const MOVE_NUMBERS = 5; // power, accuracy, priority, physical, special
const PP = STATS + 6 + MOVE_SLOTS * MOVE_NUMBERS;
const LONGEST_SLEEP = 7, LAST_STAGE = 15;

/** What the encoder remembers of one Pokemon between decisions. */
export class PokemonBlock {
	constructor() {
		this.mon = null; // of a foe's: whom it is about
		this.profile = null;
		this.entry = null; // request entry the profile was made from
		this.version = -1; // of an own one: the profileVersion seen last; of a foe: the bodyVersion
		this.profileVersion = -1;
		this.speed = 0;
		this.revealed = false;
		this.fresh = true; // the body was written at this decision
	}
}

export class PokemonFeatures {
	/** @param {Float16Array} buffer one seat's observation */
	constructor(buffer, tables) {
		this.buffer = buffer;
		this.tables = tables;
	}

	/** The ids and the stats of the block at `at`: they change with the profile only. */
	writeIds(at, mon, profile, item, moveNames, tera) {
		const { buffer, tables } = this;
		buffer[at] = tables.species.get(mon.species) ?? 0;
		buffer[at + 1] = tables.abilities.get(profile.ability) ?? 0;
		buffer[at + 2] = tables.itemRow(item);
		let slot = 0;
		for (const name of moveNames) {
			if (slot === MOVE_SLOTS) break;
			buffer[at + MOVE_IDS + slot++] = tables.moveRow(name);
		}
		while (slot < MOVE_SLOTS) buffer[at + MOVE_IDS + slot++] = 0;
		buffer[at + 7] = profile.type1;
		buffer[at + 8] = profile.type2;
		buffer[at + 9] = tera;
		for (let i = 0; i < 6; i++) buffer[at + STATS + i] = Math.min(profile.stats[i] / 500, 1);
		for (let i = 0; i < MOVE_SLOTS; i++) {
			const stat = profile.moves[i]?.stat, first = at + STATS + 6 + i * MOVE_NUMBERS;
			for (let j = 0; j < MOVE_NUMBERS; j++) buffer[first + j] = stat ? stat[j] : 0;
		}
	}

	writeState(at, mon, block, revealed) {
		const { buffer, tables } = this;
		const { profile } = block;
		block.speed = baseSpeed(tables.gen, profile, mon);
		block.fresh = true;
		let to = at + NUMBERS;
		buffer[to++] = 1;
		buffer[to++] = mon.hp ? mon.hp / mon.maxHp : 0;
		buffer[to++] = mon.status === 'FNT' ? 1 : 0;
		buffer[to++] = mon.active ? 1 : 0;
		buffer[to++] = revealed ? 1 : 0;
		buffer[to++] = profile.terastallized ? 1 : 0;
		for (let i = 0; i < STATUSES; i++) buffer[to + i] = 0;
		const status = tables.statusSlots.get(mon.status);
		if (status !== undefined) buffer[to + status] = 1;
		const asleep = mon.status === 'SLP';
		buffer[at + STATE] = asleep ? Math.min(mon.asleep / LONGEST_SLEEP, 1) : 0;
		buffer[at + STATE + 1] = asleep && mon.resting ? 1 : 0;
		buffer[at + STATE + 2] = mon.status === 'TOX' ? Math.min(Math.max(mon.hurt, 0) / LAST_STAGE, 1) : 0;
		buffer[at + STATE + 3] = profile.level / 100;
	}

	/** By the slots of a request entry; a move without an object is unused. */
	writeOwnPp(at, mon, names) {
		let slot = 0;
		for (; slot < names.length && slot < MOVE_SLOTS; slot++) {
			const move = mon.moves.get(moveId(names[slot]));
			this.buffer[at + PP + slot] = move === undefined ? 1 : ppLeft(move);
		}
		this.buffer.fill(0, at + PP + slot, at + PP + MOVE_SLOTS);
	}

	/** Of the moves that a foe has shown. */
	writeFoePp(at, mon) {
		let slot = 0;
		for (const move of mon.moves.values()) {
			if (slot === MOVE_SLOTS) break;
			this.buffer[at + PP + slot++] = ppLeft(move);
		}
		this.buffer.fill(0, at + PP + slot, at + PP + MOVE_SLOTS);
	}
}

/** Whether two request entries of a Pokemon describe the same fighter. */
export function sameFighter(a, b) {
	if (a === b) return true;
	if (a.item !== b.item || a.ability !== b.ability || a.baseAbility !== b.baseAbility ||
		a.terastallized !== b.terastallized || a.teraType !== b.teraType || a.moves.length !== b.moves.length) return false;
	for (let i = 0; i < a.moves.length; i++) if (a.moves[i] !== b.moves[i]) return false;
	const x = a.stats, y = b.stats;
	return x.atk === y.atk && x.def === y.def && x.spa === y.spa && x.spd === y.spd && x.spe === y.spe;
}
