// One battle that a Showdown server runs: seats are told lines and requests, and answer with rows and choices.

import { BotSeat } from '../bots/seat.mjs';
import { SeatView } from './seat_view.mjs';

export class FollowedBattle {
	/**
	 * @param {object} command the `follow` command, see host.mjs
	 * @param {object} tables an EncoderTables
	 */
	constructor(command, outbox, tables) {
		this.id = command.b;
		this.outbox = outbox;
		this.counted = command.tally !== null;
		this.views = command.seats.map((followed, seat) => followed ? new SeatView(tables, seat, command.tally) : null);
		this.bots = [0, 1].map(seat => command.play?.[seat] ? new BotSeat(tables, seat, command.play[seat]) : null);
		this.maxTurns = command.max_turns ?? Infinity; // where only bots play
		this.requestNumbers = [0, 0];
		this.ended = false;
	}

	/** The latest turn that a seat has been told. */
	get turn() {
		return Math.max(...[...this.views, ...this.bots].map(seat => seat?.tracker.turn ?? 0));
	}

	/** Lines and the request behind them: answered by a row, or by a bot's choice. */
	see({ s, r, lines, request }) {
		this.requestNumbers[s] = r;
		(this.bots[s] ?? this.views[s]).see(lines.split('\n'), request);
		if (this.bots[s] !== null) this.answerAsBot(s);
		else this.show(s);
	}

	/** The turn limit is enforced here where only bots play. */
	answerAsBot(seat) {
		const alone = !this.bots.includes(null);
		if (alone && this.turn > this.maxTurns) this.end({ winner: null, turns: this.maxTurns, reason: 'truncated' });
		else this.outbox.choice(this.id, seat, this.requestNumbers[seat], this.bots[seat].answer);
	}

	/** The last lines of a seat, to which nothing is answered. */
	hear({ s, lines }) {
		if (this.counted) this.views[s]?.hear(lines.split('\n'), null);
	}

	/** An action: answered by the choice in the simulator's words, or by the row of the request's next decision. */
	choose({ s, r, a }) {
		if (this.requestNumbers[s] !== r) {
			this.outbox.error(this.id, s, r, 'stale', `the open request is ${this.requestNumbers[s]}`);
			return;
		}
		const words = this.views[s].command(a);
		if (words === null) this.outbox.error(this.id, s, r, 'illegal', `action ${a} is not among the legal ones`);
		else if (words === '') this.show(s);
		else this.outbox.choice(this.id, s, r, words);
	}

	/**
	 * The server calls the last choice invalid: answered by a row without it, or by a bot's next choice. What is
	 * unavailable is not answered: another request follows.
	 */
	refuse({ s, r, kind }) {
		const bot = this.bots[s];
		if (kind === 'unavailable') this.views[s]?.unavailable();
		else if (bot !== null) {
			bot.refuse('a choice is invalid');
			this.answerAsBot(s);
		} else if (this.views[s].refuse()) this.show(s);
		else this.outbox.error(this.id, s, r, 'exhausted', 'every choice was refused');
	}

	/** The end as its owner knows it, with what rewards need of it. */
	end({ winner, turns, reason }) {
		this.ended = true;
		this.giveCounts();
		const final = this.counted ? [this.views.map(view => view === null ? null : view.final())] : [];
		this.outbox.end(this.id, winner, turns, reason, ...final);
	}

	giveCounts() {
		for (const view of this.views) if (view !== null) this.outbox.unparsed(view.tracker.parseErrors);
		for (const bot of this.bots) if (bot !== null) this.outbox.played(bot);
	}

	destroy() {
		this.views = this.bots = [null, null];
	}

	show(seat) {
		this.outbox.rows.add(this.id, seat, this.requestNumbers[seat], this.views[seat].shown);
	}
}
