// Plays seeded battles on the pinned simulator by random legal choices and prints every damaging hit with the true sets.
//   node record_hits.mjs GEN,GEN... HITS SEED
// HITS of every generation, one JSON line each: gen, user, foe, move, field, damage, crit. Confusion's blows and
// Z- and max moves are left out.

import { randomChoice } from '../../../env_worker/games/pokemon/node/measure/random_choice.mjs';
import { seededRandom } from '../../../env_worker/games/pokemon/node/random.mjs';
import { loadSimulator } from '../../../env_worker/games/pokemon/node/simulate/simulator.mjs';

const [generations] = process.argv.slice(2);
const [wanted, seed] = process.argv.slice(3).map(Number);

const { sim } = loadSimulator(false);
const EFFECTS = { flashfire: 'FLASH_FIRE', charge: 'CHARGE', slowstart: 'SLOW_START', glaiverush: 'GLAIVE_RUSH',
	smackdown: 'SMACK_DOWN', magnetrise: 'MAGNET_RISE', telekinesis: 'TELEKINESIS', ingrain: 'INGRAIN', dynamax: 'DYNAMAX',
	tarshot: 'TAR_SHOT', reflect: 'REFLECT' };
const SCREENS = ['reflect', 'lightscreen', 'auroraveil', 'luckychant'];

function effects(mon) {
	const found = Object.keys(mon.volatiles).filter(id => EFFECTS[id]).map(id => EFFECTS[id]);
	for (const id of ['protosynthesis', 'quarkdrive']) {
		const best = mon.volatiles[id]?.bestStat;
		if (best) found.push(id.toUpperCase() + best.toUpperCase());
	}
	if (mon.ability === 'supremeoverlord' && mon.abilityState.fallen) found.push(`FALLEN${mon.abilityState.fallen}`);
	if (mon.ability === 'slowstart' && mon.abilityState.counter) found.push('SLOW_START');
	return found.sort();
}

/** What a calculator needs to find the stats by itself; null for one that has transformed. */
function setOf(mon) {
	if (mon.transformed) return null;
	const { evs, ivs, nature } = mon.set;
	return { evs, ivs, nature: nature || 'Serious' };
}

/** A gem counts as held during the move it strengthens. */
function fighter(mon, move) {
	return {
		species: mon.species.id, name: mon.species.name, set: setOf(mon), level: mon.level, stats: [mon.maxhp, ...['atk', 'def', 'spa', 'spd', 'spe'].map(s => mon.storedStats[s])],
		types: mon.getTypes(), base_types: (mon.transformed ? mon.baseSpecies : mon.species).types, ability: mon.ignoringAbility() ? '' : mon.ability,
		item: mon.volatiles.gem ? `${move.type.toLowerCase()}gem` : mon.ignoringItem() ? '' : mon.item, tera: mon.terastallized || '', terastallized: !!mon.terastallized,
		hp: mon.hp, max_hp: mon.maxhp, status: mon.status.toUpperCase(),
		stages: ['atk', 'def', 'spa', 'spd', 'spe'].map(s => mon.boosts[s]), effects: effects(mon), down: mon.side.totalFainted,
	};
}

let hits = 0;

function listen(battle, gen) {
	const getDamage = battle.actions.getDamage;
	battle.actions.getDamage = function (source, target, move, suppressMessages) {
		if (typeof move !== 'object' || move.isZ || move.isMax || move.id === 'confused' || source === target) {
			return getDamage.call(this, source, target, move, suppressMessages);
		}
		const hit = {
			gen, user: fighter(source, move), foe: fighter(target, move), move: move.id, move_name: sim.Dex.moves.get(move.id).name, hidden: source.hpType ?? '',
			weather: battle.field.effectiveWeather(), terrain: battle.field.terrain,
			gravity: 'gravity' in battle.field.pseudoWeather, hit: move.hit ?? 1,
			screens: SCREENS.filter(id => target.side.sideConditions[id] || target.volatiles[id]),
			called: move.sourceEffect ?? '',
		};
		const damage = getDamage.call(this, source, target, move, suppressMessages);
		if (typeof damage === 'number' && damage > 0 && hits < wanted) {
			hits++;
			hit.damage = damage;
			hit.crit = !!target.getMoveHitData(move).crit;
			process.stdout.write(JSON.stringify(hit) + '\n');
		}
		return damage;
	};
}

function play(gen, number) {
	const random = seededRandom(seed * 1000003 + number);
	const seeds = [0, 1, 2].map(part => [gen, seed & 0xFFFF, number, part].join(','));
	const battle = new sim.Battle({ formatid: `gen${gen}randombattle`, seed: seeds[0] });
	listen(battle, gen);
	battle.setPlayer('p1', { name: 'A', team: sim.Teams.generate(`gen${gen}randombattle`, { seed: seeds[1] }) });
	battle.setPlayer('p2', { name: 'B', team: sim.Teams.generate(`gen${gen}randombattle`, { seed: seeds[2] }) });
	for (let guard = 0; !battle.ended && guard < 1500 && hits < wanted; guard++) {
		for (const side of battle.sides) {
			const request = side.activeRequest;
			if (!request || request.wait || side.isChoiceDone()) continue;
			const copy = JSON.parse(JSON.stringify(request));
			for (let attempt = 0; attempt < 20; attempt++) {
				if (battle.choose(side.id, randomChoice(copy, random))) break;
			}
		}
	}
	battle.destroy();
}

for (const gen of generations.split(',').map(Number)) {
	hits = 0;
	for (let number = 0; hits < wanted; number++) play(gen, number);
}
