// Microseconds that each layer of a decision takes inside the host: `node host_times.mjs TABLES.json ROUNDS < SEATS.jsonl`.
// Lines and requests are ready as objects; medians over the rounds after a warm-up, best round in brackets.
// Actions are the first legal ones: the recorded lines come whatever is chosen.

import { readFileSync } from 'node:fs';

import { EncoderTables } from '../../env_worker/games/pokemon/node/encoder/host_tables.mjs';
import { SeatView } from '../../env_worker/games/pokemon/node/follow/seat_view.mjs';

const LAYERS = ['lines', 'request', 'mask', 'encoding'];
const WARM_UP = 20;
const tables = new EncoderTables(JSON.parse(readFileSync(process.argv[2], 'utf8')));
const rounds = Number(process.argv[3]);
const seats = readFileSync(0, 'utf8').trim().split('\n').map(line => JSON.parse(line));
for (const seat of seats) {
	seat.records = seat.records.filter(([, request]) => request && !request.teamPreview).map(([lines, request]) => (
		[lines.split('\n'), JSON.stringify(request)]));
}

const now = () => process.hrtime.bigint();

/** Calls of a view's methods, with the time that they and its encoder take. */
class Timed {
	constructor(seat) {
		this.view = new SeatView(tables, seat);
		this.encoded = 0n;
		for (const name of ['encode', 'encodeSlot']) {
			const encode = this.view.encoder[name];
			if (encode) this.view.encoder[name] = (...args) => { this.encoded += this.took(() => encode.apply(this.view.encoder, args)); };
		}
	}

	took(act) {
		const start = now();
		act();
		return now() - start;
	}

	/** Returns how many decisions a request was. */
	decide(lines, request, spent) {
		const { view } = this;
		spent[0] += this.took(() => view.tracker.feed(lines));
		spent[1] += this.took(() => view.tracker.sync(request));
		this.encoded = 0n;
		let decisions = 1, all = this.took(() => view.steps.read(request));
		for (;;) {
			const action = view.choices.mask.indexOf(1);
			let command;
			all += this.took(() => { command = view.command(action); });
			if (command !== '') break;
			decisions++;
		}
		spent[2] += all - this.encoded;
		spent[3] += this.encoded;
		return decisions;
	}
}

/** Microseconds a decision of each layer, in one pass over all seats. */
function oneRound() {
	const spent = LAYERS.map(() => 0n);
	let decisions = 0;
	for (const { seat, records } of seats) {
		const timed = new Timed(seat), requests = records.map(([, text]) => JSON.parse(text));
		for (let i = 0; i < records.length; i++) decisions += timed.decide(records[i][0], requests[i], spent);
	}
	return [...spent, spent.reduce((a, b) => a + b)].map(time => Number(time) / decisions / 1000);
}

const median = values => values.sort((a, b) => a - b)[values.length >> 1];
for (let i = 0; i < WARM_UP; i++) oneRound();
const times = Array.from({ length: rounds }, oneRound);
[...LAYERS, 'all'].forEach((name, layer) => {
	const micros = times.map(time => time[layer]);
	console.log(`${name.padEnd(8)} ${median(micros).toFixed(2)} us [${Math.min(...micros).toFixed(2)}]`);
});
console.log(`Node ${process.version}`);
