// Writes the damage numbers of one seat: own attackers on revealed foes, remembered until something they depend on changes.
// The same as damage/block.py and damage/writer.py.

import { Fighter, Surroundings, stateOf } from './fighters.mjs';
import { Formula } from './formula.mjs';
import { Target } from './targets.mjs';
import { Weapon } from './weapons.mjs';

const TEAM_SIZE = 6, MOVES = 4, GUISES = 2;
const PAIR_NUMBERS = GUISES * MOVES * 2;
const MOST_DAMAGE = 2, VARIANCE_UNIT = 0.01, MOST_VARIANCE = 4;
const MOST_PAIRS = 2048; // remembered at once
const USER_HP = 6, PINCH = 7, FALLEN = 10, TARGET_HP = 5, HALVED_HP = 11; // kinds of power
const TARGET_SHARE = 3, TO_USERS_HP = 5, USERS_HP = 6; // fixed damage
const NO_SCREENS = [];

const wantsOwnHp = move => move !== null && (move.powerKind === USER_HP || move.powerKind === PINCH ||
	move.fixed === TO_USERS_HP || move.fixed === USERS_HP);
const wantsFoesHp = move => move !== null && (move.powerKind === TARGET_HP ||
	move.powerKind === HALVED_HP || move.fixed === TARGET_SHARE || move.fixed === TO_USERS_HP);
const wantsFallen = move => move !== null && move.powerKind === FALLEN;

/** A user or a target that was met, with what was made of it. */
class Side {
	constructor(number, fighter) {
		this.number = number;
		this.fighter = fighter;
		this.arms = null; // [place of the numbers, Weapon] of each move in each guise
		this.targets = null; // Target, and the same without its ability
	}
}

class Sides {
	constructor() {
		this.byKey = new Map();
		this.seen = new Map(); // Mon -> what it was looked up with last
	}

	clear() {
		this.byKey.clear();
		this.seen.clear();
	}
}

export class DamageBlock {
	/** @param {Float16Array} buffer one seat's observation */
	constructor(buffer, tables) {
		this.buffer = buffer;
		this.layout = tables.layout;
		this.tables = tables.damage;
		this.formula = new Formula(this.tables);
		this.pairs = new Map(); // user's number and target's -> Float16Array
		this.users = new Sides();
		this.targets = new Sides();
		this.moves = new WeakMap();
	}

	/** All of the block; bodies and pairs must have been written. */
	write(battle, teams, own, foes, ownOut, foeOut) {
		if (this.pairs.size > MOST_PAIRS) this.forget();
		const who = this.choose(own, ownOut);
		const moves = who.map(i => this.movesOf(battle.entries[i]));
		const around = new Surroundings(this.tables, battle, abilityOf(teams.own, ownOut), abilityOf(teams.foe, foeOut));
		const exact = moves.some(known => known.foesHp);
		const screens = this.screens(battle.opponentSideConditions);
		const more = `;${around.key};${screens}`;
		const targets = foes.map((mon, j) => mon.status === 'FNT' ? null :
			this.side(this.targets, mon, teams.foe[j].profile, exact, j === foeOut, 0, more));
		const { damage_start: start, damage_width: width, damage_lead: lead, attackers } = this.layout;
		this.buffer.fill(0, start, start + attackers * width);
		for (let place = 0; place < who.length; place++) {
			const i = who[place], at = start + width * (attackers === TEAM_SIZE ? i : place);
			if (lead) this.buffer[at + i] = 1;
			const user = this.user(battle, own, i, teams.own[i].profile, moves[place], i === ownOut, around);
			for (let j = 0; j < targets.length; j++) {
				if (targets[j] === null) continue;
				this.buffer.set(this.pair(user, targets[j], around, screens), at + lead + j * PAIR_NUMBERS);
			}
		}
	}

	forget() {
		this.pairs.clear();
		this.users.clear();
		this.targets.clear();
	}

	user(battle, own, i, profile, moves, out, around) {
		const down = moves.fallen ? own.reduce((count, mon) => count + (mon.status === 'FNT'), 0) : 0;
		const { gen } = this.tables;
		const canTera = gen === 9 && !battle.usedTera && profile.tera > 0 && !profile.terastallized;
		const user = this.side(this.users, own[i], profile, moves.ownHp, out, down, `;${around.key};${canTera};${moves.key}`);
		user.arms ??= this.arm(user.fighter, moves.list, canTera, around);
		return user;
	}

	/** The damaging moves of an own Pokemon by slot, and what they ask for. */
	movesOf(entry) {
		let moves = this.moves.get(entry.moves);
		if (moves === undefined) {
			const list = entry.moves.slice(0, MOVES).map(name => this.tables.move(name));
			moves = { list, key: String(entry.moves), ownHp: list.some(wantsOwnHp), foesHp: list.some(wantsFoesHp),
				fallen: list.some(wantsFallen) };
			this.moves.set(entry.moves, moves);
		}
		return moves;
	}

	/** The same object for an equal Pokemon; a benched one that did not change is not even looked up. */
	side(sides, mon, profile, exactHp, out, down, more) {
		const last = sides.seen.get(mon);
		if (last !== undefined && !out && !last.out && last.version === mon.bodyVersion && last.profile === profile &&
			last.exactHp === exactHp && last.down === down && last.more === more) return last.side;
		const key = `${profile.number}:${stateOf(this.tables, mon, profile, exactHp, out)}|${down}${more}`;
		let side = sides.byKey.get(key);
		if (side === undefined) {
			side = new Side(sides.byKey.size, new Fighter(this.tables, mon, profile, exactHp, out, down));
			sides.byKey.set(key, side);
		}
		sides.seen.set(mon, { version: mon.bodyVersion, profile, exactHp, out, down, more, side });
		return side;
	}

	pair(user, target, around, screens) {
		const key = user.number * 65536 + target.number;
		let numbers = this.pairs.get(key);
		if (numbers === undefined) {
			numbers = new Float16Array(PAIR_NUMBERS);
			this.estimate(user.arms, target, around, screens, numbers);
			this.pairs.set(key, numbers);
		}
		return numbers;
	}

	arm(fighter, moves, canTera, around) {
		const arms = [];
		for (let guise = 0; guise < (canTera ? GUISES : 1); guise++) {
			const user = guise ? fighter.terastallize() : fighter;
			for (let place = 0; place < moves.length; place++) {
				if (moves[place] === null) continue;
				arms.push([2 * (MOVES * guise + place), new Weapon(this.tables, user, moves[place], around)]);
			}
		}
		return arms;
	}

	estimate(arms, side, around, screens, numbers) {
		const { rolls } = this.formula, count = rolls.length;
		side.targets ??= [false, true].map(mold => new Target(this.tables, side.fighter, screens, around, mold));
		const full = side.targets[0].fullHp;
		for (const [place, weapon] of arms) {
			if (!this.formula.run(weapon, side.targets[weapon.mold ? 1 : 0])) continue;
			let sum = 0, squares = 0;
			for (let i = 0; i < count; i++) {
				sum += rolls[i];
				squares += rolls[i] * rolls[i];
			}
			const mean = sum / (count * full);
			let variance = Math.max(squares / (count * full * full) - mean * mean, 0);
			variance = weapon.hits * variance + weapon.spread * mean * mean;
			numbers[place] = Math.min(weapon.hits * mean, MOST_DAMAGE);
			numbers[place + 1] = Math.min(variance / VARIANCE_UNIT, MOST_VARIANCE);
		}
	}

	/** Team positions of the attackers: all that live, or the active one and who stands best against the foe. */
	choose(own, ownOut) {
		const alive = [];
		for (let i = 0; i < own.length; i++) if (own[i].status !== 'FNT') alive.push(i);
		const { attackers } = this.layout;
		if (attackers === TEAM_SIZE) return alive;
		const bench = alive.filter(i => i !== ownOut).sort((a, b) => this.standing(a) - this.standing(b));
		const first = alive.includes(ownOut) ? [ownOut] : [];
		return [...first, ...bench.slice(0, attackers - 1)];
	}

	/** What it takes less what it deals, as just written: the least is the likeliest switch. */
	standing(index) {
		const { own_start: start, pokemon_width: width, deals, takes } = this.layout;
		const at = start + index * width;
		return this.buffer[at + takes] - this.buffer[at + deals];
	}

	screens(conditions) {
		if (conditions.size === 0) return NO_SCREENS;
		return [...conditions.keys()].filter(name => this.tables.screens.has(name))
			.map(name => this.tables.screens.get(name)).sort();
	}
}

function abilityOf(cards, out) {
	return out >= 0 ? cards[out].profile.ability : '';
}
