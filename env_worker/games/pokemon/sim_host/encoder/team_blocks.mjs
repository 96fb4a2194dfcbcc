// The 12 Pokemon blocks: what each is (body) and how it stands against the opposing active one (pair).
// Written only when something they depend on has changed; the buffer keeps the rest. The same as blocks.py.

import { Bodies, Card, sameFighter } from './bodies.mjs';
import { foeProfile, ownProfile } from './fighters.mjs';
import { attack } from './matchups.mjs';
import { Factors, TRICK_ROOM, movesFirst } from './scene.mjs';

const TEAM_SIZE = 6;
const PAIR_WIDTH = 5; // deals, deals_effectiveness, takes, takes_effectiveness, moves_first

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
		this.bodies = new Bodies(buffer, tables);
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
		const { bodies, tables: { layout } } = this, { dirty } = battle;
		if (out >= 0) dirty.add(out);
		for (let i = 0; i < team.length; i++) {
			const mon = team[i], card = this.own[i];
			if (card.revealed === mon.revealed && card.version === mon.bodyVersion) continue;
			card.revealed = mon.revealed; // perhaps dragged in and gone again: its entry says nothing of that
			card.version = mon.bodyVersion;
			dirty.add(i);
		}
		for (const i of dirty) {
			const mon = team[i], entry = battle.entries[i], card = this.own[i];
			const at = layout.own_start + i * layout.pokemon_width;
			if (card.profile === null || card.profileVersion !== mon.profileVersion || !sameFighter(card.entry, entry)) {
				card.profileVersion = mon.profileVersion;
				card.profile = ownProfile(this.tables, mon, entry);
				bodies.writeIds(at, mon, card.profile, entry.item, entry.moves, card.profile.tera);
			}
			card.entry = entry;
			bodies.writeState(at, mon, card, mon.revealed);
			bodies.writeOwnPp(at, mon, entry.moves);
		}
		dirty.clear();
	}

	/** @param {number} met so many of them have been out; team preview has shown the others */
	writeFoeBodies(team, met) {
		const { bodies, tables: { layout: { foe_start: foeStart, pokemon_width: width } } } = this;
		for (let i = team.length; i < this.foes; i++) { // fewer than last time: all that were brought have been out
			this.foe[i] = new Card();
			this.buffer.fill(0, foeStart + i * width, foeStart + (i + 1) * width);
		}
		this.foes = team.length;
		for (let i = 0; i < team.length; i++) {
			const mon = team[i], card = this.foe[i], revealed = i < met, at = foeStart + i * width;
			if (card.mon !== mon) card.profileVersion = -1;
			else if (card.version === mon.bodyVersion && card.revealed === revealed) continue;
			card.mon = mon;
			card.revealed = revealed;
			card.version = mon.bodyVersion;
			if (card.profileVersion !== mon.profileVersion) {
				card.profileVersion = mon.profileVersion;
				card.profile = foeProfile(this.tables, mon);
				bodies.writeIds(at, mon, card.profile, mon.item, mon.moves.keys(), mon.terastallizedType);
			}
			bodies.writeState(at, mon, card, revealed);
			bodies.writeFoePp(at, mon);
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
}
