// Events of the field, the sides and the battle itself.

import { readCondition } from '../condition.mjs';
import { ParseFailure } from '../dex.mjs';
import { endTurn } from '../effects.mjs';
import { endField, integer, isOwnSide, need, startField } from './event_parts.mjs';
import { readDetails } from '../formes.mjs';
import { Mon } from '../pokemon.mjs';

function turn(tracker, event) {
	need(event, 3);
	tracker.turn = integer(event[2]);
	for (const mon of tracker.fighters()) endTurn(mon, tracker.turn);
}

/** The end of a turn has hurt whom it hurts. Gens 1 and 2 poison behind each move instead: counters.mjs. */
function upkeep(tracker) {
	if (tracker.dex.gen <= 2) return;
	for (const mon of tracker.fighters()) {
		if (mon.status !== 'TOX') continue;
		mon.hurt++;
		mon.bodyVersion++;
	}
}

function weather(tracker, event) {
	need(event, 3);
	if (event[2] === 'none') {
		tracker.weather.clear();
		return;
	}
	const name = tracker.dex.weather(event[2]);
	if (event[3] === '[upkeep]' && tracker.weather.has(name)) return;
	tracker.weather.clear();
	tracker.weather.set(name, tracker.turn);
}

function fieldStart(tracker, event) {
	need(event, 3);
	startField(tracker, event[2]);
}

function fieldEnd(tracker, event) {
	need(event, 3);
	endField(tracker, event[2]);
}

function conditionsOf(tracker, side) {
	return isOwnSide(tracker, side) ? tracker.sideConditions : tracker.opponentSideConditions;
}

function sideStart(tracker, event) {
	need(event, 4);
	const conditions = conditionsOf(tracker, event[2]), name = tracker.dex.side(event[3]);
	if (tracker.dex.stackable.has(name)) conditions.set(name, (conditions.get(name) ?? 0) + 1);
	else if (!conditions.has(name)) conditions.set(name, tracker.turn);
}

function sideEnd(tracker, event) {
	need(event, 4);
	const name = tracker.dex.side(event[3]);
	if (name !== 'UNKNOWN' && !conditionsOf(tracker, event[2]).delete(name)) throw new ParseFailure(name);
}

function swapSideConditions(tracker) {
	[tracker.sideConditions, tracker.opponentSideConditions] =
		[tracker.opponentSideConditions, tracker.sideConditions];
}

/** The whole team of one side; `pokemon` names one of it. */
function cureTeam(tracker, event) {
	need(event, 3);
	const mons = event[2].slice(0, 2) === tracker.role ? tracker.ownMons : tracker.foeMons;
	for (const mon of mons) if (mon.status !== 'FNT') mon.setStatus(null);
}

function teamSize(tracker, event) {
	need(event, 4);
	tracker.teamSizes.set(event[2], integer(event[3]));
}

/** Team preview shows a Pokemon; the own ones are in the requests. */
function poke(tracker, event) {
	need(event, 4);
	if (event[2] === tracker.role) return;
	const mon = new Mon(tracker.dex, false);
	readDetails(mon, event[3]);
	readCondition(mon, '100/100');
	tracker.previewed.push(mon);
}

function clearPoke(tracker) {
	for (const mon of tracker.ownMons) mon.setActive(false);
}

function swap(tracker, event) {
	need(event, 4);
	tracker.swap(event[2], event[3]);
}

export const BATTLE_EVENTS = {
	turn,
	upkeep,
	'-weather': weather,
	'-fieldstart': fieldStart,
	'-fieldend': fieldEnd,
	'-sidestart': sideStart,
	'-sideend': sideEnd,
	'-swapsideconditions': swapSideConditions,
	'-cureteam': cureTeam,
	teamsize: teamSize,
	poke,
	clearpoke: clearPoke,
	swap,
};
