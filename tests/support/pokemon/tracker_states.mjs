// What the tracker knows at every request: `node tracker_states.mjs TABLES.json < SEATS.jsonl`.
// TABLES.json: {gen: tracker_tables(gen)}; a seat: {"role", "gen", "doubles", "records": [[lines, request or null], ...]}.
// Prints one state (JSON) a line for every request, seat after seat.

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

import { SeatTracker } from '../../../env_worker/games/pokemon/node/tracker/battle.mjs';
import { ppLeft } from '../../../env_worker/games/pokemon/node/tracker/counters.mjs';
import { DoubleTracker } from '../../../env_worker/games/pokemon/node/tracker/double_battle.mjs';

const tables = JSON.parse(readFileSync(process.argv[2], 'utf8'));

const teamOf = team => [...team].map(([ident, mon]) => [ident, monState(mon)]);

function monState(mon) {
	const { species, level, hp, maxHp, status, statusCounter, active, revealed, item, ability, type1, type2 } = mon;
	return {
		species, level, hp, maxHp, status, statusCounter, active, revealed, item, ability, type1, type2,
		temporaryTypes: mon.temporaryTypes,
		terastallized: mon.terastallized,
		terastallizedType: mon.terastallizedType,
		baseStats: mon.baseStats,
		boosts: mon.boosts,
		effects: [...mon.effects],
		moves: [...mon.moves].map(([id, move]) => [id, move.id, move.pp, ppLeft(move)]),
		ailment: [mon.asleep, mon.resting, mon.hurt],
		mustRecharge: mon.mustRecharge,
		lastMove: mon.lastMove,
		copied: mon.copied && [mon.copied.baseStats, mon.copied.level, mon.copied.stats],
		returnsTo: mon.returnsTo,
		trapper: mon.trapper && mon.trapper.species,
		preparing: mon.preparing,
		protectCounter: mon.protectCounter,
		activeTurns: mon.activeTurns,
		transformed: mon.transformed,
		mimicMove: mon.mimicMove && mon.mimicMove.id,
	};
}

function stateOf(tracker) {
	return {
		turn: tracker.turn,
		team: teamOf(tracker.team),
		opponentTeam: teamOf(tracker.opponentTeam),
		previewed: tracker.previewed.map(monState),
		weather: [...tracker.weather],
		fields: [...tracker.fields],
		sideConditions: [...tracker.sideConditions],
		opponentSideConditions: [...tracker.opponentSideConditions],
		used: [tracker.usedTera, tracker.usedMega, tracker.usedZ, tracker.usedDynamax],
		opponentUsed: [tracker.opponentUsedTera, tracker.opponentUsedMega, tracker.opponentUsedZ,
			tracker.opponentUsedDynamax],
		entries: tracker.entries,
		fighters: tracker.fighters().map(mon => mon.species),
		parseErrors: Object.fromEntries(tracker.parseErrors),
	};
}

/** [profile, body] of everything a version stands for: it must grow whenever the text changes. */
function versioned(mon) {
	const profile = JSON.stringify([mon.species, mon.level, mon.item, mon.ability, mon.type1, mon.type2,
		mon.temporaryTypes, mon.terastallized, mon.terastallizedType, mon.baseStats, mon.maxHp, [...mon.moves.keys()]]);
	const pp = [...mon.moves.values()].map(move => move.pp);
	const ailment = [mon.asleep, mon.resting, mon.hurt];
	return [profile, `${profile}${mon.active}${mon.hp}${mon.status}${mon.statusCounter}${mon.revealed}${pp}${ailment}`];
}

/** Fails if a Pokemon changed and its versions did not. */
function checkVersions(tracker, seen) {
	for (const mon of [...tracker.team.values(), ...tracker.opponentTeam.values()]) {
		const [profile, body] = versioned(mon);
		const last = seen.get(mon);
		if (last && last.profile !== profile && last.profileVersion === mon.profileVersion) throw new Error(profile);
		if (last && last.body !== body && last.bodyVersion === mon.bodyVersion) throw new Error(body);
		const { profileVersion, bodyVersion } = mon;
		seen.set(mon, { profile, body, profileVersion, bodyVersion });
	}
}

for await (const line of createInterface({ input: process.stdin })) {
	const { role, gen, doubles, records } = JSON.parse(line);
	const tracker = new (doubles ? DoubleTracker : SeatTracker)(role, gen, tables[gen]);
	const seen = new Map();
	const states = [];
	for (const [lines, request] of records) {
		if (request === null) continue;
		tracker.feed(lines.split('\n'));
		tracker.sync(request);
		checkVersions(tracker, seen);
		states.push(JSON.stringify(stateOf(tracker)));
		tracker.dirty.clear();
	}
	process.stdout.write(`${states.join('\n')}\n`);
}
