// The 12 Pokemon blocks: what each is (body) and how it stands against each opposing active one (pair).
// Written only when something they depend on has changed; the buffer keeps the rest.

import { PokemonFeatures, PokemonBlock, sameFighter } from './pokemon_features.mjs';
import { attack, foeProfile, knockOutChance, ownProfile, rollStep } from './expected_damage.mjs';
import { Factors, movesFirst } from './field_state.mjs';
import { PAIR } from './layout.mjs';
import { TEAM_SIZE } from './survey.mjs';

/** A Pokemon on the field; `mon` null = none. */
class Fighter {
	constructor() {
		this.mon = null;
		this.profile = null;
		this.factors = new Factors();
	}

	/** @param {number} i place in the team, -1 = none */
	set(team, blocks, i, side) {
		this.mon = i < 0 ? null : team[i];
		this.profile = i < 0 ? null : blocks[i].profile;
		if (i >= 0) this.factors.setActive(team[i], blocks[i].speed, side);
	}
}

/** What a team faced in one place when its pairs were written last. */
class Facing {
	constructor() {
		this.profile = null;
		this.factors = new Factors();
		this.physicalScreen = this.specialScreen = this.wind = 1;
		this.hp = 0; // its own, where a move takes a share of it
		this.trickRoom = false;
		this.same = false; // as it was at the decision before
	}

	/** Remember the situation; true if it was the same before. @param {boolean} shares whether its hp matters */
	read({ mon, profile, factors }, side, trickRoom, shares) {
		const physical = side.physicalTaken, special = side.specialTaken, hp = shares ? hpOf(mon) : 0;
		this.same = this.profile === profile && this.trickRoom === trickRoom && this.physicalScreen === physical &&
			this.specialScreen === special && this.wind === side.wind && this.hp === hp && (profile === null || this.factors.equals(factors));
		if (this.same) return true;
		this.profile = profile;
		this.hp = hp;
		this.trickRoom = trickRoom;
		this.physicalScreen = physical;
		this.specialScreen = special;
		this.wind = side.wind;
		if (profile !== null) this.factors.copy(factors);
		return false;
	}
}

export class TeamBlocks {
	/**
	 * @param {Float16Array} buffer one seat's observation
	 * @param {object} fields of a block: POKEMON or DOUBLES_POKEMON
	 * @param {number[]} pairs where in a block the numbers against each opponent begin
	 */
	constructor(buffer, tables, fields, pairs) {
		this.buffer = buffer;
		this.tables = tables;
		this.width = fields.width;
		this.pairs = pairs;
		this.features = new PokemonFeatures(buffer, tables, fields);
		this.own = Array.from({ length: TEAM_SIZE }, () => new PokemonBlock());
		this.foe = Array.from({ length: TEAM_SIZE }, () => new PokemonBlock());
		this.foes = 0; // foe blocks written last time
		this.ownFighters = pairs.map(() => new Fighter());
		this.foeFighters = pairs.map(() => new Fighter());
		this.ownFacings = pairs.map(() => new Facing());
		this.foeFacings = pairs.map(() => new Facing());
		this.benchFactors = new Factors();
	}

	/** Those that `battle.dirty` names, and those that lines have changed. */
	writeOwnBodies(battle, team) {
		const { features, tables: { layout } } = this, { dirty } = battle;
		for (let i = 0; i < team.length; i++) {
			const mon = team[i], block = this.own[i];
			if (block.revealed === mon.revealed && block.version === mon.bodyVersion) continue;
			block.revealed = mon.revealed; // perhaps dragged in and gone again: its entry says nothing of that
			block.version = mon.bodyVersion;
			dirty.add(i);
		}
		for (const i of dirty) {
			const mon = team[i], entry = battle.entries[i], block = this.own[i];
			const at = layout.own_start + i * this.width;
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
		const { features, width, tables: { layout: { foe_start: foeStart } } } = this;
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

	/** @param {number[]} ownOut, foeOut of each place of the field: the team place of the Pokemon there, -1 = none */
	stand(fieldState, own, foes, ownOut, foeOut) {
		this.ownFighters.forEach((fighter, place) => fighter.set(own, this.own, ownOut[place], fieldState.ownSide));
		this.foeFighters.forEach((fighter, place) => fighter.set(foes, this.foe, foeOut[place], fieldState.foeSide));
	}

	/** Writes the matchup of every Pokemon with the other side's active ones. */
	writePairs({ ownSide, foeSide, trickRoom }, own, foes) {
		const { ownFighters, foeFighters, tables: { layout } } = this;
		this.face(layout.own_start, this.own, own, ownFighters, ownSide, foeFighters, this.ownFacings, trickRoom);
		this.face(layout.foe_start, this.foe, foes, foeFighters, foeSide, ownFighters, this.foeFacings, trickRoom);
	}

	face(start, blocks, team, fighters, side, opponents, facings, trickRoom) {
		let all = true, shares = false;
		for (let i = 0; i < team.length; i++) if (blocks[i].profile.shares) shares = true;
		for (let place = 0; place < opponents.length; place++) {
			if (!facings[place].read(opponents[place], side, trickRoom, shares)) all = false;
		}
		for (let i = 0; i < team.length; i++) {
			const block = blocks[i], fighter = fighterOf(fighters, team[i]);
			const written = fighter === null && !block.fresh; // or its own factors may have changed
			if (written && all) continue;
			const factors = fighter === null ? this.benchFactors : fighter.factors;
			if (fighter === null) factors.setBenched(team[i], block.speed, side);
			block.fresh = fighter !== null; // an active one's stages are gone when it leaves
			for (let place = 0; place < opponents.length; place++) {
				if (written && facings[place].same) continue;
				const to = start + i * this.width + this.pairs[place];
				this.writePair(to, team[i], block.profile, factors, opponents[place], trickRoom);
			}
		}
	}

	writePair(to, mon, profile, factors, opponent, trickRoom) {
		const { buffer, tables: { chart } } = this, { at, scale } = PAIR;
		if (opponent.mon === null) {
			buffer.fill(0, to, to + PAIR.width);
			return;
		}
		const { profile: other, factors: facing } = opponent;
		const deals = attack(chart, profile, other), takes = attack(chart, other, profile), hp = hpOf(mon);
		buffer[to + at.deals] = Math.min(deals.dealt(factors, facing, hpOf(opponent.mon)), 1);
		buffer[to + at.deals_effectiveness] = deals.effectiveness / scale.deals_effectiveness;
		buffer[to + at.takes] = Math.min(takes.dealt(facing, factors, hp), 1);
		buffer[to + at.takes_effectiveness] = takes.effectiveness / scale.takes_effectiveness;
		buffer[to + at.moves_first] = movesFirst(factors.speed, facing.speed, trickRoom);
		this.writeThreat(to, takes.threats, facing, factors, hp);
	}

	writeThreat(to, threats, facing, factors, hp) {
		const { buffer } = this, { at } = PAIR;
		let largest = 0, chance = 0, falls = 0;
		for (let i = 0; i < threats.length; i++) { // those that have been shown, then the likeliest
			const threat = threats[i], dealt = threat.dealt(facing, factors, hp);
			const expected = Math.min(dealt * threat.accuracy, 1);
			if (expected > largest) {
				largest = expected;
				chance = threat.chance;
			}
			const sure = threat.chance * threat.accuracy;
			if (sure > falls) falls = Math.max(falls, sure * knockOutChance(dealt, threat.fixed ? 0 : rollStep(dealt), hp));
		}
		buffer[to + at.threat] = largest;
		buffer[to + at.threat_chance] = chance;
		buffer[to + at.falls] = falls;
	}
}

/** Fraction, 0 of none. */
function hpOf(mon) {
	return mon !== null && mon.hp ? mon.hp / mon.maxHp : 0;
}

/** The one of two that this Pokemon is, null = it stands on the bench. */
function fighterOf(fighters, mon) {
	for (const fighter of fighters) if (fighter.mon === mon) return fighter;
	return null;
}
