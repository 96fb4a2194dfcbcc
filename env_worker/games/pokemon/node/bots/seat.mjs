// A seat that a bot plays: what it has been told, and its answers.

import { DOUBLES } from '../follow/doubles.mjs';
import { previewTracker } from '../follow/preview.mjs';
import { SINGLES } from '../follow/singles.mjs';
import { OnePly } from './one_ply.mjs';
import { seededRandom } from '../random.mjs';

const DEFAULT = 'default'; // the simulator's own choice
const BOTS = { one_ply: OnePly };

export class BotSeat {
	/**
	 * @param {object} tables an EncoderTables; @param {number} seat 0 | 1
	 * @param {[string, number]} play the bot's name and the seed of what it draws
	 */
	constructor(tables, seat, [name, seed]) {
		if (tables === null) throw new Error('a bot needs the tables: send them before');
		if (!Object.hasOwn(BOTS, name)) throw new Error(`no bot is called ${name}; there is ${Object.keys(BOTS)}`);
		this.tables = tables;
		this.answer = ''; // to the open request, in the simulator's words
		this.tracker = this.newTracker(`p${seat + 1}`);
		this.decisions = 0;
		this.previews = 0; // of them, at a team preview
		this.refused = 0; // answers that the simulator called invalid
		this.bot = new BOTS[name](tables, seededRandom(seed));
	}

	newTracker(role) {
		const { tables } = this;
		return new (tables.doubles ? DOUBLES : SINGLES).Tracker(role, tables.gen, tables.tracker);
	}

	/** Takes the seat's lines and then its request, and decides. */
	see(lines, request) {
		this.tracker.feed(lines);
		this.decisions++;
		if (request.teamPreview) {
			this.previews++;
			const tracker = previewTracker(this.newTracker(this.tracker.role), this.tracker, request);
			this.answer = this.bot.preview(tracker, request);
		} else {
			this.tracker.sync(request);
			this.answer = this.bot.choose(this.tracker, request);
		}
	}

	/** The simulator called the answer invalid because of `message`; the next answer leaves the choice to it. */
	refuse(message) {
		if (this.answer === DEFAULT) throw new Error(`the simulator refuses its own choice: ${message}`);
		this.answer = DEFAULT;
		this.refused++;
	}
}
