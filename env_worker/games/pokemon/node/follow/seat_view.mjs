// A seat whose decisions are encoded here: what it has been told, what it may answer, its observation.

import { Choices } from '../encoder/actions.mjs';
import { SeatEncoder } from '../encoder/encoder.mjs';
import { SeatTracker } from '../tracker/battle.mjs';
import { Preview } from './preview.mjs';
import { SeatTally } from './tally.mjs';

/** What both kinds of seat share: lines, requests, previews. */
export class View {
	/**
	 * @param {object} tables an EncoderTables; @param {number} seat 0 | 1
	 * @param {number|null} freeSwitches of the SeatTally, null: nothing is counted
	 * @param {object} kind `{ Tracker, Encoder, Preview }` of singles or doubles
	 */
	constructor(tables, seat, freeSwitches, kind) {
		this.tally = freeSwitches === null ? null : new SeatTally(`p${seat + 1}`, freeSwitches);
		this.tracker = new kind.Tracker(`p${seat + 1}`, tables.gen, tables.tracker);
		this.encoder = new kind.Encoder(this.tracker, tables);
		this.Preview = kind.Preview;
		this.bytes = new Uint8Array(this.encoder.observation.buffer);
		this.position = ident => this.tracker.position(ident);
		this.tables = tables;
		this.request = null;
		this.action = -1;
		this.pick = 0; // rows say of which pick of a team preview they are
		this.preview = null; // while it is asked for
	}

	/** What the open request shows. */
	get shown() {
		return this.preview ?? this;
	}

	/** Takes the seat's lines and the request of a team preview. */
	seePreview(lines, request) {
		this.hear(lines, request);
		this.preview = new this.Preview(this.tables, this.tracker, request);
	}

	/** Takes the seat's lines and then its request; the view is up to date afterwards. */
	see(lines, request) {
		this.hear(lines, request);
		this.tracker.sync(request);
		this.preview = null;
		this.request = request;
		this.open();
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
		return this.take(action);
	}

	/** The simulator calls the last action unavailable: another request follows. */
	unavailable() {}

	/** The simulator calls the last action invalid: see the same request without it. False if nothing else is legal. */
	refuse() {
		if (this.preview !== null) return this.preview.refuse();
		this.takeBack();
		this.choices.mask[this.action] = 0;
		if (!this.choices.mask.includes(1)) return false;
		this.encode();
		return true;
	}
}

/** A seat of singles: a request is one decision. */
export class SeatView extends View {
	constructor(tables, seat, freeSwitches = null) {
		super(tables, seat, freeSwitches, { Tracker: SeatTracker, Encoder: SeatEncoder, Preview });
		this.choices = new Choices();
	}

	open() {
		this.choices.read(this.request, this.position);
		this.encode();
	}

	take(action) {
		return this.choices.command(action);
	}

	takeBack() {}

	encode() {
		this.encoder.encode(this.request, this.choices);
	}
}
