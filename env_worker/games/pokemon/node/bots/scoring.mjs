// Scores of attacks and switches, one turn ahead. Pure: no battle, no random numbers.

import { speed } from '../damage/queries.mjs';
import { MOVES } from './combatants.mjs';
import { hitChance } from './hit_chance.mjs';

const KNOCKOUT_WORTH = 1; // value of a knock-out, on top of the hp it takes
const SPREAD = 0.75; // factor on the damage of a move with several targets
const REVIVED = 0.5; // share of hp of a revived Pokemon
export const LEAST_HP = 0.01;
export const ANY = -1; // all that a move reaches

/** value: what actions are compared by; dealt: expected share of full hp taken from each foe. */
export class Rating {
	constructor(foes) {
		this.value = 0;
		this.dealt = new Array(foes).fill(0);
	}
}

/** A foe's best attack: expected share of full hp, and the chance that it knocks out. */
class Threat {
	constructor() {
		this.taken = 0;
		this.knockout = 0;
	}
}

/** Value of a hit that succeeds with `chance`. */
function hitScore(hit, chance) {
	return chance * (hit.dealt + KNOCKOUT_WORTH * hit.knockout);
}

function speedOf(tables, fighter, around) {
	return speed(tables, fighter, fighter.stages, around);
}

/** One own Pokemon against the foes that are out. */
export class Matchup {
	/**
	 * @param {object} tables an EncoderTables; @param {HitEstimator} estimator
	 * @param {Combatant} user with the moves it is offered
	 * @param {boolean} tera its moves after terastallizing are rated, too
	 * @param {Combatant | null} ally who stands beside it
	 */
	constructor(tables, estimator, view, user, tera = false, ally = null) {
		this.tables = tables;
		this.user = user;
		this.view = view;
		this.ally = ally;
		const { around, foes, ownScreens, foeScreens } = view;
		this.hits = foes.map(foe => foe && estimator.estimate(user, foe, foeScreens, around, tera));
		this.onAlly = ally && estimator.estimate(user, ally, ownScreens, around, tera);
		this.threats = foes.map(foe => foe && this.threatOf(estimator, foe));
		this.faster = foes.map(foe => foe === null || this.movesFirst(foe));
	}

	/** The worst of a foe's hits, unseen attacks included. */
	threatOf(estimator, foe) {
		const { tables, user, view } = this, most = new Threat();
		const hits = estimator.estimate(foe, user, view.ownScreens, view.around);
		for (const [place, hit] of hits) {
			const chance = hitChance(tables, foe.names[place] ?? '', foe, user, view.around);
			most.taken = Math.max(most.taken, chance * hit.dealt);
			most.knockout = Math.max(most.knockout, chance * hit.knockout);
		}
		return most;
	}

	/** Whether it is faster, priority apart. */
	movesFirst(foe) {
		const { tables: { damage }, user, view } = this, { around } = view;
		const ours = speedOf(damage, user.fighter, around) * view.ownWind;
		const theirs = speedOf(damage, foe.fighter, around) * view.foeWind;
		return view.trickRoom ? ours < theirs : ours > theirs;
	}

	/** The move in `slot` at foe number `target`, or at ANY. */
	rate(slot, target, tera = false) {
		const { tables, user, view } = this, name = user.names[slot], place = tera ? slot + MOVES : slot;
		const move = tables.hitTermsOf(name), rating = new Rating(view.foes.length);
		const share = this.share(move, target) * this.acts(move.priority);
		view.foes.forEach((foe, i) => {
			const hit = this.reaches(i, target) ? this.hits[i].get(place) : undefined;
			if (hit === undefined) return;
			const chance = share * hitChance(tables, name, user, foe, view.around);
			rating.value += hitScore(hit, chance);
			rating.dealt[i] = chance * hit.dealt;
		});
		const onAlly = move.target === 'allAdjacent' ? this.onAlly?.get(place) : undefined;
		if (onAlly !== undefined) rating.value -= hitScore(onAlly, share);
		return rating;
	}

	reaches(i, target) {
		return this.view.foes[i] !== null && (target === i || target === ANY);
	}

	/** Expected share of a move's damage that each of its targets takes. */
	share(move, target) {
		const reached = this.view.foes.filter((_, i) => this.reaches(i, target)).length;
		if (move.target !== 'allAdjacent' && move.target !== 'allAdjacentFoes') return reached ? 1 / reached : 1;
		return reached + (this.ally === null ? 0 : 1) > 1 ? SPREAD : 1;
	}

	/** Damage dealt in one turn less damage taken, as shares of the hp that is left. */
	margin() {
		const { user, view } = this;
		let deals = 0, takes = 0;
		view.foes.forEach((foe, i) => {
			if (foe === null) return;
			const best = Math.max(0, ...user.names.map((_, slot) => this.rate(slot, i).dealt[i]));
			deals = Math.max(deals, best / Math.max(foe.hp, LEAST_HP));
			takes = Math.max(takes, this.threats[i].taken / (user.hp || REVIVED));
		});
		return deals - Math.min(takes, 1);
	}

	/** Chance that it is not knocked out before its move. */
	acts(priority) {
		let alive = 1;
		this.threats.forEach((threat, i) => {
			if (threat === null || priority > 0 || (priority === 0 && this.faster[i])) return;
			alive = Math.min(alive, 1 - threat.knockout);
		});
		return alive;
	}
}
