// The first part of a Pokemon block: what it is, and in what state.

import { ppLeft } from '../tracker/counters.mjs';
import { moveId } from '../tracker/dex.mjs';
import { baseSpeed } from './field_state.mjs';
import { MOVE, POKEMON } from './layout.mjs';

const { scale: SCALE, size: SIZE } = POKEMON;
const MOVE_SLOTS = SIZE.moves;
const STATIC = MOVE.at.power; // where the numbers of a move begin that a MoveInfo holds
// Of each known move: power, accuracy, priority, physical, special, as places in these.
const KNOWN = [MOVE.at.power, MOVE.at.accuracy, MOVE.at.priority, MOVE.at.category, MOVE.at.category + 1]
	.map(at => at - STATIC);

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
	/** @param {Float16Array} buffer one seat's observation; @param {object} fields POKEMON or DOUBLES_POKEMON */
	constructor(buffer, tables, fields) {
		this.buffer = buffer;
		this.tables = tables;
		this.at = fields.at;
	}

	/** The ids and the stats of the block at `start`: they change with the profile only. */
	writeIds(start, mon, profile, item, moveNames, tera) {
		const { buffer, tables, at } = this;
		buffer[start + at.species] = tables.species.get(mon.species) ?? 0;
		buffer[start + at.ability] = tables.abilities.get(profile.ability) ?? 0;
		buffer[start + at.item] = tables.itemRow(item);
		let slot = 0;
		for (const name of moveNames) {
			if (slot === MOVE_SLOTS) break;
			buffer[start + at.moves + slot++] = tables.moveRow(name);
		}
		while (slot < MOVE_SLOTS) buffer[start + at.moves + slot++] = 0;
		buffer[start + at.types] = profile.type1;
		buffer[start + at.types + 1] = profile.type2;
		buffer[start + at.tera_type] = tera;
		for (let i = 0; i < SIZE.stats; i++) buffer[start + at.stats + i] = Math.min(profile.stats[i] / SCALE.stats, 1);
		if (at.moves_known === undefined) return;
		for (let i = 0; i < MOVE_SLOTS; i++) {
			const stat = profile.moves[i]?.stat, first = start + at.moves_known + i * KNOWN.length;
			for (let j = 0; j < KNOWN.length; j++) buffer[first + j] = stat ? stat[KNOWN[j]] : 0;
		}
	}

	writeState(start, mon, block, revealed) {
		const { buffer, tables, at } = this;
		const { profile } = block;
		block.speed = baseSpeed(tables.gen, profile, mon);
		block.fresh = true;
		buffer[start + at.present] = 1;
		buffer[start + at.hp] = mon.hp ? mon.hp / mon.maxHp : 0;
		buffer[start + at.fainted] = mon.status === 'FNT' ? 1 : 0;
		buffer[start + at.active] = mon.active ? 1 : 0;
		buffer[start + at.revealed] = revealed ? 1 : 0;
		buffer[start + at.terastallized] = profile.terastallized ? 1 : 0;
		for (let i = 0; i < SIZE.status; i++) buffer[start + at.status + i] = 0;
		const status = tables.statusSlots.get(mon.status);
		if (status !== undefined) buffer[start + at.status + status] = 1;
		const asleep = mon.status === 'SLP';
		buffer[start + at.sleep_turns] = asleep ? Math.min(mon.asleep / SCALE.sleep_turns, 1) : 0;
		buffer[start + at.resting] = asleep && mon.resting ? 1 : 0;
		buffer[start + at.toxic_stage] = mon.status === 'TOX' ? Math.min(Math.max(mon.hurt, 0) / SCALE.toxic_stage, 1) : 0;
		buffer[start + at.level] = profile.level / SCALE.level;
	}

	/** By the slots of a request entry; a move without an object is unused. */
	writeOwnPp(start, mon, names) {
		const { at } = this;
		let slot = 0;
		for (; slot < names.length && slot < MOVE_SLOTS; slot++) {
			const move = mon.moves.get(moveId(names[slot]));
			this.buffer[start + at.moves_pp + slot] = move === undefined ? 1 : ppLeft(move);
		}
		this.buffer.fill(0, start + at.moves_pp + slot, start + at.moves_pp + MOVE_SLOTS);
	}

	/** Of the moves that a foe has shown. */
	writeFoePp(start, mon) {
		const { at } = this;
		let slot = 0;
		for (const move of mon.moves.values()) {
			if (slot === MOVE_SLOTS) break;
			this.buffer[start + at.moves_pp + slot++] = ppLeft(move);
		}
		this.buffer.fill(0, start + at.moves_pp + slot, start + at.moves_pp + MOVE_SLOTS);
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
