// What a seat of singles is made of: see SeatView and Preview.

import { Choices } from '../encoder/actions.mjs';
import { SeatEncoder } from '../encoder/encoder.mjs';
import { GLOBAL } from '../encoder/layout.mjs';
import { SeatTracker } from '../tracker/battle.mjs';

/** A request is one decision. */
class SingleStep {
	constructor(tracker, encoder) {
		this.encoder = encoder;
		this.position = ident => tracker.position(ident);
		this.choices = new Choices();
		this.request = null;
	}

	/** Opens a request. */
	read(request) {
		this.request = request;
		this.choices.read(request, this.position);
		this.encode();
	}

	/** Takes a legal action; returns the simulator's words for the request, '' if another decision must be made first. */
	take(action) {
		return this.choices.command(action);
	}

	/** The last action is not taken. */
	takeBack() {}

	/** The simulator refuses the last action for something hidden; the request that follows asks again. */
	unavailable() {}

	/** Writes the observation of the open decision. */
	encode() {
		this.encoder.encode(this.request, this.choices);
	}
}

export const SINGLES = {
	Tracker: SeatTracker,
	Encoder: SeatEncoder,
	Steps: SingleStep,
	Choices,
	fields: GLOBAL, // of the block that says what has been picked at a team preview
	leads: 1, // picks of a preview where all may come
	firstAction: 0, // picks own.0
	asked: choices => choices, // what the encoder takes
};
