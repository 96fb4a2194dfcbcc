// One process, many battles, driven over pipes: newline-delimited JSON. It simulates them (simulate/), or with
// --follow is told what the seats of battles elsewhere are told (follow/), and answers as for seats encoded here.
//
// In, one line = a list of commands. Of both:
//   {"c":"ping","n":any}      {"c":"tables","tables":{...}} before anything is encoded
// Where it simulates:
//   {"c":"start","b":id,"format":"gen9randombattle","seed":[a,b,c,d],
//    "teams":[packed|null,packed|null],"team_seeds":[seed|null,seed|null],"reuse":false,"names":["a","b"],
//    "encode":[false,false],"tell":[false,false] of those: records, too, each before its row,"play":[null,["one_ply",seed]] seats that a bot plays (bots/seat.mjs),"max_turns":n|null
//    after which a battle that only bots play is ended as `truncated`,"tally":free_switches|null (see tally.mjs),"log":false}
//   {"c":"choose","b":id,"s":0|1,"r":request_number,"choice":"move 1"}, or "a":action of an encoded seat
//   {"c":"stop","b":id}      {"c":"spectate","b":id,"on":bool} it is watched: its log comes with every change
//   {"c":"format","format":"gen9ou","teams":[text,...]}
// Where it follows; `see`, `choose`, `refuse` of what is invalid, and `end` are answered once each, by a row, a choice,
// an error or an end:
//   {"c":"follow","b":id,"seats":[true,false] that are encoded here,"play":...,"max_turns":n|null,"tally":free_switches|null}
//   {"c":"see","b":id,"s":0|1,"r":request_number,"lines":text,"request":{...}}      {"c":"hear","b":id,"s":0|1,"lines":text}
//   {"c":"choose","b":id,"s":0|1,"r":request_number,"a":action}
//   {"c":"refuse","b":id,"s":0|1,"r":request_number,"kind":"invalid"|"unavailable"}, as the server calls the last choice
//   {"c":"end","b":id,"winner":seat|null,"turns":n,"reason":text}      {"c":"stop","b":id}
// Out, one line a tick; what is empty is left out:
//   {"records":[[id,seat,request_number,lines,request|null],...], requests as requests.mjs shortens them,
//    "choices":[[id,seat,request_number,choice],...] of followed seats,
//    "errors":[[id,seat,request_number,kind,message],...],
//    "logs":[[id,text],...] of battles with "log":true, "spectated":[[id,text],...] the same of those that run,
//    "ended":[[id,winner_seat|null,turns,reason,[final|null,final|null] if counted, else null,[label,label]],...], the
//    last one where it simulates, as simulate/choice_labels.mjs makes them,"parse_errors":{event:n},
//    "played":[decisions,previews,refused] of bots in battles that are over,"pong":n,"encoded":n,
//    "format":{...}}, see formats.mjs
// After the newline follow `encoded` rows of rowBytes() each (see outbox.mjs): decisions of the encoded seats.
// The first line out is {"hello":{...}}.
//
// The loop blocks in read and in write on purpose: there is nothing else to wait for, the pipe is the
// back-pressure, and the end of stdin is the end of the process. Should it be too busy to read, a thread watches its
// owner (owner_watch.mjs), so that it never outlives it.

import fs from 'node:fs';
import { Worker } from 'node:worker_threads';

import { EncoderTables } from './encoder/host_tables.mjs';
import { FINGERPRINT } from './encoder/layout.mjs';
import { FollowedBattles } from './follow/followed_battles.mjs';
import { Outbox } from './outbox.mjs';

const READ_BYTES = 1 << 20;
const NEWLINE = 10;

class Host {
	/**
	 * @param {Battles} battles carries out what is said of battles
	 * @param {number} most answers that gather before they are sent
	 * @param {(outbox: Outbox) => void} send
	 */
	constructor(battles, most, send) {
		this.battles = battles;
		this.outbox = battles.outbox;
		this.most = most;
		this.send = send;
		this.tables = null;
	}

	/** @param {string} line one line of commands */
	execute(line) {
		let commands;
		try {
			commands = JSON.parse(line);
		} catch (error) {
			this.outbox.error(null, null, null, 'malformed', error.message);
			return;
		}
		for (const command of commands) {
			if (command.c === 'ping') this.outbox.pong = command.n;
			else if (command.c === 'tables') this.tables = new EncoderTables(command.tables);
			else if (!this.battles.execute(command, this.tables)) {
				this.outbox.error(command.b ?? null, null, null, 'malformed', `unknown command ${command.c}`);
			}
			// Bots alone play a whole battle within one command: the end of each tells that this process lives.
			if (this.outbox.waiting >= this.most || this.outbox.playedCounts !== null) this.send(this.outbox);
		}
	}
}

/** Blocks for input; returns the bytes read, 0 at the end of stdin. */
function readInput(buffer) {
	for (;;) {
		try {
			return fs.readSync(0, buffer, 0, buffer.length, null);
		} catch (error) {
			if (error.code === 'EOF') return 0; // Windows' way to say it
			if (error.code !== 'EAGAIN') throw error;
			Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
		}
	}
}

function writeOutput(bytes) {
	let sent = 0;
	while (sent < bytes.length) {
		try {
			sent += fs.writeSync(1, bytes, sent);
		} catch (error) {
			if (error.code === 'EPIPE') process.exit(0); // the owner is gone
			if (error.code !== 'EAGAIN') throw error;
			Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
		}
	}
}

function serve(host) {
	const buffer = Buffer.allocUnsafe(READ_BYTES);
	let rest = []; // pieces of a line whose end has not come yet
	for (;;) {
		const size = readInput(buffer);
		if (size === 0) return;
		const end = buffer.lastIndexOf(NEWLINE, size - 1);
		if (end < 0) {
			rest.push(Buffer.from(buffer.subarray(0, size)));
			continue;
		}
		const complete = Buffer.concat([...rest, buffer.subarray(0, end)]).toString('utf8');
		rest = end + 1 < size ? [Buffer.from(buffer.subarray(end + 1, size))] : [];
		for (const line of complete.split('\n')) if (line) host.execute(line);
		send(host.outbox);
	}
}

/** One write for everything that has gathered. */
function send(outbox) {
	const [text, rows] = outbox.take();
	if (!text) return;
	writeOutput(Buffer.from(text, 'utf8'));
	if (rows.length) writeOutput(rows);
}

/** The value of `--name=N`, 0 where there is none. */
function numberGiven(name) {
	const prefix = `--${name}=`;
	return Number(process.argv.find((argument) => argument.startsWith(prefix))?.slice(prefix.length) ?? 0);
}

/** `--owner=PID`: die with this process. */
function watchOwner() {
	const owner = numberGiven('owner');
	if (!owner) return;
	new Worker(new URL('./owner_watch.mjs', import.meta.url), {
		workerData: { owner },
		resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 },
	}).unref();
}

/** A process that follows does not load the simulator. */
async function battlesWanted(outbox) {
	if (process.argv.includes('--follow')) return { battles: new FollowedBattles(outbox), hello: {} };
	const { hostedBattles } = await import('./simulate/hosted_battles.mjs');
	return hostedBattles(outbox, !process.argv.includes('--no-accelerate'));
}

async function main() {
	watchOwner();
	const { battles, hello } = await battlesWanted(new Outbox());
	writeOutput(Buffer.from(JSON.stringify({
		hello: { protocol: 2, layout: FINGERPRINT, node: process.version, ...hello },
	}) + '\n'));
	serve(new Host(battles, numberGiven('replies-per-write') || Infinity, send));
}

await main();
