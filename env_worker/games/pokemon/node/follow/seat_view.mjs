// A seat whose decisions are encoded here: what it has been told, what it may answer, its observation.

import { DOUBLES } from './doubles.mjs';
import { Preview } from './preview.mjs';
import { SINGLES } from './singles.mjs';
import { SeatTally } from './tally.mjs';

export class SeatView {
	/**
	 * @param {object} tables an EncoderTables; @param {number} seat 0 | 1
	 * @param {number|null} freeSwitches of the SeatTally, null: nothing is counted
	 */
	constructor(tables, seat, freeSwitches = null) {
		this.kind = tables.doubles ? DOUBLES : SINGLES;
		this.tally = freeSwitches === null ? null : new SeatTally(`p${seat + 1}`, freeSwitches);
		this.tracker = new this.kind.Tracker(`p${seat + 1}`, tables.gen, tables.tracker);
		this.encoder = new this.kind.Encoder(this.tracker, tables);
		this.steps = new this.kind.Steps(this.tracker, this.encoder);
		this.bytes = new Uint8Array(this.encoder.observation.buffer);
		this.tables = tables;
		this.action = -1;
		this.pick = 0; // rows say of which pick of a team preview they are
		this.preview = null; // while it is asked for
	}

	/** What the open request shows. */
	get shown() {
		return this.preview ?? this;
	}

	/** Of the open decision. */
	get choices() {
		return this.steps.choices;
	}

	/** Takes the seat's lines and then its request; what is `shown` is up to date afterwards. */
	see(lines, request) {
		this.hear(lines, request);
		this.preview = request.teamPreview ? new Preview(this.tables, this.tracker, request, this.kind) : null;
		if (this.preview !== null) return;
		this.tracker.sync(request);
		this.steps.read(request);
	}

	/** Takes lines behind which the seat's own state is not encoded: team preview, or null: the battle is over. */
	hear(lines, request) {
		this.tracker.feed(lines);
		this.tally?.take(lines, request);
	}

	/** [standing, counts] as JSON, null where nothing is counted. */
	final() {
		if (this.tally === null) return null;
		return [Array.from(this.encoder.survey()), Array.from(this.tally.counts)];
	}

	/** The simulator command for an action, null if it is not legal, '' if another decision must be made first. */
	command(action) {
		if (this.preview !== null) return this.preview.take(action);
		if (this.choices.mask[action] !== 1) return null;
		this.action = action;
		return this.steps.take(action);
	}

	/** The simulator calls the last choice unavailable: another request follows. */
	unavailable() {
		this.steps.unavailable();
	}

	/** The simulator calls the last action invalid: see the same request without it. False if nothing else is legal. */
	refuse() {
		if (this.preview !== null) return this.preview.refuse();
		this.steps.takeBack();
		this.choices.mask[this.action] = 0;
		if (!this.choices.mask.includes(1)) return false;
		this.steps.encode();
		return true;
	}
}
