// Microseconds that each layer of a decision takes inside the host: `node host_times.mjs TABLES.json ROUNDS < SEATS.jsonl`.
// Lines and requests are ready as objects; medians over the rounds after a warm-up, best round in brackets.

import { readFileSync } from 'node:fs';

import { Choices } from '../../env_worker/games/pokemon/node/encoder/actions.mjs';
import { SeatEncoder } from '../../env_worker/games/pokemon/node/encoder/encoder.mjs';
import { EncoderTables } from '../../env_worker/games/pokemon/node/encoder/host_tables.mjs';
import { SeatTracker } from '../../env_worker/games/pokemon/node/tracker/battle.mjs';

const LAYERS = ['lines', 'request', 'mask', 'encoding'];
const WARM_UP = 20;
const tables = new EncoderTables(JSON.parse(readFileSync(process.argv[2], 'utf8')));
const rounds = Number(process.argv[3]);
const seats = readFileSync(0, 'utf8').trim().split('\n').map(line => JSON.parse(line));
for (const seat of seats) {
	seat.records = seat.records.filter(([, request]) => request).map(([lines, request]) => (
		[lines.split('\n'), JSON.stringify(request)]));
}

/** Microseconds a decision of each layer, in one pass over all seats. */
function oneRound() {
	const spent = LAYERS.map(() => 0);
	let decisions = 0;
	for (const { role, gen, records } of seats) {
		const requests = records.map(([, text]) => JSON.parse(text));
		const tracker = new SeatTracker(role, gen, tables.tracker);
		const encoder = new SeatEncoder(tracker, tables), choices = new Choices();
		const position = ident => tracker.position(ident);
		for (let i = 0; i < records.length; i++) {
			const times = [process.hrtime.bigint()];
			tracker.feed(records[i][0]);
			times.push(process.hrtime.bigint());
			tracker.sync(requests[i]);
			times.push(process.hrtime.bigint());
			choices.read(requests[i], position);
			times.push(process.hrtime.bigint());
			encoder.encode(requests[i], choices);
			times.push(process.hrtime.bigint());
			for (let layer = 0; layer < LAYERS.length; layer++) spent[layer] += Number(times[layer + 1] - times[layer]);
			decisions++;
		}
	}
	return [...spent, spent.reduce((a, b) => a + b)].map(time => time / decisions / 1000);
}

const median = values => values.sort((a, b) => a - b)[values.length >> 1];
for (let i = 0; i < WARM_UP; i++) oneRound();
const times = Array.from({ length: rounds }, oneRound);
[...LAYERS, 'all'].forEach((name, layer) => {
	const micros = times.map(time => time[layer]);
	console.log(`${name.padEnd(8)} ${median(micros).toFixed(2)} us [${Math.min(...micros).toFixed(2)}]`);
});
console.log(`Node ${process.version}`);
