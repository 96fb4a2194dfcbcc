// Collects the output of a host's battles; host.mjs writes it once a tick.

import { shortRequest } from './requests.mjs';

// standing: float64 [4]; battle, seat, request_number, turn, pick, tally [4], label [2]: int32 [11]
const HEAD_BYTES = 76;
const NO_TALLY = new Int32Array(4);
const NO_LABEL = new Int32Array(2).fill(-1);
const FIRST_ROWS = 64;
const MOST_NAMED = 32; // events of one seat that parse errors are counted by
const LONGEST_NAME = 32;

/** Encoded decisions as rows of one buffer: head, observation (float16), mask (uint8), padded to 8 bytes. */
class Rows {
	constructor() {
		this.count = 0;
		this.stride = 0;
		this.bytes = new Uint8Array(0);
	}

	/**
	 * @param {SeatView | Preview} view brought up to date
	 * @param {Int32Array} label what the opponent did when the seat last decided, see simulate/choice_labels.mjs
	 */
	add(battle, seat, requestNumber, view, label = NO_LABEL) {
		const { observation, standing } = view.encoder;
		const { mask } = view.choices;
		if (!this.stride) this.stride = rowBytes(observation.length, mask.length);
		const start = this.count * this.stride;
		if (start + this.stride > this.bytes.length) this.grow();
		this.doubles.set(standing, start / 8);
		let at = start / 4 + 8;
		this.ints[at++] = battle;
		this.ints[at++] = seat;
		this.ints[at++] = requestNumber;
		this.ints[at++] = view.tracker.turn;
		this.ints[at++] = view.pick;
		this.ints.set(view.tally?.counts ?? NO_TALLY, at);
		this.ints.set(label, at + 4);
		this.bytes.set(view.bytes, start + HEAD_BYTES);
		this.bytes.set(mask, start + HEAD_BYTES + view.bytes.length);
		this.count++;
	}

	take() {
		const taken = this.bytes.subarray(0, this.count * this.stride);
		this.count = this.stride = 0; // other tables may come
		return taken;
	}

	grow() {
		const larger = new Uint8Array(Math.max(this.bytes.length * 2, FIRST_ROWS * this.stride));
		larger.set(this.bytes);
		this.bytes = larger;
		this.doubles = new Float64Array(larger.buffer);
		this.ints = new Int32Array(larger.buffer);
	}
}

/** Bytes of one row, as host_messages.py expects them. */
export function rowBytes(observationSize, numActions) {
	return Math.ceil((HEAD_BYTES + 2 * observationSize + numActions) / 8) * 8;
}

export class Outbox {
	constructor() {
		this.records = [];
		this.choices = [];
		this.errors = [];
		this.ended = [];
		this.logs = [];
		this.spectated = new Map();
		this.parseErrors = new Map();
		this.playedCounts = null;
		this.pong = null;
		this.format = null;
		this.rows = new Rows();
	}

	/** Answers that have not been sent. */
	get waiting() {
		return this.records.length + this.rows.count + this.choices.length + this.errors.length + this.ended.length;
	}

	/**
	 * @param {object|null} request null: the battle is over
	 * @param {object[]} before the team's entries in the seat's request before
	 */
	record(battle, seat, requestNumber, lines, request, before) {
		const said = request === null ? 'null' : shortRequest(request, before);
		this.records.push(`[${JSON.stringify(battle)},${seat},${requestNumber},${JSON.stringify(lines)},${said}]`);
	}

	/** What a followed seat answers, in the simulator's words. */
	choice(battle, seat, requestNumber, words) {
		this.choices.push(JSON.stringify([battle, seat, requestNumber, words]));
	}

	error(battle, seat, requestNumber, kind, message) {
		this.errors.push(JSON.stringify([battle, seat, requestNumber, kind, message]));
	}

	/** @param {Array} final where each seat's rewards ended and its last label, or nothing where it was not asked for */
	end(battle, winnerSeat, turns, reason, ...final) {
		this.ended.push(JSON.stringify([battle, winnerSeat, turns, reason, ...final]));
	}

	/** A battle's log as a spectator sees it, where one was asked for. */
	log(battle, text) {
		this.logs.push(JSON.stringify([battle, text]));
	}

	/** The same of a battle that runs and is watched: the newest one counts. */
	spectate(battle, text) {
		this.spectated.set(battle, text);
	}

	/** @param {Map<string, number>} counts lines that a seat's tracker could not take, by event: text of strangers */
	unparsed(counts) {
		let named = 0;
		for (const [event, count] of counts) {
			const name = named++ < MOST_NAMED ? event.slice(0, LONGEST_NAME) : 'others';
			this.parseErrors.set(name, (this.parseErrors.get(name) ?? 0) + count);
		}
	}

	/** What a bot did in a battle that is over. @param {BotSeat} bot */
	played(bot) {
		this.unparsed(bot.tracker.parseErrors);
		const [decisions, previews, refused] = this.playedCounts ?? [0, 0, 0];
		this.playedCounts = [decisions + bot.decisions, previews + bot.previews, refused + bot.refused];
	}

	/** Everything gathered so far as one line and the rows behind it: [text, bytes]; the text is '' if there is nothing. */
	take() {
		const parts = [];
		const encoded = this.rows.count;
		if (this.records.length) parts.push(`"records":[${this.records.join(',')}]`);
		if (this.choices.length) parts.push(`"choices":[${this.choices.join(',')}]`);
		if (this.errors.length) parts.push(`"errors":[${this.errors.join(',')}]`);
		if (this.logs.length) parts.push(`"logs":[${this.logs.join(',')}]`);
		if (this.spectated.size) parts.push(`"spectated":${JSON.stringify([...this.spectated])}`);
		if (this.ended.length) parts.push(`"ended":[${this.ended.join(',')}]`);
		if (this.parseErrors.size) parts.push(`"parse_errors":${JSON.stringify(Object.fromEntries(this.parseErrors))}`);
		if (this.playedCounts !== null) parts.push(`"played":${JSON.stringify(this.playedCounts)}`);
		if (this.pong !== null) parts.push(`"pong":${JSON.stringify(this.pong)}`);
		if (this.format !== null) parts.push(`"format":${JSON.stringify(this.format)}`);
		if (encoded) parts.push(`"encoded":${encoded}`);
		this.records = [];
		this.choices = [];
		this.errors = [];
		this.ended = [];
		this.logs = [];
		this.spectated.clear();
		this.parseErrors = new Map();
		this.playedCounts = this.pong = this.format = null;
		return [parts.length ? `{${parts.join(',')}}\n` : '', this.rows.take()];
	}
}
