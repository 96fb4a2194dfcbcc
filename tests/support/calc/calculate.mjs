// What @smogon/calc says of hits: JSON lines in (see tests/support/damage/record_hits.mjs, with "gen"), one line out for each:
// its rolls of one hit, or null where it cannot take the Pokemon.

import readline from 'node:readline';

import { Field, Move, Pokemon, calculate, Generations } from '@smogon/calc';

const WEATHER = { sunnyday: 'Sun', raindance: 'Rain', sandstorm: 'Sand', hail: 'Hail', snowscape: 'Snow',
	desolateland: 'Harsh Sunshine', primordialsea: 'Heavy Rain', deltastream: 'Strong Winds' };
const TERRAIN = { electricterrain: 'Electric', grassyterrain: 'Grassy', mistyterrain: 'Misty', psychicterrain: 'Psychic' };
const PARADOX = /^(PROTOSYNTHESIS|QUARKDRIVE)(\w+)$/;

const named = (list, id) => { for (const entry of list) if (entry.id === id) return entry.name; };

function pokemon(gen, told) {
	const [atk, def, spa, spd, spe] = told.stages;
	const boosted = told.effects.map(effect => PARADOX.exec(effect)).find(Boolean);
	const fallen = told.effects.map(effect => /^FALLEN(\d)$/.exec(effect)).find(Boolean);
	return new Pokemon(gen, told.name, {
		level: told.level, ...told.set, ability: named(gen.abilities, told.ability) ?? 'No Ability',
		abilityOn: told.effects.some(effect => effect === 'FLASH_FIRE' || effect === 'SLOW_START'),
		item: named(gen.items, told.item), boosts: { atk, def, spa, spd, spe }, originalCurHP: told.hp,
		status: told.status.toLowerCase(), teraType: told.terastallized ? told.tera : undefined,
		boostedStat: boosted ? boosted[2].toLowerCase() : undefined, alliesFainted: fallen ? Number(fallen[1]) : told.down,
	});
}

function rolls(hit) {
	if (!hit.user.set || !hit.foe.set) return null;
	const gen = Generations.get(hit.gen);
	if (!named(gen.species, hit.user.species) || !named(gen.species, hit.foe.species)) return null;
	const [user, foe] = [pokemon(gen, hit.user), pokemon(gen, hit.foe)];
	const typesOf = told => told.base_types.join();
	if (user.types.join() !== typesOf(hit.user) || foe.types.join() !== typesOf(hit.foe)) return null;
	const ours = [hit.user, hit.foe].flatMap(told => told.stats), theirs = [user, foe].flatMap(mon => Object.values(mon.rawStats));
	if (ours.join() !== theirs.join()) return null; // stats that were swapped, split or given by other rules
	const name = hit.move === 'hiddenpower' ? `Hidden Power ${hit.hidden}` : hit.move_name;
	const move = new Move(gen, name, { hits: 1 });
	const found = calculate(gen, user, foe, move, new Field({
		weather: WEATHER[hit.weather], terrain: TERRAIN[hit.terrain], isGravity: hit.gravity,
		defenderSide: { isReflect: hit.screens.includes('reflect'), isLightScreen: hit.screens.includes('lightscreen'),
			isAuroraVeil: hit.screens.includes('auroraveil') },
	})).damage;
	return typeof found === 'number' ? [found] : found.flat();
}

const lines = readline.createInterface({ input: process.stdin });
for await (const line of lines) process.stdout.write(JSON.stringify(rolls(JSON.parse(line))) + '\n');
