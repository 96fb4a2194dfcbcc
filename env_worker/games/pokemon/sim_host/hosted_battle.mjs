// One battle: drives Battle directly and turns what it sends into per-seat records.

import { appendSeatLines } from './seat_lines.mjs';

const REQUEST_PREFIX = '|request|';
const ERROR_PREFIX = '|error|';
const TURN_LIMIT = 1000; // going past it is the simulator's own tie

/** Where the battles of a host leave what they have to say; host.mjs writes it out once a tick. */
export class Outbox {
	constructor() {
		this.records = [];
		this.errors = [];
		this.ended = [];
		this.pong = null;
	}

	/** `requestJson` is the simulator's own JSON text: it is embedded, not parsed and written again. */
	record(battle, seat, requestNumber, lines, requestJson) {
		this.records.push(
			`[${JSON.stringify(battle)},${seat},${requestNumber},${JSON.stringify(lines)},${requestJson}]`);
	}

	error(battle, seat, requestNumber, kind, message) {
		this.errors.push(JSON.stringify([battle, seat, requestNumber, kind, message]));
	}

	end(battle, winnerSeat, turns, reason) {
		this.ended.push(JSON.stringify([battle, winnerSeat, turns, reason]));
	}

	/** Everything gathered so far as one line, or '' if there is nothing. */
	takeLine() {
		const parts = [];
		if (this.records.length) parts.push(`"records":[${this.records.join(',')}]`);
		if (this.errors.length) parts.push(`"errors":[${this.errors.join(',')}]`);
		if (this.ended.length) parts.push(`"ended":[${this.ended.join(',')}]`);
		if (this.pong !== null) parts.push(`"pong":${JSON.stringify(this.pong)}`);
		if (!parts.length) return '';
		this.records = [];
		this.errors = [];
		this.ended = [];
		this.pong = null;
		return `{${parts.join(',')}}\n`;
	}
}

class Seat {
	constructor() {
		this.requestNumber = 0;
		this.open = false; // true = a request waits for this seat's choice
	}
}

export class HostedBattle {
	/** @param {object} command the `start` command, see host.mjs */
	constructor(sim, command, outbox) {
		this.id = command.b;
		this.outbox = outbox;
		this.seats = [new Seat(), new Seat()];
		this.seatLines = [[], []];
		this.ended = false;
		const [name1, name2] = command.names ?? ['p1', 'p2'];
		if (name1 === name2) throw new Error(`both seats are named ${name1}; names must differ`);
		const format = sim.Dex.formats.get(command.format);
		if (!format.exists) throw new Error(`unknown format ${command.format}`);
		if (format.playerCount !== 2) throw new Error(`${command.format} is not for two players`);
		this.battle = new sim.Battle({
			formatid: format.id,
			seed: seedText(command.seed),
			send: (type, data) => this.receive(type, data),
			p1: playerOptions(name1, command, 0),
			p2: playerOptions(name2, command, 1),
		});
		this.update();
	}

	/** Answers one request; a stale one is reported and changes nothing. */
	choose(seatIndex, requestNumber, choice) {
		const seat = this.seats[seatIndex];
		if (!seat?.open || seat.requestNumber !== requestNumber) {
			this.outbox.error(this.id, seatIndex, requestNumber, 'stale', seat?.open ?
				`the open request is ${seat.requestNumber}` : 'no request is open');
			return;
		}
		seat.open = false;
		this.answering = seatIndex;
		this.battle.choose(seatIndex === 0 ? 'p1' : 'p2', choice);
		this.update();
	}

	destroy() {
		const battle = this.battle;
		this.battle = null;
		battle?.destroy();
	}

	update() {
		const { battle } = this;
		if (battle.ended) battle.sentEnd = true; // the `end` payload holds teams and seeds: never made
		battle.sendUpdates();
		if (battle.ended) this.finish();
	}

	receive(type, data) {
		if (type === 'update') {
			appendSeatLines(data, this.seatLines);
		} else if (type === 'sideupdate') {
			const seatIndex = data.charCodeAt(1) - 49; // 'p1\n...'
			if (data.startsWith(REQUEST_PREFIX, 3)) {
				this.receiveRequest(seatIndex, data.slice(3 + REQUEST_PREFIX.length));
			} else if (data.startsWith(ERROR_PREFIX, 3)) {
				this.receiveError(seatIndex, data.slice(3 + ERROR_PREFIX.length));
			}
		}
	}

	receiveRequest(seatIndex, requestJson) {
		// A wait request asks nothing: its lines travel with the seat's next record.
		if (requestJson === 'null' || requestJson.startsWith('{"wait":true')) return;
		const seat = this.seats[seatIndex];
		seat.requestNumber++;
		seat.open = true;
		this.outbox.record(this.id, seatIndex, seat.requestNumber, this.takeLines(seatIndex), requestJson);
	}

	/** `[Unavailable choice]` is followed by a new request, `[Invalid choice]` leaves the old one open. */
	receiveError(seatIndex, message) {
		const seat = this.seats[seatIndex];
		const unavailable = message.startsWith('[Unavailable choice]');
		if (!unavailable) seat.open = true;
		this.outbox.error(this.id, seatIndex, seat.requestNumber, unavailable ? 'unavailable' : 'invalid', message);
	}

	takeLines(seatIndex) {
		const lines = this.seatLines[seatIndex];
		const text = lines.join('\n');
		lines.length = 0;
		return text;
	}

	finish() {
		const { battle } = this;
		this.ended = true;
		for (const seatIndex of [0, 1]) {
			const seat = this.seats[seatIndex];
			seat.open = false;
			this.outbox.record(this.id, seatIndex, ++seat.requestNumber, this.takeLines(seatIndex), 'null');
		}
		const winner = battle.sides.findIndex(side => side.name === battle.winner);
		const reason = winner >= 0 ? 'win' : battle.turn > TURN_LIMIT ? 'turn_limit' : 'tie';
		this.outbox.end(this.id, winner >= 0 ? winner : null, Math.min(battle.turn, TURN_LIMIT), reason);
	}
}

function playerOptions(name, command, seat) {
	const team = command.teams?.[seat];
	const options = { name, seed: seedText(command.team_seeds?.[seat]) };
	if (team) options.team = team;
	return options;
}

/** Four 16-bit numbers or the simulator's own text form ("1,2,3,4", "sodium,..."); nothing = drawn. */
function seedText(seed) {
	if (seed === null || seed === undefined) return undefined;
	return Array.isArray(seed) ? seed.join(',') : String(seed);
}
