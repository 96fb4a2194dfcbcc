// The 12 Pokemon blocks: what each is (body) and how it stands against the opposing active one (pair).
// Written only when something they depend on has changed; the buffer keeps the rest. The same as blocks.py.

import { PokemonFeatures, PokemonBlock, sameFighter } from './pokemon_features.mjs';
import { foeProfile, ownProfile } from './expected_damage.mjs';
import { attack } from './expected_damage.mjs';
import { Factors, movesFirst } from './field_state.mjs';
import { PAIR, POKEMON } from './layout.mjs';

const TEAM_SIZE = 6;

/** What a team faced when its pairs were written last. */
class Facing {
	constructor() {
		this.profile = null;
		this.factors = new Factors();
		this.physicalScreen = this.specialScreen = 1;
		this.trickRoom = false;
	}

	/** Remember the situation; true if it was the same before. */
	same(profile, factors, side, trickRoom) {
		const physical = side.physicalTaken, special = side.specialTaken;
		const same = this.profile === profile && this.trickRoom === trickRoom && this.physicalScreen === physical &&
			this.specialScreen === special && (profile === null || this.factors.equals(factors));
		if (same) return true;
		this.profile = profile;
		this.trickRoom = trickRoom;
		this.physicalScreen = physical;
		this.specialScreen = special;
		if (profile !== null) this.factors.copy(factors);
		return false;
	}
}

export class TeamBlocks {
	/** @param {Float16Array} buffer one seat's observation */
	constructor(buffer, tables) {
		this.buffer = buffer;
		this.tables = tables;
		this.features = new PokemonFeatures(buffer, tables);
		this.own = Array.from({ length: TEAM_SIZE }, () => new PokemonBlock());
		this.foe = Array.from({ length: TEAM_SIZE }, () => new PokemonBlock());
		this.foes = 0; // foe blocks written last time
		this.ownFactors = new Factors();
		this.foeFactors = new Factors();
		this.benchFactors = new Factors();
		this.ownFacing = new Facing();
		this.foeFacing = new Facing();
	}

	writeOwnBodies(battle, team, out) {
		const { features, tables: { layout } } = this, { dirty } = battle;
		if (out >= 0) dirty.add(out);
		for (let i = 0; i < team.length; i++) {
			const mon = team[i], block = this.own[i];
			if (block.revealed === mon.revealed && block.version === mon.bodyVersion) continue;
			block.revealed = mon.revealed; // perhaps dragged in and gone again: its entry says nothing of that
			block.version = mon.bodyVersion;
			dirty.add(i);
		}
		for (const i of dirty) {
			const mon = team[i], entry = battle.entries[i], block = this.own[i];
			const at = layout.own_start + i * POKEMON.width;
			if (block.profile === null || block.profileVersion !== mon.profileVersion || !sameFighter(block.entry, entry)) {
				block.profileVersion = mon.profileVersion;
				block.profile = ownProfile(this.tables, mon, entry);
				features.writeIds(at, mon, block.profile, entry.item, entry.moves, block.profile.tera);
			}
			block.entry = entry;
			features.writeState(at, mon, block, mon.revealed);
			features.writeOwnPp(at, mon, entry.moves);
		}
		dirty.clear();
	}

	/** @param {number} met so many of them have been out; team preview has shown the others */
	writeFoeBodies(team, met) {
		const { features, tables: { layout: { foe_start: foeStart } } } = this, { width } = POKEMON;
		for (let i = team.length; i < this.foes; i++) { // fewer than last time: all that were brought have been out
			this.foe[i] = new PokemonBlock();
			this.buffer.fill(0, foeStart + i * width, foeStart + (i + 1) * width);
		}
		this.foes = team.length;
		for (let i = 0; i < team.length; i++) {
			const mon = team[i], block = this.foe[i], revealed = i < met, at = foeStart + i * width;
			if (block.mon !== mon) block.profileVersion = -1;
			else if (block.version === mon.bodyVersion && block.revealed === revealed) continue;
			block.mon = mon;
			block.revealed = revealed;
			block.version = mon.bodyVersion;
			if (block.profileVersion !== mon.profileVersion) {
				block.profileVersion = mon.profileVersion;
				block.profile = foeProfile(this.tables, mon);
				features.writeIds(at, mon, block.profile, mon.item, mon.moves.keys(), mon.terastallizedType);
			}
			features.writeState(at, mon, block, revealed);
			features.writeFoePp(at, mon);
		}
	}

	/** Writes the matchup of every Pokemon with the other side's active one. */
	writePairs(fieldState, own, foes, ownOut, foeOut) {
		const { trickRoom } = fieldState;
		if (ownOut >= 0) this.ownFactors.setActive(own[ownOut], this.own[ownOut].speed, fieldState.ownSide);
		if (foeOut >= 0) this.foeFactors.setActive(foes[foeOut], this.foe[foeOut].speed, fieldState.foeSide);
		const mine = ownOut >= 0 ? this.own[ownOut].profile : null;
		const theirs = foeOut >= 0 ? this.foe[foeOut].profile : null;
		const { own_start: ownStart, foe_start: foeStart } = this.tables.layout;
		let same = this.ownFacing.same(theirs, this.foeFactors, fieldState.ownSide, trickRoom);
		this.face(ownStart, this.own, own, ownOut, fieldState.ownSide, this.ownFactors, theirs, this.foeFactors, trickRoom, same);
		same = this.foeFacing.same(mine, this.ownFactors, fieldState.foeSide, trickRoom);
		this.face(foeStart, this.foe, foes, foeOut, fieldState.foeSide, this.foeFactors, mine, this.ownFactors, trickRoom, same);
	}

	face(start, blocks, team, out, side, activeFactors, facing, facingFactors, trickRoom, same) {
		const { buffer, tables: { chart } } = this, { at } = POKEMON;
		for (let i = 0; i < team.length; i++) {
			const block = blocks[i];
			let own = activeFactors;
			if (i !== out) {
				if (same && !block.fresh) continue;
				own = this.benchFactors;
				own.setBenched(team[i], block.speed, side);
			}
			block.fresh = i === out; // an active one's stages are gone when it leaves
			const to = start + i * POKEMON.width;
			if (facing === null) {
				buffer.fill(0, to + at.deals, to + at.deals + PAIR.width);
				continue;
			}
			const deals = attack(chart, block.profile, facing), takes = attack(chart, facing, block.profile);
			const dealt = Math.max(deals.physical * own.physicalDealt * facingFactors.physicalTaken,
				deals.special * own.specialDealt * facingFactors.specialTaken);
			const taken = Math.max(takes.physical * facingFactors.physicalDealt * own.physicalTaken,
				takes.special * facingFactors.specialDealt * own.specialTaken);
			buffer[to + at.deals] = Math.min(dealt, 1);
			buffer[to + at.deals_effectiveness] = deals.effectiveness / PAIR.scale.deals_effectiveness;
			buffer[to + at.takes] = Math.min(taken, 1);
			buffer[to + at.takes_effectiveness] = takes.effectiveness / PAIR.scale.takes_effectiveness;
			buffer[to + at.moves_first] = movesFirst(own.speed, facingFactors.speed, trickRoom);
		}
	}
}
