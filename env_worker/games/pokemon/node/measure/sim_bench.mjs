// The simulator alone: random legal choices in this process, no pipes, no JSON parsed by anybody else.
//   node sim_bench.mjs [--battles N] [--live K] [--format F] [--seed S] [--warm-up N] [--no-accelerate]
// Prints {"decisions","seconds","us_per_decision",...}; decisions = requests answered, both seats.

import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';

import { HostedBattle } from '../simulate/hosted_battle.mjs';
import { Outbox } from '../outbox.mjs';
import { seededRandom } from '../random.mjs';
import { randomChoice } from './random_choice.mjs';
import { loadSimulator } from '../simulate/simulator.mjs';

/** Hears the requests as objects; what goes out over a pipe in a real host is dropped here. */
class SelfPlayOutbox extends Outbox {
	constructor() {
		super();
		this.asked = [];
		this.rejected = 0;
	}

	record(battle, seat, requestNumber, lines, request) {
		if (request !== null) this.asked.push([battle, seat, requestNumber, JSON.stringify(request)]);
	}

	error(battle, seat, requestNumber, kind, message) {
		if (kind !== 'unavailable') throw new Error(`battle ${battle}: ${kind}: ${message}`);
		this.rejected++;
	}

	end() {}
}

/** Plays `total` battles, `live` at a time. */
export function selfPlay(sim, { format, total, live, seed }) {
	const outbox = new SelfPlayOutbox();
	const battles = new Map();
	let started = 0, decisions = 0, turns = 0;
	const startNext = () => {
		const id = started++;
		const seeds = [0, 1, 2].map(part => [seed & 0xFFFF, id >> 16, id & 0xFFFF, part]);
		const battle = new HostedBattle(sim, {
			b: id, format, seed: seeds[0], team_seeds: [seeds[1], seeds[2]],
		}, outbox);
		battles.set(id, { battle, random: seededRandom(seed * 1000003 + id) });
	};
	while (started < total && battles.size < live) startNext();
	while (battles.size) {
		const asked = outbox.asked;
		outbox.asked = [];
		for (const [id, seat, requestNumber, requestJson] of asked) {
			const entry = battles.get(id);
			entry.battle.choose(seat, requestNumber, randomChoice(JSON.parse(requestJson), entry.random));
			decisions++;
			if (entry.battle.ended) {
				turns += entry.battle.battle.turn;
				entry.battle.destroy();
				battles.delete(id);
				if (started < total) startNext();
			}
		}
	}
	return { decisions, turns, rejected: outbox.rejected };
}

function main() {
	const { values } = parseArgs({ options: {
		battles: { type: 'string', default: '200' }, live: { type: 'string', default: '1' },
		format: { type: 'string', default: 'gen9randombattle' }, seed: { type: 'string', default: '1' },
		'warm-up': { type: 'string', default: '20' }, 'no-accelerate': { type: 'boolean', default: false },
	} });
	const { sim, accelerated, version, note } = loadSimulator(!values['no-accelerate']);
	const play = { format: values.format, live: Number(values.live), seed: Number(values.seed) };
	selfPlay(sim, { ...play, total: Number(values['warm-up']), seed: play.seed + 1 });
	const started = performance.now();
	const cpuStarted = process.cpuUsage();
	const result = selfPlay(sim, { ...play, total: Number(values.battles) });
	const cpu = process.cpuUsage(cpuStarted);
	const seconds = (performance.now() - started) / 1000;
	process.stdout.write(JSON.stringify({
		...result, battles: Number(values.battles), live: play.live, format: play.format,
		seconds, us_per_decision: seconds * 1e6 / result.decisions,
		cpu_us_per_decision: (cpu.user + cpu.system) / result.decisions,
		rss_mb: process.memoryUsage.rss() / 2 ** 20, accelerated, note, node: process.version, showdown: version,
	}) + '\n');
}

main();
