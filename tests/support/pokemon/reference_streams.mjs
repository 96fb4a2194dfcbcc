// What the simulator's own player streams deliver for scripted battles: the yardstick of the tests.
// In (stdin): [{"format","seed","team_seeds","names","choices":[[seat, choice],...]}, ...]
// Out: [[[lines, requests], [lines, requests]], ...], one pair a seat, without clock lines and wait requests.

import fs from 'node:fs';

import { loadSimulator } from '../../../env_worker/games/pokemon/node/simulate/simulator.mjs';

const { sim } = loadSimulator(false);

async function listen(playerStream) {
	const lines = [], requests = [];
	for await (const chunk of playerStream) {
		for (const line of chunk.split('\n')) {
			if (line.startsWith('|request|')) requests.push(JSON.parse(line.slice('|request|'.length)));
			else if (line && !line.startsWith('|error|') && !line.startsWith('|t:|')) lines.push(line);
		}
	}
	return [lines.join('\n'), requests.filter(request => request && !request.wait)];
}

function play(script) {
	const streams = sim.getPlayerStreams(new sim.BattleStream());
	const heard = [listen(streams.p1), listen(streams.p2)];
	const write = text => streams.omniscient.write(text);
	write(`>start ${JSON.stringify({ formatid: script.format, seed: script.seed.join(',') })}`);
	script.names.forEach((name, seat) => {
		write(`>player p${seat + 1} ${JSON.stringify({ name, seed: script.team_seeds[seat].join(',') })}`);
	});
	for (const [seat, choice] of script.choices) write(`>p${seat + 1} ${choice}`);
	return Promise.all(heard);
}

const scripts = JSON.parse(fs.readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify(await Promise.all(scripts.map(play))));
