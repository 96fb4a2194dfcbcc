// What the damage bot thinks of hands made up for it: `node hands.mjs TABLES.json < QUESTIONS`, one (JSON) a line, answered
// one a line. TABLES.json: encoder_tables(gen).
//   {"user": hand, "foes": [hand|null], "ally": hand|null, "tera": bool, "facts": [name], "winds": [own, foes'], "trickRoom": bool}
//     -> {"rates": {"slot/target/tera": {"value", "dealt"}}, "threats": [{"taken", "knockout"}|null], "margin"}
//   {"chance": name, "user": hand, "target": hand, "facts": [name]} -> number
// A hand: fields of a Combatant, `fighter`: of a Fighter.

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

import { Combatant, View } from '../../../env_worker/games/pokemon/node/bots/combatants.mjs';
import { hitChance } from '../../../env_worker/games/pokemon/node/bots/hit_chance.mjs';
import { HitEstimator } from '../../../env_worker/games/pokemon/node/bots/hits.mjs';
import { Matchup } from '../../../env_worker/games/pokemon/node/bots/scoring.mjs';
import { Fighter, Surroundings } from '../../../env_worker/games/pokemon/node/damage/from_battle.mjs';
import { EncoderTables } from '../../../env_worker/games/pokemon/node/encoder/host_tables.mjs';

const tables = new EncoderTables(JSON.parse(readFileSync(process.argv[2], 'utf8')));
const estimator = new HitEstimator(tables.damage);

function combatant(hand) {
	return hand && Object.assign(Object.create(Combatant.prototype), hand, { fighter: new Fighter(hand.fighter) });
}

function surroundings(facts) {
	const around = new Surroundings();
	for (const name of facts) around.add(tables.damage.facts[name]);
	return around;
}

function opinion(question) {
	const foes = question.foes.map(combatant), user = combatant(question.user), rates = {};
	const view = new View(surroundings(question.facts), [user], foes);
	[view.ownWind, view.foeWind] = question.winds;
	view.trickRoom = question.trickRoom;
	const matchup = new Matchup(tables, estimator, view, user, question.tera, combatant(question.ally));
	for (const slot of user.names.keys()) {
		for (const target of [-1, ...foes.keys()]) {
			for (const tera of [false, true]) rates[`${slot}/${target}/${tera}`] = matchup.rate(slot, target, tera);
		}
	}
	return { rates, threats: matchup.threats, margin: matchup.margin() };
}

for await (const line of createInterface({ input: process.stdin })) {
	const question = JSON.parse(line);
	const answer = question.chance === undefined ? opinion(question) : hitChance(
		tables, question.chance, combatant(question.user), combatant(question.target), surroundings(question.facts));
	process.stdout.write(`${JSON.stringify(answer)}\n`);
}
