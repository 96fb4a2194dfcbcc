// What the opponent of each encoded seat did, as classes that a network learns to predict. Only the simulator knows both
// choices before either is seen; a label goes with the seat's next message, when both have been played.
//
//   0-5 it switches to the Pokemon that the seat sees as foe.i in the row of its decision
//   6   it switches to one that the seat has not seen     7 + v   it uses the move with the vocabulary id v
//   -1  it did not choose, or what has no class           -2      as the seat's next decision will be labelled
//
// One label for each slot of the opponent, left and right; of singles the second one is -1.

import { toId } from '../tracker/dex.mjs';

const NONE = -1, SAME = -2, UNSEEN = 6, FIRST_MOVE = 7;
const SLOTS = 2;
const NO_LABEL = new Int32Array(SLOTS).fill(NONE), SAME_LABEL = new Int32Array(SLOTS).fill(SAME);

export class ChoiceLabels {
	/** @param {(SeatView | null)[]} views by seat; @param {object} tables an EncoderTables */
	constructor(views, tables) {
		this.views = views;
		this.tables = tables;
		this.labels = views.map(() => new Int32Array(SLOTS).fill(NONE));
	}

	/** Both sides have chosen, and nothing is played yet. @param {object[]} sides the simulator's */
	note(sides) {
		for (const seat of [0, 1]) {
			if (this.views[seat] === null || !sides[seat].choice.actions.length) continue; // it is not asked
			const { actions } = sides[1 - seat].choice, label = this.labels[seat];
			for (let slot = 0; slot < SLOTS; slot++) label[slot] = slot < actions.length ? this.label(seat, actions[slot]) : NONE;
		}
	}

	/** Of the seat's last decision, for the row of its next request or the end; once, until the next `note`. */
	take(seat) {
		const label = this.labels[seat];
		const taken = label.some(each => each !== NONE) ? label.slice() : NO_LABEL;
		label.fill(NONE);
		return taken;
	}

	/** Of a decision that another one of the same request follows. */
	ofFirst(seat) {
		return this.views[seat].preview === null ? SAME_LABEL : NO_LABEL;
	}

	label(seat, { choice, moveid, target }) {
		if (choice === 'move') {
			const row = this.tables.moveRow(moveid);
			return row > 0 ? FIRST_MOVE + row : NONE;
		}
		if (choice === 'switch' || choice === 'instaswitch') return placeOf(target, this.views[seat].tracker);
		return NONE;
	}
}

/** Which of `tracker.foes()` a Pokemon of the simulator's is. */
function placeOf(pokemon, tracker) {
	const foes = tracker.foes(), met = tracker.opponentTeam.get(pokemon.fullname); // by its own name, never by a disguise
	let place = foes.indexOf(met);
	if (met === undefined) {
		const base = toId(pokemon.baseSpecies.baseSpecies);
		place = foes.findIndex(mon => tracker.previewed.includes(mon) && mon.dex.species(mon.species).base === base);
	}
	return place < 0 ? UNSEEN : place;
}
