// One battle: drives Battle directly and turns what it sends into per-seat records.

import { BotSeat } from '../bots/seat.mjs';
import { appendSeatLines, spectatorLog } from '../follow/seat_lines.mjs';
import { SeatView } from '../follow/seat_view.mjs';
import { ChoiceLabels } from './choice_labels.mjs';

const ERROR_PREFIX = '|error|';
const TURN_LIMIT = 1000; // going past it is the simulator's own tie

class Seat {
	constructor() {
		this.requestNumber = 0;
		this.open = false; // true = a request waits for this seat's choice
		this.team = []; // its Pokemon, as the last request described them
	}
}

export class HostedBattle {
	/**
	 * @param {object} command the `start` command, see host.mjs
	 * @param {object} tables an EncoderTables; needed where a seat is encoded or a bot's
	 * @param {object} draws a TeamDraws; without one the simulator draws each team anew
	 */
	constructor(sim, command, outbox, tables = null, draws = null) {
		this.id = command.b;
		this.outbox = outbox;
		this.seats = [new Seat(), new Seat()];
		this.seatLines = [[], []];
		this.views = [0, 1].map(seat => command.encode?.[seat] ? new SeatView(tables, seat, command.tally) : null);
		this.told = [0, 1].map(seat => this.views[seat] === null || Boolean(command.tell?.[seat]));
		this.bots = [0, 1].map(seat => command.play?.[seat] ? new BotSeat(tables, seat, command.play[seat]) : null);
		this.labels = new ChoiceLabels(this.views, tables);
		this.maxTurns = command.max_turns ?? Infinity; // of battles without encoded seats
		this.ended = false;
		this.logged = Boolean(command.log); // a replay was asked for
		this.spectated = false;
		const [name1, name2] = command.names ?? ['p1', 'p2'];
		if (name1 === name2) throw new Error(`both seats are named ${name1}; names must differ`);
		const format = sim.Dex.formats.get(command.format);
		if (!format.exists) throw new Error(`unknown format ${command.format}`);
		if (format.playerCount !== 2) throw new Error(`${command.format} is not for two players`);
		this.battle = new sim.Battle({
			formatid: format.id,
			format, // an id leaves custom rules out
			seed: seedText(command.seed),
			send: (type, data) => this.receive(type, data),
			p1: playerOptions(name1, command, 0, format, draws),
			p2: playerOptions(name2, command, 1, format, draws),
		});
		for (const seat of [0, 1]) this.takeRequestsWhole(seat);
		if (this.views.some(view => view !== null)) this.noteChoices();
		this.update();
	}

	/** The labels are made when both sides have chosen, before the simulator plays the turn. */
	noteChoices() {
		const { battle, labels } = this, commitChoices = battle.commitChoices;
		battle.commitChoices = () => {
			labels.note(battle.sides);
			commitChoices.call(battle);
		};
	}

	/** Requests come as the simulator's own objects: neither an encoder nor `shortRequest` wants them as text. */
	takeRequestsWhole(seatIndex) {
		const side = this.battle.sides[seatIndex];
		side.emitRequest = (request = side.activeRequest, updated = false) => {
			if (updated) side.activeRequest.update = true;
			if (this.bots[seatIndex] !== null) this.askBot(seatIndex, request);
			else if (this.views[seatIndex] === null) this.receiveRequest(seatIndex, request);
			else this.showRequest(seatIndex, request);
			side.activeRequest = request;
		};
	}

	/** Answers one request, in the simulator's words or as an action of an encoded seat; a stale one changes nothing. */
	choose(seatIndex, requestNumber, choice, action) {
		const seat = this.seats[seatIndex];
		if (!seat?.open || seat.requestNumber !== requestNumber) {
			this.outbox.error(this.id, seatIndex, requestNumber, 'stale', seat?.open ?
				`the open request is ${seat.requestNumber}` : 'no request is open');
			return;
		}
		if (action !== undefined) choice = this.views[seatIndex]?.command(action) ?? null;
		if (choice === null) {
			this.outbox.error(this.id, seatIndex, requestNumber, 'illegal', `action ${action} is not among the legal ones`);
			return;
		}
		if (choice === '') { // another decision of the same request
			this.outbox.rows.add(this.id, seatIndex, requestNumber, this.views[seatIndex].shown, this.labels.ofFirst(seatIndex));
			return;
		}
		this.commit(seatIndex, choice);
		this.playBots();
	}

	/** @param {string} choice in the simulator's words */
	commit(seatIndex, choice) {
		this.seats[seatIndex].open = false;
		this.battle.choose(seatIndex === 0 ? 'p1' : 'p2', choice);
		this.update();
	}

	/** Bots answer until another seat has to, or the battle is over. */
	playBots() {
		while (!this.ended) {
			const seatIndex = this.bots.findIndex((bot, i) => bot !== null && this.seats[i].open);
			if (seatIndex < 0) return;
			this.commit(seatIndex, this.bots[seatIndex].answer);
		}
	}

	get turn() {
		return this.battle?.turn ?? 0;
	}

	/** Says how the battle went, where it was asked for; called once, when it is over. */
	giveLog() {
		if (this.logged) this.outbox.log(this.id, spectatorLog(this.battle.log));
	}

	/** Says how the battle goes, while it is watched. */
	showLog() {
		this.outbox.spectate(this.id, spectatorLog(this.battle.log));
	}

	/** Says what its bots did; called once, when it is over. */
	giveBots() {
		for (const bot of this.bots) if (bot !== null) this.outbox.played(bot);
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
		else if (battle.turn > this.maxTurns && !this.views.some(view => view !== null)) this.finish('truncated');
	}

	receive(type, data) {
		if (type === 'update') {
			appendSeatLines(data, this.seatLines);
		} else if (type === 'sideupdate') {
			const seatIndex = data.charCodeAt(1) - 49; // 'p1\n...'
			if (data.startsWith(ERROR_PREFIX, 3)) this.receiveError(seatIndex, data.slice(3 + ERROR_PREFIX.length));
		}
	}

	/** A wait request asks nothing: its lines travel with the seat's next record. */
	receiveRequest(seatIndex, request) {
		if (!request || request.wait) return;
		const seat = this.seats[seatIndex];
		seat.requestNumber++;
		seat.open = true;
		this.tell(seatIndex, request);
		this.seatLines[seatIndex].length = 0;
	}

	/** The same for an encoded seat. */
	showRequest(seatIndex, request) {
		if (!request || request.wait) return;
		const seat = this.seats[seatIndex], view = this.views[seatIndex];
		seat.requestNumber++;
		seat.open = true;
		if (this.told[seatIndex]) this.tell(seatIndex, request);
		view.see(this.seatLines[seatIndex], request);
		this.seatLines[seatIndex].length = 0;
		this.outbox.rows.add(this.id, seatIndex, seat.requestNumber, view.shown, this.labels.take(seatIndex));
	}

	/** Says a request and the lines before it. */
	tell(seatIndex, request) {
		const seat = this.seats[seatIndex];
		this.outbox.record(this.id, seatIndex, seat.requestNumber, this.seatLines[seatIndex].join('\n'), request, seat.team);
		seat.team = request.side.pokemon;
	}

	/** The same for a bot, whose answer waits until the simulator has told both seats. */
	askBot(seatIndex, request) {
		if (!request || request.wait) return;
		this.bots[seatIndex].see(this.seatLines[seatIndex], request);
		this.seatLines[seatIndex].length = 0;
		this.seats[seatIndex].open = true;
	}

	/** `[Unavailable choice]` is followed by a new request, `[Invalid choice]` leaves the old one open. */
	receiveError(seatIndex, message) {
		const seat = this.seats[seatIndex];
		const unavailable = message.startsWith('[Unavailable choice]');
		if (this.bots[seatIndex] !== null) {
			if (unavailable) return;
			this.bots[seatIndex].refuse(message);
			seat.open = true;
			return;
		}
		const kind = unavailable ? 'unavailable' : 'invalid';
		this.outbox.error(this.id, seatIndex, seat.requestNumber, kind, message);
		const view = this.views[seatIndex];
		if (unavailable) {
			view?.unavailable();
			return;
		}
		seat.open = true;
		if (view === null) return;
		if (view.refuse()) this.outbox.rows.add(this.id, seatIndex, seat.requestNumber, view.shown);
		else this.outbox.error(this.id, seatIndex, seat.requestNumber, 'exhausted', 'every choice was refused');
	}

	/** @param {string | null} cut why it ends before it is played out */
	finish(cut = null) {
		const { battle } = this;
		this.ended = true;
		this.closeSeats();
		this.giveLog();
		this.giveBots();
		const winner = battle.sides.findIndex(side => side.name === battle.winner);
		const reason = cut ?? (winner >= 0 ? 'win' : battle.turn > TURN_LIMIT ? 'turn_limit' : 'tie');
		const counted = this.views.some(view => view !== null && view.tally !== null);
		this.outbox.end(this.id, winner >= 0 ? winner : null, Math.min(battle.turn, TURN_LIMIT), reason,
			this.views.map(view => counted && view !== null ? view.final() : null),
			[0, 1].map(seat => Array.from(this.labels.take(seat))));
	}

	closeSeats() {
		for (const seatIndex of [0, 1]) {
			const seat = this.seats[seatIndex], view = this.views[seatIndex];
			seat.open = false;
			if (this.bots[seatIndex] !== null) continue;
			if (view !== null) {
				if (view.tally !== null) view.hear(this.seatLines[seatIndex], null);
				this.outbox.unparsed(view.tracker.parseErrors);
			}
			if (this.told[seatIndex]) {
				this.outbox.record(this.id, seatIndex, ++seat.requestNumber, this.seatLines[seatIndex].join('\n'), null);
			}
			this.seatLines[seatIndex].length = 0;
		}
	}
}

function playerOptions(name, command, seat, format, draws) {
	const options = { name, seed: seedText(command.team_seeds?.[seat]) };
	let team = command.teams?.[seat];
	if (!team && draws !== null && options.seed) team = draws.draw(format, options.seed, Boolean(command.reuse));
	if (team) options.team = team;
	return options;
}

/** Four 16-bit numbers or the simulator's own text form ("1,2,3,4", "sodium,..."); nothing = drawn. */
function seedText(seed) {
	if (seed === null || seed === undefined) return undefined;
	return Array.isArray(seed) ? seed.join(',') : String(seed);
}
