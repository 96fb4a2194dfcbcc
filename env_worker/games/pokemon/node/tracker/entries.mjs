// A Pokemon's entry in a request.

import { readCondition } from './condition.mjs';
import { addMove, readDetails } from './formes.mjs';
import { noteHp } from './last_turn.mjs';

/** Everything of a request entry but the moves. */
function readEntry(mon, entry) {
	mon.setActive(entry.active);
	if (mon.ability === null) mon.revealAbility(entry.baseAbility);
	if (entry.ability !== undefined && entry.ability !== entry.baseAbility) mon.setTemporaryAbility(entry.ability);
	mon.lastEntry = entry;
	readCondition(mon, entry.condition);
	noteHp(mon);
	mon.setItem(entry.item);
	readDetails(mon, entry.details);
}

export function readEntryAndMoves(mon, entry) {
	readEntry(mon, entry);
	for (const move of entry.moves) addMove(mon, move);
}

/** It was never there: another one looked like it. */
export function wasIllusion(mon, fields) {
	mon.setHp(null);
	mon.setMaxHp(null);
	mon.setStatus(null);
	const entry = mon.lastEntry;
	mon.lastEntry = null;
	if (entry !== null) readEntryAndMoves(mon, entry);
	const { hp } = mon;
	mon.switchOut(fields);
	mon.setHp(hp); // Regenerator has not healed it
}

/** What an entry says; its moves only where they may have changed. */
export function updateFromEntry(mon, entry) {
	const last = mon.lastEntry, { moveSet } = mon;
	const sameMoves = last !== null && sameList(last.moves, entry.moves);
	if (sameMoves && moveSet.copied === null && moveSet.learnedMimic === null) readEntry(mon, entry);
	else readEntryAndMoves(mon, entry);
}

function sameList(first, second) {
	if (first.length !== second.length) return false;
	for (let i = 0; i < first.length; i++) if (first[i] !== second[i]) return false;
	return true;
}

export function sameEntry(first, second) {
	return first !== null && first.condition === second.condition && first.active === second.active &&
		first.item === second.item && first.ability === second.ability && first.details === second.details &&
		first.baseAbility === second.baseAbility && first.terastallized === second.terastallized &&
		first.teraType === second.teraType && first.reviving === second.reviving &&
		first.commanding === second.commanding && first.ident === second.ident &&
		first.pokeball === second.pokeball && sameList(first.moves, second.moves) &&
		first.stats.atk === second.stats.atk && first.stats.def === second.stats.def &&
		first.stats.spa === second.stats.spa && first.stats.spd === second.stats.spd &&
		first.stats.spe === second.stats.spe;
}
