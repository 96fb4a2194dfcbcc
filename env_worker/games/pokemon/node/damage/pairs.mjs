// The numbers of every own Pokemon on every foe, computed again only when one of the two has changed.

import { Formula } from './formula.mjs';
import { TARGET } from '../encoder/layout.mjs';

export const PAIR_NUMBERS = TARGET.width;
const FORM_NUMBERS = PAIR_NUMBERS / 2; // as it is, or terastallized: move.0 .. move.3 | mean, variance
const PAIRS = 36;
const MOST_DAMAGE = 2, MOST_VARIANCE = 4;
export const VARIANCE_UNIT = 0.01;

export class Pairs {
	constructor(tables) {
		this.tables = tables;
		this.formula = new Formula(tables);
		this.numbers = new Float16Array(PAIRS * PAIR_NUMBERS);
		this.words = new Uint16Array(this.numbers.buffer);
		this.versions = new Array(2 * PAIRS).fill(0); // of user and target, when they were computed
	}

	/** Where the PAIR_NUMBERS of a pair begin in `numbers`, up to date. */
	find(pair, user, target, around, screens) {
		const { versions, words } = this, start = pair * PAIR_NUMBERS;
		if (versions[2 * pair] === user.version && versions[2 * pair + 1] === target.version) return start;
		versions[2 * pair] = user.version;
		versions[2 * pair + 1] = target.version;
		if (user.attackerMoves === null) user.arm(this.tables, around);
		for (let k = 0; k < PAIR_NUMBERS; k++) words[start + k] = 0;
		for (let i = 0; i < user.attackerMoves.length; i++) {
			const move = user.attackerMoves[i];
			this.estimate(start + user.places[i], move, target.target(this.tables, screens, around, move.mold));
		}
		for (let i = 0; i < user.copies.length; i++) {
			const from = start + user.copies[i], to = from + FORM_NUMBERS;
			words[to] = words[from];
			words[to + 1] = words[from + 1];
		}
		return start;
	}

	/** Mean and variance of one move's damage on a target, as fractions of full hp, scaled and capped. */
	estimate(at, move, target) {
		const { formula, numbers } = this, { rolls } = formula, count = rolls.length, full = target.fullHp;
		if (!formula.run(move, target)) return;
		let sum = 0, squares = 0;
		for (let i = 0; i < count; i++) {
			sum += rolls[i];
			squares += rolls[i] * rolls[i];
		}
		const mean = sum / (count * full);
		let variance = Math.max(squares / (count * full * full) - mean * mean, 0);
		variance = move.hits * variance + move.spread * mean * mean;
		numbers[at] = Math.min(move.hits * mean, MOST_DAMAGE);
		numbers[at + 1] = Math.min(variance / VARIANCE_UNIT, MOST_VARIANCE);
	}
}
