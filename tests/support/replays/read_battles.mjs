// Plays battles of random choices and reads their spectators' logs with battle_log.mjs; after every update the
// reader's state is held against the simulator's own.
//   node read_battles.mjs < {"battles": [{"format", "seed", "teams": [text, text] | null, "names"}]}
// Prints {"unread": [line,...], "differences": [text,...], "kinds": [...], "steps": n, "results": [...], "logs": [text,...]}

import { readFileSync } from 'node:fs';

import { BattleLog } from '../../../env_worker/games/pokemon/replays/battle_log.mjs';
import { HostedBattle } from '../../../env_worker/games/pokemon/node/simulate/hosted_battle.mjs';
import { Outbox } from '../../../env_worker/games/pokemon/node/outbox.mjs';
import { randomChoice } from '../../../env_worker/games/pokemon/node/measure/random_choice.mjs';
import { seededRandom } from '../../../env_worker/games/pokemon/node/random.mjs';
import { spectatorLog } from '../../../env_worker/games/pokemon/node/follow/seat_lines.mjs';
import { loadSimulator } from '../../../env_worker/games/pokemon/node/simulate/simulator.mjs';

const MOST_CHOICES = 600; // random choices may never end a battle

class Requests extends Outbox {
	constructor() {
		super();
		this.asked = [];
	}

	record(battle, seat, requestNumber, lines, request) {
		if (request !== null) this.asked.push([seat, requestNumber, JSON.stringify(request)]);
	}

	end() {}
}

function play(sim, { format, seed, teams, names }, found) {
	const outbox = new Requests(), random = seededRandom(seed);
	const seeds = [0, 1, 2].map(part => [seed & 0xFFFF, 7, 7, part]);
	const hosted = new HostedBattle(sim, {
		b: seed, format, seed: seeds[0], team_seeds: [seeds[1], seeds[2]], ...(teams ? { teams } : {}), names,
	}, outbox);
	const log = new BattleLog([]);
	let lines = [], done = 0;
	for (let choices = 0; outbox.asked.length && choices < MOST_CHOICES; choices++) {
		const asked = outbox.asked;
		outbox.asked = [];
		for (const [seat, requestNumber, request] of asked) {
			if (!hosted.ended) hosted.choose(seat, requestNumber, randomChoice(JSON.parse(request), random));
		}
		lines = spectatorLog(hosted.battle.log).trimEnd().split('\n');
		for (; done < lines.length; done++) log.read(lines[done]);
		compare(hosted.battle, log, `${format} ${seed}`, found.differences);
	}
	hosted.destroy();
	found.unread.push(...log.unread);
	found.steps += log.steps.length;
	found.results.push(log.result);
	found.logs.push(lines.join('\n') + '\n');
	for (const line of lines) found.kinds.add(line.split('|')[1]);
	for (const step of log.steps) {
		if (!step.text || /undefined|NaN|\[object/.test(step.text)) found.differences.push(`sentence: ${step.text}`);
	}
}

/** Hp in percent, status and boosts of every active Pokémon. */
function compare(battle, log, where, differences) {
	const { state } = log;
	for (const side of battle.sides) {
		side.active.forEach((pokemon, index) => {
			const key = state.active[`${side.id}${'abc'[index]}`];
			const shown = key && state.pokemon[key];
			if (!pokemon || !shown) {
				if (pokemon?.isActive && pokemon.hp) differences.push(`${where} ${side.id}: nothing is shown for ${pokemon}`);
				return;
			}
			const say = (what, real, read) => {
				if (real !== read) {
					differences.push(`${where} turn ${battle.turn} ${pokemon}: ${what} is ${real}, shown ${read}`);
				}
			};
			const hp = 100 * pokemon.hp / pokemon.maxhp;
			if (Math.abs(hp - shown.hp) > 2.2) say('hp', hp, shown.hp); // shown as n/48 in old formats
			if (!pokemon.hp) return;
			say('status', pokemon.status, shown.status);
			const boosts = Object.entries(pokemon.boosts).filter(([, amount]) => amount).map(String).sort().join(' ');
			say('boosts', boosts, Object.entries(shown.boosts).map(String).sort().join(' '));
		});
	}
	const weather = battle.field.weather !== '', shown = state.weather !== '';
	if (weather !== shown) differences.push(`${where} turn ${battle.turn}: weather ${battle.field.weather}, shown ${state.weather}`);
	for (const side of battle.sides) {
		const real = Object.keys(side.sideConditions).length;
		const read = Object.keys(log.side(side.id).conditions).length;
		if (real < read) differences.push(`${where} turn ${battle.turn} ${side.id}: ${Object.keys(log.side(side.id).conditions)} are shown, ${Object.keys(side.sideConditions)} there`);
	}
}

const { sim } = loadSimulator(true);
const found = { unread: [], differences: [], kinds: new Set(), steps: 0, results: [], logs: [] };
for (const battle of JSON.parse(readFileSync(0, 'utf8')).battles) play(sim, battle, found);
process.stdout.write(JSON.stringify({ ...found, kinds: [...found.kinds].sort() }));
