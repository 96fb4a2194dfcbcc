// What the damage formula and the damage bot think of hands made up for them: questions as JSON, one a line, answered one a
// line; see hands.py. `gen`: 9 unless said. Surroundings: "facts": [name], "weather", "terrain", "gravity".
//   {"tables": encoder_tables(gen)}: for the questions of this generation; not answered
//   {"rolls": name, "power": number|null, "user": fighter, "foe": fighter, "screens": [name], ...surroundings} -> [damage]|null
//   {"user": hand, "foes": [hand|null], "ally": hand|null, "tera": bool, "winds": [own, foes'], "trickRoom": bool}
//     -> {"rates": {"slot/target/tera": {"value", "dealt"}}, "threats": [{"taken", "knockout"}|null], "margin"}
//   {"chance": name, "user": hand, "target": hand} -> number
// A hand: fields of a Combatant, `fighter`: of a Fighter.

import { createInterface } from 'node:readline';

import { Combatant, View } from '../../../env_worker/games/pokemon/node/bots/combatants.mjs';
import { hitChance } from '../../../env_worker/games/pokemon/node/bots/hit_chance.mjs';
import { HitEstimator } from '../../../env_worker/games/pokemon/node/bots/hits.mjs';
import { Matchup } from '../../../env_worker/games/pokemon/node/bots/scoring.mjs';
import { AttackerMove } from '../../../env_worker/games/pokemon/node/damage/attacker.mjs';
import { Formula } from '../../../env_worker/games/pokemon/node/damage/formula.mjs';
import { Fighter, Surroundings } from '../../../env_worker/games/pokemon/node/damage/from_battle.mjs';
import { Target } from '../../../env_worker/games/pokemon/node/damage/target.mjs';
import { EncoderTables } from '../../../env_worker/games/pokemon/node/encoder/host_tables.mjs';

const generations = new Map();

function combatant(hand) {
	return hand && Object.assign(Object.create(Combatant.prototype), hand, { fighter: new Fighter(hand.fighter) });
}

function surroundings({ damage }, { facts = [], weather, terrain, gravity = false }) {
	const around = new Surroundings();
	for (const name of facts) around.add(damage.facts[name]);
	if (damage.weathers.has(weather)) {
		const [fact, harsh] = damage.weathers.get(weather);
		around.add(fact);
		around.harsh = harsh;
	}
	if (damage.terrains.has(terrain)) around.add(damage.terrains.get(terrain));
	around.gravity = gravity;
	return around;
}

/** Every roll of a move on a target, null for what does no damage. */
function rolls({ damage }, around, { rolls: name, power, user, foe, screens = [] }) {
	const known = damage.move(name), formula = new Formula(damage);
	if (known === null) return null;
	const move = power ? Object.assign(Object.create(Object.getPrototypeOf(known)), known, { power }) : known;
	const used = new AttackerMove(damage, new Fighter(user), move, around);
	formula.run(used, new Target(damage, new Fighter(foe), screens, around, used.mold));
	return [...formula.rolls];
}

function opinion(tables, around, question) {
	const foes = question.foes.map(combatant), user = combatant(question.user), rates = {};
	const view = new View(around, [user], foes);
	[view.ownWind, view.foeWind] = question.winds;
	view.trickRoom = question.trickRoom;
	const estimator = new HitEstimator(tables.damage);
	const matchup = new Matchup(tables, estimator, view, user, question.tera, combatant(question.ally));
	for (const slot of user.names.keys()) {
		for (const target of [-1, ...foes.keys()]) {
			for (const tera of [false, true]) rates[`${slot}/${target}/${tera}`] = matchup.rate(slot, target, tera);
		}
	}
	return { rates, threats: matchup.threats, margin: matchup.margin() };
}

function answer(tables, question) {
	const around = surroundings(tables, question);
	if (question.rolls !== undefined) return rolls(tables, around, question);
	if (question.chance === undefined) return opinion(tables, around, question);
	return hitChance(tables, question.chance, combatant(question.user), combatant(question.target), around);
}

for await (const line of createInterface({ input: process.stdin })) {
	const question = JSON.parse(line);
	if (question.tables) generations.set(question.tables.gen, new EncoderTables(question.tables));
	else process.stdout.write(`${JSON.stringify(answer(generations.get(question.gen ?? 9), question))}\n`);
}
