// Counters that no line tells: turns asleep, the stage of bad poison, pp as requests say it.

import { moveId } from './dex.mjs';

const SLEEP_STARTS_ANEW = 5; // the generation in which a sleeper that comes in has all its turns before it again

/** Gens 1 and 2; later the end of the turn counts, which tells of no damage where an ability prevents it. */
function hurt(tracker, event) {
	if (event[4] !== '[from] psn' || tracker.dex.gen > 2) return;
	const mon = tracker.getPokemon(event[2]);
	mon.hurt++;
	mon.bodyVersion++;
}

function cant(tracker, event) {
	const mon = tracker.getPokemon(event[2]);
	if (event[3] !== 'slp') return;
	mon.asleep++;
	mon.bodyVersion++;
}

function status(tracker, event) {
	const mon = tracker.getPokemon(event[2]);
	mon.asleep = 0;
	mon.hurt = mon.dex.gen > 2 && event[4] === '[from] item: Toxic Orb' ? -1 : 0; // the upkeep that follows is not counted
	mon.resting = event[4] === '[from] move: Rest';
	mon.bodyVersion++;
}

function switched(tracker, event) {
	const mon = tracker.getPokemon(event[2]);
	mon.hurt = 0;
	if (tracker.dex.gen === SLEEP_STARTS_ANEW) mon.asleep = 0;
	mon.bodyVersion++;
}

/** Event -> what is counted, after the battle has taken the line. */
export const COUNTED = new Map([
	['cant', cant],
	['-status', status],
	['-damage', hurt],
	['switch', switched],
	['drag', switched],
]);

/** Takes over what a request says of an active Pokemon's moves: the pp, all there can be, and that it is free to choose. */
export function readOffered(mon, offered) {
	if (offered[0].id !== 'recharge') mon.mustRecharge = false;
	if (offered[0].pp !== undefined) mon.goesOn = '';
	for (const { id, pp, maxpp } of offered) {
		if (pp === undefined) continue; // a locked move
		const move = mon.moves.get(moveId(id));
		if (move === undefined) continue;
		move.correction = pp - move.pp;
		if (maxpp !== undefined) move.fullPp = maxpp;
	}
}

/** Fraction: used counts, twice under Pressure; corrected by what the last request said of an own move. */
export function ppLeft(move) {
	return Math.min(Math.max(move.pp + move.correction, 0) / move.fullPp, 1);
}
