// Microseconds a decision that the tracker takes: `node tracker_times.mjs TABLES.json ROUNDS < SEATS.jsonl`.
// Lines and requests are ready as objects; medians over the rounds after a warm-up, best round in brackets.

import { readFileSync } from 'node:fs';

import { SeatTracker } from '../../../env_worker/games/pokemon/sim_host/tracker/battle.mjs';

const tables = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const rounds = Number(process.argv[3]);
const WARM_UP = 20;
const seats = readFileSync(0, 'utf8').trim().split('\n').map(line => JSON.parse(line));
for (const seat of seats) {
	seat.records = seat.records.filter(([, request]) => request).map(([lines, request]) => (
		[lines.split('\n'), JSON.stringify(request)]));
}

/** Nanoseconds of one pass over all seats in [new battle and lines, request], and its decisions. */
function oneRound() {
	let feeding = 0, syncing = 0, decisions = 0;
	for (const { role, gen, records } of seats) {
		const requests = records.map(([, text]) => JSON.parse(text));
		let start = process.hrtime.bigint();
		const tracker = new SeatTracker(role, gen, tables[gen]);
		for (let i = 0; i < records.length; i++) {
			tracker.feed(records[i][0]);
			const fed = process.hrtime.bigint();
			tracker.sync(requests[i]);
			tracker.dirty.clear();
			const synced = process.hrtime.bigint();
			feeding += Number(fed - start);
			syncing += Number(synced - fed);
			start = synced;
			decisions++;
		}
	}
	return [feeding / decisions, syncing / decisions, decisions];
}

const median = values => values.sort((a, b) => a - b)[values.length >> 1];
for (let i = 0; i < WARM_UP; i++) oneRound();
const times = Array.from({ length: rounds }, oneRound);
for (const [name, of] of [['lines', t => t[0]], ['request', t => t[1]], ['both', t => t[0] + t[1]]]) {
	const micros = times.map(time => of(time) / 1000);
	console.log(`${name.padEnd(8)} ${median(micros).toFixed(2)} us [${Math.min(...micros).toFixed(2)}]`);
}
console.log(`${times[0][2]} decisions a round, Node ${process.version}`);
