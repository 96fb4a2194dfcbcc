// One process, many battles, driven over pipes: newline-delimited JSON.
//
// In, one line = a list of commands:
//   {"c":"start","b":id,"format":"gen9randombattle","seed":[a,b,c,d],
//    "teams":[packed|null,packed|null],"team_seeds":[seed|null,seed|null],"reuse":false,"names":["a","b"],
//    "encode":[false,false],"tally":free_switches|null (see tally.mjs),"log":false}
//   {"c":"choose","b":id,"s":0|1,"r":request_number,"choice":"move 1"}, or "a":action of an encoded seat
//   {"c":"stop","b":id}      {"c":"ping","n":any}      {"c":"tables","tables":{...}} before anything is encoded
//   {"c":"format","format":"gen9ou","teams":[text,...]}
// Out, one line a tick; what is empty is left out:
//   {"records":[[id,seat,request_number,lines,request|null],...], requests as requests.mjs shortens them,
//    "errors":[[id,seat,request_number,kind,message],...],
//    "logs":[[id,text],...] of battles with "log":true,
//    "ended":[[id,winner_seat|null,turns,reason,[final|null,final|null] if counted],...],"parse_errors":{event:n},"pong":n,"encoded":n,
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
import { checkFormat } from './simulate/formats.mjs';
import { HostedBattle } from './simulate/hosted_battle.mjs';
import { Outbox } from './outbox.mjs';
import { loadSimulator } from './simulate/simulator.mjs';
import { TeamDraws } from './simulate/team_draws.mjs';

const READ_BYTES = 1 << 20;
const NEWLINE = 10;

export class Host {
	/**
	 * @param {number} most replies that gather before they are sent
	 * @param {(outbox: Outbox) => void} send
	 */
	constructor(sim, most, send) {
		this.sim = sim;
		this.most = most;
		this.send = send;
		this.outbox = new Outbox();
		this.battles = new Map();
		this.tables = null;
		this.draws = new TeamDraws(sim);
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
			switch (command.c) {
			case 'choose': this.choose(command); break;
			case 'start': this.start(command); break;
			case 'stop': this.stop(command.b); break;
			case 'ping': this.outbox.pong = command.n; break;
			case 'format': this.outbox.format = checkFormat(this.sim, command.format, command.teams); break;
			case 'tables': this.tables = new EncoderTables(command.tables); break;
			default: this.outbox.error(command.b ?? null, null, null, 'malformed', `unknown command ${command.c}`);
			}
			if (this.outbox.waiting >= this.most) this.send(this.outbox);
		}
	}

	start(command) {
		if (this.battles.has(command.b)) {
			this.outbox.error(command.b, null, null, 'malformed', 'this battle is already running');
			return;
		}
		this.guard(command.b, () => {
			const battle = new HostedBattle(this.sim, command, this.outbox, this.tables, this.draws);
			this.battles.set(command.b, battle);
			this.collect(battle);
		});
	}

	choose(command) {
		const battle = this.battles.get(command.b);
		if (!battle) {
			this.outbox.error(command.b, command.s, command.r, 'stale', 'no such battle');
			return;
		}
		this.guard(command.b, () => {
			battle.choose(command.s, command.r, command.choice, command.a);
			this.collect(battle);
		});
	}

	stop(id) {
		const battle = this.battles.get(id);
		if (!battle) return;
		battle.giveLog();
		this.outbox.end(id, null, battle.battle.turn, 'stopped');
		this.forget(id);
	}

	/** What goes wrong inside one battle ends that battle only. */
	guard(id, action) {
		try {
			action();
		} catch (error) {
			process.stderr.write(`battle ${id} crashed: ${error.stack}\n`);
			const turns = this.battles.get(id)?.battle?.turn ?? 0;
			this.outbox.error(id, null, null, 'crashed', error.message);
			this.outbox.end(id, null, turns, 'crashed');
			this.forget(id);
		}
	}

	collect(battle) {
		if (battle.ended) this.forget(battle.id);
	}

	forget(id) {
		const battle = this.battles.get(id);
		this.battles.delete(id);
		try {
			battle?.destroy();
		} catch (error) {
			process.stderr.write(`battle ${id} was not freed cleanly: ${error.message}\n`);
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

function main() {
	watchOwner();
	const wantAccelerated = !process.argv.includes('--no-accelerate');
	const { sim, version, accelerated, note } = loadSimulator(wantAccelerated);
	if (wantAccelerated && !accelerated) process.stderr.write(`the simulator runs plain: ${note}\n`);
	writeOutput(Buffer.from(JSON.stringify({
		hello: { protocol: 2, layout: FINGERPRINT, node: process.version, showdown: version, accelerated, note },
	}) + '\n'));
	serve(new Host(sim, numberGiven('replies-per-write') || Infinity, send));
}

main();
