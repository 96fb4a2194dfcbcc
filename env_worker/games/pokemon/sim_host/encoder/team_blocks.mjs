// The 12 Pokemon blocks: what each is (body) and how it stands against the opposing active one (pair).
// Written only when something they depend on has changed; the buffer keeps the rest. The same as blocks.py.

import { foeProfile, ownProfile } from './fighters.mjs';
import { attack } from './matchups.mjs';
import { Factors, TRICK_ROOM, baseSpeed, movesFirst } from './scene.mjs';

const TEAM_SIZE = 6;
const PAIR_WIDTH = 5; // deals, deals_effectiveness, takes, takes_effectiveness, moves_first
const MOVE_IDS = 3; // place of the first move id in a block
const NUMBERS = 10; // place behind the ids
const MOVE_SLOTS = 4;
const MOVE_NUMBERS = 5; // power, accuracy, priority, physical, special

/** What the encoder remembers of one Pokemon between decisions. */
class Card {
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

/** What a team faced when its pairs were written last. */
class Facing {
	constructor() {
		this.profile = null;
		this.factors = new Factors();
		this.screens = [0, 0, 0];
		this.trickRoom = false;
	}

	/** Remember the situation; true if it was the same before. */
	same(profile, factors, side, trickRoom) {
		const screens = this.screens;
		const same = this.profile === profile && this.trickRoom === trickRoom && screens[0] === side[4] &&
			screens[1] === side[5] && screens[2] === side[6] && (profile === null || this.factors.equals(factors));
		if (same) return true;
		this.profile = profile;
		this.trickRoom = trickRoom;
		screens[0] = side[4];
		screens[1] = side[5];
		screens[2] = side[6];
		if (profile !== null) this.factors.copy(factors);
		return false;
	}
}

export class TeamBlocks {
	/** @param {Float16Array} buffer one seat's observation */
	constructor(buffer, tables) {
		this.buffer = buffer;
		this.tables = tables;
		this.own = Array.from({ length: TEAM_SIZE }, () => new Card());
		this.foe = Array.from({ length: TEAM_SIZE }, () => new Card());
		this.foes = 0; // foe blocks written last time
		this.ownFactors = new Factors();
		this.foeFactors = new Factors();
		this.benchFactors = new Factors();
		this.ownFacing = new Facing();
		this.foeFacing = new Facing();
		this.pairStart = tables.layout.pokemon_width - PAIR_WIDTH;
	}

	writeOwnBodies(battle, team, out) {
		const dirty = battle.dirty, ownStart = this.tables.layout.own_start;
		if (out >= 0) dirty.add(out);
		for (let i = 0; i < team.length; i++) {
			if (team[i].revealed !== this.own[i].revealed) { // dragged in and gone again
				this.own[i].revealed = team[i].revealed;
				dirty.add(i);
			}
		}
		for (const i of dirty) {
			const mon = team[i], entry = battle.entries[i], card = this.own[i];
			if (card.profile === null || card.profileVersion !== mon.profileVersion || !sameFighter(card.entry, entry)) {
				card.profileVersion = mon.profileVersion;
				card.profile = ownProfile(this.tables, mon, entry);
				this.writeIds(ownStart, i, mon, card.profile, entry.item, entry.moves, card.profile.tera);
			}
			card.entry = entry;
			this.writeBody(ownStart, i, mon, card, mon.revealed);
		}
		dirty.clear();
	}

	/** @param {number} met so many of them have been out; team preview has shown the others */
	writeFoeBodies(team, met) {
		const { foe_start: foeStart, pokemon_width: width } = this.tables.layout;
		for (let i = team.length; i < this.foes; i++) { // fewer than last time: all that were brought have been out
			this.foe[i] = new Card();
			this.buffer.fill(0, foeStart + i * width, foeStart + (i + 1) * width);
		}
		this.foes = team.length;
		for (let i = 0; i < team.length; i++) {
			const mon = team[i], card = this.foe[i], revealed = i < met;
			if (card.mon !== mon) card.profileVersion = -1;
			else if (card.version === mon.bodyVersion && card.revealed === revealed) continue;
			card.mon = mon;
			card.revealed = revealed;
			card.version = mon.bodyVersion;
			if (card.profileVersion !== mon.profileVersion) {
				card.profileVersion = mon.profileVersion;
				card.profile = foeProfile(this.tables, mon);
				this.writeIds(foeStart, i, mon, card.profile, mon.item, mon.moves.keys(), mon.terastallizedType);
			}
			this.writeBody(foeStart, i, mon, card, revealed);
		}
	}

	/** How every Pokemon stands against the other side's active one. */
	writePairs(scene, own, foes, ownOut, foeOut) {
		const trickRoom = scene.field[TRICK_ROOM] === 1;
		if (ownOut >= 0) this.ownFactors.setActive(own[ownOut], this.own[ownOut].speed, scene.ownSide);
		if (foeOut >= 0) this.foeFactors.setActive(foes[foeOut], this.foe[foeOut].speed, scene.foeSide);
		const mine = ownOut >= 0 ? this.own[ownOut].profile : null;
		const theirs = foeOut >= 0 ? this.foe[foeOut].profile : null;
		const { own_start: ownStart, foe_start: foeStart } = this.tables.layout;
		let same = this.ownFacing.same(theirs, this.foeFactors, scene.ownSide, trickRoom);
		this.face(ownStart, this.own, own, ownOut, scene.ownSide, this.ownFactors, theirs, this.foeFactors, trickRoom, same);
		same = this.foeFacing.same(mine, this.ownFactors, scene.foeSide, trickRoom);
		this.face(foeStart, this.foe, foes, foeOut, scene.foeSide, this.foeFactors, mine, this.ownFactors, trickRoom, same);
	}

	face(start, cards, team, out, side, activeFactors, facing, facingFactors, trickRoom, same) {
		const { buffer, tables: { chart, layout } } = this;
		for (let i = 0; i < team.length; i++) {
			const card = cards[i];
			let own = activeFactors;
			if (i !== out) {
				if (same && !card.fresh) continue;
				own = this.benchFactors;
				own.setBenched(team[i], card.speed, side);
			}
			card.fresh = i === out; // an active one's stages are gone when it leaves
			const at = start + i * layout.pokemon_width + this.pairStart;
			if (facing === null) {
				buffer.fill(0, at, at + PAIR_WIDTH);
				continue;
			}
			const deals = attack(chart, card.profile, facing), takes = attack(chart, facing, card.profile);
			const dealt = Math.max(deals.physical * own.physicalDealt * facingFactors.physicalTaken,
				deals.special * own.specialDealt * facingFactors.specialTaken);
			const taken = Math.max(takes.physical * facingFactors.physicalDealt * own.physicalTaken,
				takes.special * facingFactors.specialDealt * own.specialTaken);
			buffer[at] = Math.min(dealt, 1);
			buffer[at + 1] = deals.effectiveness / 4;
			buffer[at + 2] = Math.min(taken, 1);
			buffer[at + 3] = takes.effectiveness / 4;
			buffer[at + 4] = movesFirst(own.speed, facingFactors.speed, trickRoom);
		}
	}

	/** The ids and the stats of a block: they change with the profile only. */
	writeIds(start, index, mon, profile, item, moveNames, tera) {
		const { buffer, tables } = this;
		const at = start + index * tables.layout.pokemon_width;
		buffer[at] = tables.species.get(mon.species) ?? 0;
		buffer[at + 1] = tables.abilities.get(profile.ability) ?? 0;
		buffer[at + 2] = tables.itemRow(item);
		let slot = 0;
		for (const name of moveNames) {
			if (slot === 4) break;
			buffer[at + MOVE_IDS + slot++] = tables.moveRow(name);
		}
		while (slot < 4) buffer[at + MOVE_IDS + slot++] = 0;
		buffer[at + 7] = profile.type1;
		buffer[at + 8] = profile.type2;
		buffer[at + 9] = tera;
		for (let i = 0; i < 6; i++) buffer[at + NUMBERS + 14 + i] = Math.min(profile.stats[i] / 500, 1);
		for (let i = 0; i < MOVE_SLOTS; i++) {
			const stat = profile.moves[i]?.stat, first = at + NUMBERS + 20 + i * MOVE_NUMBERS;
			for (let j = 0; j < MOVE_NUMBERS; j++) buffer[first + j] = stat ? stat[j] : 0;
		}
	}

	writeBody(start, index, mon, card, revealed) {
		const { buffer, tables } = this;
		const profile = card.profile;
		card.speed = baseSpeed(tables.gen, profile, mon);
		card.fresh = true;
		let at = start + index * tables.layout.pokemon_width + NUMBERS;
		buffer[at++] = 1;
		buffer[at++] = mon.hp ? mon.hp / mon.maxHp : 0;
		buffer[at++] = mon.status === 'FNT' ? 1 : 0;
		buffer[at++] = mon.active ? 1 : 0;
		buffer[at++] = revealed ? 1 : 0;
		buffer[at++] = profile.terastallized ? 1 : 0;
		for (let i = 0; i < 6; i++) buffer[at + i] = 0;
		const status = tables.statusSlots.get(mon.status);
		if (status !== undefined) buffer[at + status] = 1;
		buffer[at + 6] = Math.min(mon.statusCounter / 8, 1);
		buffer[at + 7] = profile.level / 100;
	}
}

/** Whether two request entries of a Pokemon describe the same fighter. */
function sameFighter(a, b) {
	if (a === b) return true;
	if (a.item !== b.item || a.ability !== b.ability || a.baseAbility !== b.baseAbility ||
		a.terastallized !== b.terastallized || a.teraType !== b.teraType || a.moves.length !== b.moves.length) return false;
	for (let i = 0; i < a.moves.length; i++) if (a.moves[i] !== b.moves[i]) return false;
	const x = a.stats, y = b.stats;
	return x.atk === y.atk && x.def === y.def && x.spa === y.spa && x.spd === y.spd && x.spe === y.spe;
}
