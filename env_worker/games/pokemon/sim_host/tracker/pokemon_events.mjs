// Events of one Pokemon: on and off the field, health, effects, formes.

import { readCondition } from './condition.mjs';
import { moveId, toId, ValueFailure } from './dex.mjs';
import { endEffect, startEffect, startTypeChange } from './effects.mjs';
import { wasIllusion } from './entries.mjs';
import { endField, isOwnSide, need, ofPokemon } from './event_parts.mjs';
import {
	addMove, currentTypes, megaEvolve, primalReversion, setSpecies, switchIn, terastallize, transform,
} from './formes.mjs';
import { Move } from './moves.mjs';

function switched(tracker, event) {
	need(event, 5);
	const side = event[2].split(':')[0].slice(0, 2);
	const mons = side === tracker.role ? tracker.ownMons : tracker.foeMons;
	tracker.activeOf(mons)?.switchOut(tracker.fields);
	const mon = tracker.getPokemon(event[2], event[3]);
	switchIn(mon, event[3]);
	readCondition(mon, event[4]);
}

/** Illusion ends: the one that seemed to be out was another. */
function replaced(tracker, event) {
	need(event, 4);
	const illusion = tracker.activeOf(event[2].slice(0, 2) === tracker.role ? tracker.ownMons : tracker.foeMons);
	if (illusion === null) throw new ValueFailure('nobody is out');
	const mon = tracker.getPokemon(event[2], event[3]);
	if (mon === illusion) return;
	switchIn(mon, event[3]);
	readCondition(mon, `${illusion.hp ?? 0}/${illusion.maxHp ?? 0}`);
	wasIllusion(illusion, tracker.fields);
}

function cureStatus(mon, [, , , status]) {
	if (status === '') return;
	if (mon.dex.status(status) !== mon.status) return;
	mon.setStatus(null);
	mon.setStatusCounter(0);
}

function started(mon, event, tracker) {
	const effect = event[3];
	if (effect === 'typechange') {
		need(event, 5);
		if (event.length > 5 && event[5].startsWith('[of] ')) {
			copyTypes(mon, tracker.getPokemon(event[5].slice(5)));
		} else {
			startTypeChange(mon, event[4].split('/'));
		}
	} else {
		if (effect === 'Mimic') mimic(mon, event);
		startEffect(mon, effect);
	}
	if (!mon.effects.has('DYNAMAX')) return;
	if (mon.own) tracker.usedDynamax = true;
	else tracker.opponentUsedDynamax = true;
}

function copyTypes(mon, other) {
	const types = currentTypes(other);
	startEffect(mon, 'typechange');
	mon.setTemporaryTypes(types);
}

/** |..|POKEMON|Mimic|MOVE: what stands where Mimic was. */
export function mimic(mon, event) {
	need(event, 5);
	mon.moveSet.setMimic(new Move(mon.dex, moveId(event[4])));
	mon.movesChanged();
}

function ended(tracker, event) {
	need(event, 4);
	if (event[3] === 'ability: Neutralizing Gas') endField(tracker, event[3]);
	else endEffect(tracker.getPokemon(event[2]), tracker.dex.effect(event[3]));
}

function endedItem(mon, [, , , item]) {
	mon.setItem(null);
	if (item === 'powerherb') mon.preparing = false;
}

function cant(mon) {
	mon.dancing = false;
	mon.protectCounter = 0;
	if (mon.status === 'SLP') mon.setStatusCounter(mon.statusCounter + 1);
}

function mega(tracker, event) {
	need(event, 3);
	if (isOwnSide(tracker, event[2])) tracker.usedMega = true;
	else tracker.opponentUsedMega = true;
	need(event, 4);
	const mon = tracker.getPokemon(event[2]);
	megaEvolve(mon, event[3]);
}

function zPower(tracker, event) {
	need(event, 3);
	if (isOwnSide(tracker, event[2])) tracker.usedZ = true;
	else tracker.opponentUsedZ = true;
}

function tera(tracker, event) {
	if (event.length !== 4) throw new ValueFailure(event.join('|'));
	const mon = tracker.getPokemon(event[2]);
	terastallize(mon, event[3]);
	if (mon.own) tracker.usedTera = true;
	else tracker.opponentUsedTera = true;
}

function prepare(tracker, event) {
	if (event.length > 4) {
		try {
			const defender = event[4] === '[premajor]' ? null : tracker.getPokemon(event[4]);
			if (defender !== null && toId(event[3]) === 'skydrop') startEffect(defender, 'Sky Drop');
		} catch (error) {
			if (!(error instanceof ValueFailure)) throw error;
		}
	}
	need(event, 4);
	const mon = tracker.getPokemon(event[2]), id = moveId(event[3]);
	if (!mon.moves.has(id)) mon.dex.moveKind(id);
	mon.preparing = true;
}

function transformed(mon, event, tracker) {
	if (event[4] === '[from] ability: Imposter') {
		addMove(mon, 'transform');
		mon.revealAbility('imposter');
	}
	transform(mon, tracker.getPokemon(event[3]));
}

const formeChange = ofPokemon(4, (mon, event) => setSpecies(mon, event[3].split(',')[0], false));
const singleMove = ofPokemon(4, (mon, event) => startEffect(mon, event[3].replaceAll('move: ', '')));

export const POKEMON_EVENTS = {
	switch: switched,
	drag: switched,
	replace: replaced,
	faint: ofPokemon(3, mon => mon.faint()),
	cant: ofPokemon(4, cant),
	'-sethp': ofPokemon(4, (mon, event) => readCondition(mon, event[3])),
	'-status': ofPokemon(4, (mon, event) => mon.setStatus(mon.dex.status(event[3]))),
	'-curestatus': ofPokemon(4, cureStatus),
	'-start': ofPokemon(4, started),
	'-end': ended,
	'-singleturn': singleMove,
	'-singlemove': singleMove,
	'-enditem': ofPokemon(4, endedItem),
	'-mustrecharge': ofPokemon(3, mon => { mon.mustRecharge = true; }),
	'-prepare': prepare,
	'-formechange': formeChange,
	detailschange: formeChange,
	'-mega': mega,
	'-primal': ofPokemon(3, primalReversion),
	'-zpower': zPower,
	'-terastallize': tera,
	'-transform': ofPokemon(4, transformed),
};
