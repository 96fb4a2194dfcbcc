// What the host's own views make of recorded seats: `node vectors.mjs < SEATS`, each line one of
//   {"tables": encoder_tables(gen, extras)} for the seats that follow
//   {"seat": 0|1, "free_switches": n, "records": [[lines, request or null, refused, actions], ...]}
// Writes what a host writes (host.mjs): the rows of every decision of a seat, then its end; battle: the seat's number.

import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

import { EncoderTables } from '../../../env_worker/games/pokemon/node/encoder/host_tables.mjs';
import { SeatView } from '../../../env_worker/games/pokemon/node/follow/seat_view.mjs';
import { Outbox } from '../../../env_worker/games/pokemon/node/outbox.mjs';

const STDOUT = 1;
const outbox = new Outbox();

function see(view, number, seat, records) {
	records.forEach(([lines, request, refused, actions], place) => {
		if (refused) view.unavailable();
		const told = lines.split('\n');
		if (request === null) view.hear(told, null);
		else view.see(told, request);
		for (const action of actions) {
			outbox.rows.add(number, seat, place, view.shown);
			if (view.command(action) === null) throw new Error(`seat ${number}, record ${place}: ${action} is not legal`);
		}
	});
	outbox.unparsed(view.tracker.parseErrors);
	outbox.end(number, null, view.tracker.turn, 'stopped', [view.final(), view.final()]);
}

function write(bytes) {
	for (let at = 0; at < bytes.length;) at += writeSync(STDOUT, bytes, at);
}

let tables = null, number = 0;
for await (const line of createInterface({ input: process.stdin })) {
	const job = JSON.parse(line);
	if (job.tables) {
		tables = new EncoderTables(job.tables);
		continue;
	}
	see(new SeatView(tables, job.seat, job.free_switches), number++, job.seat, job.records);
	const [text, rows] = outbox.take();
	write(Buffer.from(text));
	write(rows);
}
