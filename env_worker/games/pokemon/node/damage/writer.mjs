// Writes the damage numbers of one seat: own attackers on revealed foes. What did not change since the seat's last
// decision stays where it stands.

import { CachedTarget, CachedUser } from './cache.mjs';
import { Surroundings } from './from_battle.mjs';
import { PAIR_NUMBERS, Pairs, VARIANCE_UNIT } from './pairs.mjs';
import { knockOutChance } from '../encoder/expected_damage.mjs';
import { POKEMON } from '../encoder/layout.mjs';

const TEAM_SIZE = 6;
const ONE = 0x3C00; // 1 as float16
const NO_SCREENS = [];
const STEPS = 12 / (16 ** 2 - 1); // the squared distance of 16 equally likely rolls, of their variance

export class DamageBlock {
	/** @param {Float16Array} buffer one seat's observation */
	constructor(buffer, tables) {
		this.buffer = buffer;
		this.words = new Uint16Array(buffer.buffer, buffer.byteOffset, buffer.length); // the same bits, copied as they are
		this.layout = tables.layout;
		this.tables = tables.damage;
		this.pairs = new Pairs(this.tables);
		this.users = Array.from({ length: TEAM_SIZE }, () => new CachedUser());
		this.targets = Array.from({ length: TEAM_SIZE }, () => new CachedTarget());
		this.around = new Surroundings();
		this.screens = NO_SCREENS;
		this.screenBits = 0;
		this.setting = 1; // version of surroundings and screens
		this.versions = 0;
		const places = this.layout.attackers;
		this.who = []; // team positions of the attackers
		this.leads = new Array(places).fill(-1); // of each place: who is named there
		this.front = -1; // where the active one's numbers on the foe's active one begin, -1: there are none
		this.shown = new Array(2 * places * TEAM_SIZE).fill(0); // versions of user and target whose numbers stand there
	}

	/** All of the block; features and pairs of the teams must have been written. */
	write(battle, teams, own, foes, ownOut, foeOut) {
		const { who, targets, layout: { attackers } } = this;
		const fallen = this.choose(own, ownOut);
		this.readField(battle, abilityOf(teams.own, ownOut), abilityOf(teams.foe, foeOut));
		const exact = this.readUsers(battle, teams.own, own, ownOut, fallen);
		for (let j = 0; j < foes.length; j++) {
			if (foes[j].status === 'FNT') continue;
			const changed = targets[j].see(this.tables, foes[j], teams.foe[j].profile, exact, j === foeOut, this.setting);
			if (changed) targets[j].version = ++this.versions;
		}
		for (let place = 0; place < attackers; place++) {
			const named = attackers === TEAM_SIZE ? who.includes(place) : place < who.length;
			this.writePlace(place, !named ? -1 : attackers === TEAM_SIZE ? place : who[place], foes);
		}
		this.front = ownOut < 0 || foeOut < 0 || own[ownOut].status === 'FNT' ? -1 : this.placeOf(ownOut, foeOut);
	}

	/** Where the numbers of the active one on a foe begin. */
	placeOf(ownOut, j) {
		const { damage_start: start, damage_width: width, damage_lead: lead, attackers } = this.layout;
		return start + (attackers === TEAM_SIZE ? ownOut : 0) * width + lead + j * PAIR_NUMBERS;
	}

	/** Chance that a move of the active one, if it hits, takes `hp` (fraction) of the foe's active one. */
	knockOutChance(slot, hp) {
		if (this.front < 0) return 0;
		const at = this.front + 2 * slot;
		return knockOutChance(this.buffer[at], Math.sqrt(STEPS * VARIANCE_UNIT * this.buffer[at + 1]), hp);
	}

	/** Weather, terrain and screens; all of them get one version. */
	readField(battle, ownAbility, foeAbility) {
		const { tables } = this, conditions = battle.opponentSideConditions;
		let bits = 0;
		if (conditions.size) for (const name of conditions.keys()) bits |= tables.screenBits.get(name) ?? 0;
		if (bits !== this.screenBits) {
			this.screenBits = bits;
			this.screens = tables.screensOf(bits);
			this.setting++;
		}
		if (this.around.read(tables, battle, ownAbility, foeAbility)) this.setting++;
	}

	/** Brings the attackers up to date; true if one of their moves asks for a foe's hp. */
	readUsers(battle, blocks, own, ownOut, fallen) {
		const { tables, users } = this;
		let exact = false;
		for (const i of this.who) {
			const user = users[i], { profile } = blocks[i];
			user.list(tables, profile, battle.entries[i].moves);
			exact ||= user.foesHp;
			const changed = user.see(tables, own[i], profile, i === ownOut, fallen, battle.usedTera, this.setting);
			if (changed) user.version = ++this.versions;
		}
		return exact;
	}

	/** @param {number} i team position of the attacker, -1: none */
	writePlace(place, i, foes) {
		const { words, layout: { damage_start: start, damage_width: width, damage_lead: lead }, leads } = this;
		const at = start + width * place;
		if (lead && leads[place] !== i) {
			if (leads[place] >= 0) words[at + leads[place]] = 0;
			if (i >= 0) words[at + i] = ONE;
			leads[place] = i;
		}
		for (let j = 0; j < TEAM_SIZE; j++) {
			const there = i >= 0 && j < foes.length && foes[j].status !== 'FNT';
			this.writePair(place * TEAM_SIZE + j, at + lead + j * PAIR_NUMBERS, there ? i : -1, j);
		}
	}

	/** Numbers of a user on a target, or zeros; nothing where they stand already. */
	writePair(slot, at, i, j) {
		const { shown, words, pairs } = this;
		const user = i >= 0 ? this.users[i] : null, target = this.targets[j];
		const first = user === null ? 0 : user.version, second = user === null ? 0 : target.version;
		if (shown[2 * slot] === first && shown[2 * slot + 1] === second) return;
		shown[2 * slot] = first;
		shown[2 * slot + 1] = second;
		if (user === null) {
			words.fill(0, at, at + PAIR_NUMBERS);
			return;
		}
		const from = pairs.find(i * TEAM_SIZE + j, user, target, this.around, this.screens), known = pairs.words;
		for (let k = 0; k < PAIR_NUMBERS; k++) words[at + k] = known[from + k];
	}

	/**
	 * Fills `who`: all that live, or the active one and who stands best against the foe.
	 * Returns how many have fainted.
	 */
	choose(own, ownOut) {
		const { who, layout: { attackers } } = this;
		let fallen = 0;
		who.length = 0;
		for (let i = 0; i < own.length; i++) {
			if (own[i].status === 'FNT') fallen++;
			else if (attackers === TEAM_SIZE) who.push(i);
		}
		if (attackers === TEAM_SIZE) return fallen;
		if (ownOut >= 0 && own[ownOut].status !== 'FNT') who.push(ownOut);
		for (let taken = 1; taken < attackers; taken++) {
			let best = -1, least = 0;
			for (let i = 0; i < own.length; i++) {
				if (i === ownOut || own[i].status === 'FNT' || who.includes(i)) continue;
				const standing = this.standing(i);
				if (best >= 0 && standing >= least) continue;
				best = i;
				least = standing;
			}
			if (best >= 0) who.push(best);
		}
		return fallen;
	}

	/** What it takes less what it deals, as just written: the least is the likeliest switch. */
	standing(index) {
		const start = this.layout.own_start + index * POKEMON.width, { deals, takes } = POKEMON.at;
		return this.buffer[start + takes] - this.buffer[start + deals];
	}
}

function abilityOf(blocks, out) {
	return out >= 0 ? blocks[out].profile.ability : '';
}
