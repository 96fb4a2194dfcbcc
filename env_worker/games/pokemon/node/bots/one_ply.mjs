// The one-ply damage bot: picks the attack that does most now by the damage formula, without search.

import { Choices, FIRST_MOVE, NUM_ACTIONS } from '../encoder/actions.mjs';
import { Meaning, SlotChoices, meaning } from '../encoder/double_actions.mjs';
import { picksWanted } from '../follow/preview.mjs';
import { MOVES, ViewReader } from './combatants.mjs';
import { HitEstimator } from './hits.mjs';
import { oneOf } from '../random.mjs';
import { ANY, LEAST_HP, Matchup, Rating } from './scoring.mjs';

const TERA_WORTH = 0.4; // terastallizing must add this much: a knock-out, or 40% of a foe's hp
const BONUS = 0.0005; // mega evolution and Dynamax win ties
const HEALTHY = 0.9; // a Pokemon dynamaxes above this share of hp
const FUTILE = 0.3; // a switch is considered where no attack is worth this much
const SWITCH_GAIN = 0.6; // margin that a switch must gain over staying
const USELESS = 0.001; // attacks that are worth less do nothing
const Z_MOVE = 2, DYNAMAX = 3, TERA = 4; // gimmicks; Z-moves are never used: the damage formula does not cover them

const SINGLE_MEANINGS = Array.from({ length: NUM_ACTIONS }, (_, action) => action < FIRST_MOVE ?
	new Meaning(action) : new Meaning(-1, (action - FIRST_MOVE) % MOVES, 0, Math.floor((action - FIRST_MOVE) / MOVES)));

/** A legal action and what it stands for. */
class Option {
	constructor(action, told) {
		this.action = action;
		this.told = told;
		this.rating = null;
	}
}

/** Answers the requests of one seat. */
export class OnePly {
	/**
	 * @param {object} tables an EncoderTables
	 * @param {() => number} random numbers in [0, 1), drawn where actions are worth the same
	 */
	constructor(tables, random) {
		this.tables = tables;
		this.random = random;
		this.reader = new ViewReader(tables);
		this.estimator = new HitEstimator(tables.damage);
		this.choices = tables.doubles ? [new SlotChoices(), new SlotChoices()] : [new Choices()];
	}

	/**
	 * The answer to a request, in the simulator's words.
	 * @param {SeatTracker} tracker in sync with the request
	 */
	choose(tracker, request) {
		let view = this.reader.read(tracker, request), first = null;
		const commands = [], position = ident => request.side.pokemon.findIndex(entry => entry.ident === ident);
		this.choices.forEach((choices, slot) => {
			if (this.tables.doubles) choices.read(request, slot, position, first);
			else choices.read(request, position);
			const { action, rating } = this.pick(view, request, slot, choices);
			commands.push(choices.command(action));
			first = action;
			view = hurt(view, rating);
		});
		return commands.join(', ');
	}

	/**
	 * The team order by margin against all foes that the preview shows.
	 * @param {SeatTracker} tracker of the preview, in sync with the request
	 */
	preview(tracker, request) {
		const view = this.reader.read(tracker, request);
		const totals = view.bench.map(() => 0);
		for (const foe of this.reader.previewed(tracker)) {
			const facing = view.facing([foe]);
			view.bench.forEach((mon, member) => {
				totals[member] += this.matchup(facing, mon).margin();
			});
		}
		const order = [...totals.keys()].sort((a, b) => totals[b] - totals[a]);
		const wanted = picksWanted(request, order.length);
		return `team ${order.slice(0, wanted).map(member => member + 1).join(',')}`;
	}

	/** The best legal option of a slot, rated by what it does. */
	pick(view, request, slot, choices) {
		const options = [], meaningOf = this.tables.doubles ? meaning : action => SINGLE_MEANINGS[action];
		choices.mask.forEach((legal, action) => {
			if (legal) options.push(rated(new Option(action, meaningOf(action)), new Rating(view.foes.length)));
		});
		const switches = options.filter(({ told }) => told.member >= 0), moves = options.filter(({ told }) => told.move >= 0);
		if (moves.length === 0) return switches.length ? this.entrant(view, switches).option : oneOf(options, this.random);
		const user = view.bench[slot].with({ names: offered(choices, request.side.pokemon[slot]) });
		const ally = this.tables.doubles && stands(request, 1 - slot) ? view.bench[1 - slot] : null;
		const matchup = this.matchup(view, user, moves.some(({ told }) => told.gimmick === TERA), ally);
		const best = this.bestAttack(matchup, moves, switches.length === 0);
		if (best.rating.value < FUTILE && switches.length) {
			const { option, margin } = this.entrant(view, switches);
			if (margin > matchup.margin() + SWITCH_GAIN) return option;
		}
		if (best.rating.value > USELESS) return best;
		const plain = moves.filter(({ told }) => !told.gimmick && told.target >= 0);
		return rated(oneOf(plain.length ? plain : moves, this.random), new Rating(view.foes.length));
	}

	/** @param {boolean} last no switch is possible */
	bestAttack(matchup, moves, last) {
		const grows = last || (matchup.user.hp >= HEALTHY && matchup.margin() > 0);
		let best = [];
		for (const option of moves) {
			const { gimmick } = option.told;
			if (gimmick === Z_MOVE || (gimmick === DYNAMAX && !grows)) continue;
			rate(matchup, option);
			const lead = best.length ? option.rating.value - best[0].rating.value : 1;
			if (lead > 0) best = [option];
			else if (lead === 0) best.push(option);
		}
		return oneOf(best.length ? best : moves, this.random);
	}

	/** The switch with the best margin of damage dealt over taken, and that margin. */
	entrant(view, switches) {
		let best = null;
		for (const option of switches) {
			const margin = this.matchup(view, view.bench[option.told.member]).margin();
			if (best === null || margin > best.margin) best = { option, margin };
		}
		return best;
	}

	matchup(view, user, tera = false, ally = null) {
		return new Matchup(this.tables, this.estimator, view, user, tera, ally);
	}
}

function rated(option, rating) {
	option.rating = rating;
	return option;
}

function rate(matchup, option) {
	const { move, target, gimmick } = option.told;
	const rating = rated(option, matchup.rate(move, target > 0 ? target - 1 : target < 0 ? null : ANY, gimmick === TERA)).rating;
	if (target < 0) rating.value = -1; // aimed at the own side
	else if (gimmick === TERA) rating.value -= TERA_WORTH;
	else if (gimmick && rating.value > 0) rating.value += BONUS;
}

function stands({ side: { pokemon } }, slot) {
	return slot < pokemon.length && pokemon[slot].active && !pokemon[slot].condition.endsWith(' fnt');
}

/** Names of the moves by slot; struggle and its like stand where their action is. */
function offered(choices, entry) {
	return choices.moveEntries.map((entryOf, slot) => {
		const name = entry.moves[slot] ?? '';
		return entryOf === null || name.startsWith(entryOf.id) ? name : entryOf.id;
	});
}

/** The view after a choice of the left slot, whose damage the right one counts on. */
function hurt(view, rating) {
	return view.facing(view.foes.map((foe, i) => foe && foe.with({ hp: Math.max(foe.hp - rating.dealt[i], LEAST_HP) })));
}
