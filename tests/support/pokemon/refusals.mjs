// A seat whose first answers the simulator calls invalid, in a battle of the host's own or in one that it follows.
//   node refusals.mjs < JOB
// JOB: {"tables": encoder_tables(...), "format", "refused": number of answers that are refused, "follow": null or {"lines", "request"}}
// Prints one JSON list, what seat 0 is told in order: ["row", request number, observation (float16, base64), mask],
// ["error", request number, kind], ["choice", request number, words]. It answers each row by the first legal action,
// until an answer stands or every action is refused.

import { readFileSync } from 'node:fs';

import { EncoderTables } from '../../../env_worker/games/pokemon/node/encoder/host_tables.mjs';
import { FollowedBattle } from '../../../env_worker/games/pokemon/node/follow/followed_battle.mjs';
import { HostedBattle } from '../../../env_worker/games/pokemon/node/simulate/hosted_battle.mjs';
import { loadSimulator } from '../../../env_worker/games/pokemon/node/simulate/simulator.mjs';

const job = JSON.parse(readFileSync(0, 'utf8'));
const tables = new EncoderTables(job.tables), told = [];
const outbox = {
	record() {},
	unparsed() {},
	end() {},
	rows: {
		add(battle, seat, number, { bytes, choices: { mask } }) {
			if (seat === 0) told.push(['row', number, Buffer.from(bytes).toString('base64'), mask.join('')]);
		},
	},
	error: (battle, seat, number, kind) => told.push(['error', number, kind]),
	choice: (battle, seat, number, words) => told.push(['choice', number, words]),
};

/** Answers the last row until `taken` says that an answer stands. */
function answer(act, taken) {
	while (told.at(-1)[0] === 'row' && !taken()) {
		const [, number, , mask] = told.at(-1);
		act(number, mask.indexOf('1'));
	}
}

function host() {
	const { sim } = loadSimulator(true);
	const command = { b: 0, format: job.format, seed: [1, 2, 3, 4], team_seeds: ['1,2,3,4', '5,6,7,8'], encode: [true, false] };
	const hosted = new HostedBattle(sim, command, outbox, tables), [side] = hosted.battle.sides;
	const { choose } = side;
	let refused = 0;
	side.choose = function (words) {
		return refused++ < job.refused ? this.emitChoiceError("Can't move: the test says so") : choose.call(this, words);
	};
	hosted.choose(1, 1, 'default');
	answer((number, action) => hosted.choose(0, number, null, action), () => refused > job.refused);
	hosted.destroy();
}

function follow() {
	const followed = new FollowedBattle({ b: 0, seats: [true, false], tally: null }, outbox, tables);
	let refused = 0;
	followed.see({ s: 0, r: 1, ...job.follow });
	answer((number, action) => {
		followed.choose({ s: 0, r: number, a: action });
		if (told.at(-1)[0] === 'choice' && refused++ < job.refused) followed.refuse({ s: 0, r: number, kind: 'invalid' });
	}, () => false);
}

if (job.follow === null) host();
else follow();
process.stdout.write(JSON.stringify(told));
