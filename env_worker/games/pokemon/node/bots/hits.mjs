// Estimated hits of moves now: the damage formula on a few pairs.

import { AttackerMove, PHYSICAL, SPECIAL, sameTerastallized } from '../damage/attacker.mjs';
import { Formula } from '../damage/formula.mjs';
import { Target } from '../damage/target.mjs';
import { MOVES } from './combatants.mjs';

const ASSUMED_POWER = 75; // of a foe's attacks of its own types that it has not shown

/** What a move does to a target if it hits. */
class HitEstimate {
	/** @param {number} dealt expected share of full hp, no more than is left; @param {number} knockout chance that nothing is */
	constructor(dealt, knockout) {
		this.dealt = dealt;
		this.knockout = knockout;
	}
}

/** The attacks of one Pokemon; `place`: its slot, + MOVES after terastallizing or of a foe's attack that it has not shown. */
export class Attacks {
	/** @param {Combatant} user; @param {boolean} tera its moves after terastallizing are wanted, too */
	constructor(tables, user, around, tera = false) {
		const { fighter, names, guess } = user;
		this.found = []; // [place, AttackerMove]
		this.around = around;
		const changed = tera ? fighter.terastallize() : null;
		names.forEach((name, slot) => {
			const move = slot < MOVES ? tables.move(name) : null;
			if (move === null) return;
			const made = new AttackerMove(tables, fighter, move, around);
			this.found.push([slot, made]);
			if (changed === null) return;
			const same = sameTerastallized(tables.gen, fighter, changed, made, move, around);
			this.found.push([MOVES + slot, same ? made : new AttackerMove(tables, changed, move, around)]);
		});
		if (guess) this.assume(tables, fighter, around);
	}

	/** An attack of each of its types, from the better side. */
	assume(tables, fighter, around) {
		const category = fighter.stats[1] >= fighter.stats[3] ? PHYSICAL : SPECIAL;
		fighter.types.forEach((type, i) => {
			const move = tables.plainMove(type, category, ASSUMED_POWER);
			this.found.push([MOVES + i, new AttackerMove(tables, fighter, move, around)]);
		});
	}
}

/** Estimates of one battle's hits. */
export class HitEstimator {
	/** @param {object} tables DamageTables */
	constructor(tables) {
		this.tables = tables;
		this.formula = new Formula(tables);
	}

	/**
	 * @param {string[]} screens that the target stands behind
	 * @returns {Map<number, HitEstimate>} by place, without moves that do no damage
	 */
	estimate(attacks, target, screens) {
		const estimates = new Map(), targets = [null, null]; // whole, without its ability
		for (const [place, move] of attacks.found) {
			const mold = move.mold ? 1 : 0;
			targets[mold] ??= new Target(this.tables, target.fighter, screens, attacks.around, move.mold);
			estimates.set(place, this.hit(move, targets[mold], target.hp));
		}
		return estimates;
	}

	/** All hits of a move together. @param {number} share of the target's full hp that is left */
	hit(move, target, share) {
		const { formula } = this, { rolls } = formula, { fullHp } = target, left = Math.max(share * fullHp, 1);
		let dealt = 0, knockouts = 0;
		if (formula.run(move, target)) {
			for (let i = 0; i < rolls.length; i++) {
				const damage = move.hits * rolls[i];
				dealt += Math.min(damage, left);
				if (damage >= left) knockouts++;
			}
		}
		return new HitEstimate(dealt / (fullHp * rolls.length), knockouts / rolls.length);
	}
}
