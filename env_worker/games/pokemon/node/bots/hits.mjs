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
class Attacks {
	/** @param {Combatant} user; @param {boolean} tera its moves after terastallizing are wanted, too */
	constructor(tables, user, around, tera) {
		const { fighter, names, guess } = user;
		this.found = []; // [place, AttackerMove]
		this.names = names;
		this.around = around;
		this.tera = tera;
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

	/** Whether they are those of the same fighter with these. */
	are(names, around, tera) {
		return this.around === around && this.tera === tera && this.names.length === names.length &&
			this.names.every((name, slot) => name === names[slot]);
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

/** One Pokemon behind its screens; moves with Mold Breaker ignore its ability. */
class Defender {
	constructor(tables, fighter, screens, around) {
		this.tables = tables;
		this.fighter = fighter;
		this.screens = screens;
		this.around = around;
		this.targets = [null, null]; // whole, without its ability
	}

	target(mold) {
		return this.targets[mold ? 1 : 0] ??= new Target(this.tables, this.fighter, this.screens, this.around, mold);
	}
}

/** Estimates of one battle's hits. What does not change from one request to the next is kept. */
export class HitEstimator {
	/** @param {object} tables DamageTables */
	constructor(tables) {
		this.tables = tables;
		this.formula = new Formula(tables);
		this.attacks = new WeakMap(); // Fighter -> Attacks
		this.defenders = new WeakMap();
	}

	/**
	 * @param {boolean} tera the user's moves after terastallizing are wanted, too
	 * @param {string[]} screens that the target stands behind
	 * @returns {Map<number, HitEstimate>} by place, without moves that do no damage
	 */
	estimate(user, target, screens, around, tera = false) {
		const estimates = new Map(), defender = this.defenderOf(target, screens, around);
		for (const [place, move] of this.attacksOf(user, around, tera).found) {
			estimates.set(place, this.hit(move, defender.target(move.mold), target.hp));
		}
		return estimates;
	}

	attacksOf(user, around, tera) {
		let attacks = this.attacks.get(user.fighter);
		if (attacks === undefined || !attacks.are(user.names, around, tera)) {
			attacks = new Attacks(this.tables, user, around, tera);
			this.attacks.set(user.fighter, attacks);
		}
		return attacks;
	}

	defenderOf({ fighter }, screens, around) {
		let defender = this.defenders.get(fighter);
		if (defender === undefined || defender.screens !== screens || defender.around !== around) {
			defender = new Defender(this.tables, fighter, screens, around);
			this.defenders.set(fighter, defender);
		}
		return defender;
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
