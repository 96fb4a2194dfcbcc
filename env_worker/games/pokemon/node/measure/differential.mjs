// Plays the same battles (seeds and random choices) with and without the acceleration and compares
// everything the simulator says, byte for byte: the whole log with both halves of every split, and requests.
//   node differential.mjs [--battles N] [--formats a,b:M] [--first N] [--teams FILE] [--spoil]
// A format's own number of battles stands behind its name.
// --teams: {format: [team, ...]} in JSON, packed or as people write them; battles take them in turns.
// --spoil breaks the accelerated side on purpose: the comparison must notice.
// Prints one line per format; exit code 1 at the first difference, with the place where it starts.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { seededRandom } from '../random.mjs';
import { randomChoice } from './random_choice.mjs';
import { loadSimulator } from '../simulate/simulator.mjs';

const FORMATS = [...[1, 2, 3, 4, 5, 6, 7, 8, 9].map(gen => `gen${gen}randombattle`), 'gen9randomdoublesbattle'];

/** Everything one battle says, as text. @param {object[][]} teams none: the format draws them */
function transcript(sim, format, id, teams) {
	const random = seededRandom(id * 7919 + 17);
	const said = [];
	const asked = [];
	const seed = part => `${id >> 16},${id & 0xFFFF},${part},7`;
	const battle = new sim.Battle({
		formatid: format, seed: seed(0),
		send: (type, data) => {
			if (type === 'end') return;
			said.push(type, ...(Array.isArray(data) ? data.filter(line => !line.startsWith('|t:|')) : [data]));
			if (type === 'sideupdate' && data.startsWith('|request|{', 3)) {
				asked.push([data.slice(0, 2), JSON.parse(data.slice(12))]);
			}
		},
		p1: { name: 'a', seed: seed(1), team: teams[2 * id % teams.length] },
		p2: { name: 'b', seed: seed(2), team: teams[(2 * id + 1) % teams.length] },
	});
	battle.sendUpdates();
	while (!battle.ended && asked.length) {
		const [side, request] = asked.shift();
		if (request.wait) continue;
		const open = asked.length;
		// What is refused for something hidden is asked again at once; anything else is left to the simulator.
		if (!battle.choose(side, randomChoice(request, random)) && asked.length === open) battle.choose(side, 'default');
		battle.sendUpdates();
	}
	said.push(`winner ${battle.winner} turn ${battle.turn} ended ${battle.ended} seed ${battle.prng.getSeed()}`);
	battle.destroy();
	return said.join('\n');
}

/** [format, how many battles] of each. */
function wanted(values) {
	return values.formats.split(',').map(text => {
		const [format, battles = values.battles] = text.split(':');
		return [format, Number(battles)];
	});
}

function play(values) {
	const { sim, accelerated } = loadSimulator(!values['no-accelerate']);
	if (values.spoil && accelerated) sim.Battle.prototype.findSideEventHandlers = () => []; // no residuals of a side
	if (accelerated === values['no-accelerate']) throw new Error('the acceleration is not what was asked for');
	const first = Number(values.first);
	const given = values.teams ? JSON.parse(readFileSync(values.teams, 'utf8')) : {};
	for (const [format, battles] of wanted(values)) {
		const teams = (given[format] ?? []).map(text => sim.Teams.import(text));
		for (let id = first; id < first + battles; id++) {
			const text = transcript(sim, format, id, teams);
			const hash = createHash('sha256').update(text).digest('hex');
			process.stdout.write(`${format} ${id} ${text.length} ${hash}\n`);
			if (values.print) process.stdout.write(text + '\n');
		}
	}
}

/** The lines of one side of the comparison, as they come. */
function side(args) {
	const child = spawn(process.execPath, [fileURLToPath(import.meta.url), '--play', ...args],
		{ stdio: ['ignore', 'pipe', 'inherit'] });
	return createInterface({ input: child.stdout, crlfDelay: Infinity })[Symbol.asyncIterator]();
}

async function compare(args, values) {
	const stock = side([...args, '--no-accelerate']), fast = side(args);
	const counts = new Map();
	for (;;) {
		const [a, b] = await Promise.all([stock.next(), fast.next()]);
		if (a.done && b.done) break;
		if (a.value !== b.value) {
			process.stdout.write(`differs: stock "${a.value}", accelerated "${b.value}"\n`);
			process.exit(1);
		}
		const format = a.value.split(' ')[0];
		counts.set(format, (counts.get(format) ?? 0) + 1);
	}
	for (const [format, expected] of wanted(values)) {
		const count = counts.get(format) ?? 0;
		process.stdout.write(`${format}: ${count} of ${expected} battles identical\n`);
		if (count !== expected) process.exitCode = 1;
	}
}

const { values } = parseArgs({ options: {
	battles: { type: 'string', default: '5' }, first: { type: 'string', default: '0' },
	formats: { type: 'string', default: FORMATS.join(',') }, teams: { type: 'string' },
	play: { type: 'boolean', default: false },
	print: { type: 'boolean', default: false }, spoil: { type: 'boolean', default: false }, 'no-accelerate': { type: 'boolean', default: false },
} });
const passed = ['--battles', values.battles, '--first', values.first, '--formats', values.formats];
if (values.teams) passed.push('--teams', values.teams);
if (values.print) passed.push('--print');
if (values.spoil) passed.push('--spoil');
if (values.play) play(values);
else await compare(passed, values);
