// Events of one Pokemon: on and off the field, health, effects, formes.

import { readCondition } from '../condition.mjs';
import { moveId, toId, ValueFailure } from '../dex.mjs';
import { endEffect, startEffect, startTypeChange } from '../effects.mjs';
import { wasIllusion } from '../entries.mjs';
import { endField, isOwnSide, need, ofPokemon } from './event_parts.mjs';
import {
	addMove, addType, changeForme, currentTypes, primalReversion, switchIn, takeForme, terastallize,
	transform,
} from '../formes.mjs';
import { Health, Standing } from '../standing.mjs';

const LAST_GEN_OF_OWN_SCREENS = 2; // that a Pokemon puts up for itself
const PASSES = new Set(['[from] Baton Pass', '[from] Shed Tail']);

function switched(tracker, event) {
	need(event, 5);
	const own = event[2].startsWith(tracker.role), out = tracker.out(event[2]);
	const passes = event.length > 5 && PASSES.has(event[5]) && out !== null && out.status !== 'FNT';
	const standing = passes ? new Standing(out) : null;
	const left = out && new Health(out);
	if (out !== null) {
		out.switchOut(tracker.fields);
		tracker.leave(event[2]);
		endCommand(tracker, event[2], out);
	}
	const mon = tracker.entrant(event[2], event[3]);
	const before = mon === out ? left : new Health(mon);
	tracker.enter(mon, event[2], event[3]);
	readCondition(mon, event[4]);
	mon.before = before;
	if (!own && before.status === 'FNT') faintedInDisguise(tracker, mon);
	standing?.pass(mon, event[5].slice(7));
	if (out !== null) tracker.release(out, passes && tracker.dex.passed.has('TRAPPED') ? mon : null);
}

/** Who has fainted comes in: another one fainted in its disguise. */
function faintedInDisguise(tracker, mon) {
	const wearers = tracker.foeMons.filter(one => one !== mon && !one.active && one.ability === 'illusion' && one.status !== 'FNT');
	if (tracker.hiddenFaints >= 0 && wearers.length === 1) wearers[0].faint();
	else tracker.hiddenFaints++;
}

function fainted(mon, event, tracker) {
	mon.faint();
	if (mon.twinOf !== null && !mon.own) faintedInDisguise(tracker, mon.twinOf);
	endCommand(tracker, event[2], mon);
	tracker.release(mon, null);
}

/** Dondozo is gone: its partner, if it was in its mouth, stands beside it again. */
function endCommand(tracker, identifier, mon) {
	if (mon.species !== 'dondozo') return;
	const partner = tracker.partner(identifier);
	if (partner !== null) endEffect(partner, 'COMMANDER');
}

/** Illusion ends: the one that seemed to be out was another. */
function replaced(tracker, event) {
	need(event, 4);
	const illusion = tracker.out(event[2]);
	if (illusion === null) throw new ValueFailure('nobody is out');
	const named = isOwnSide(tracker, event[2]) ? tracker.ownNamed(event[2]) : undefined;
	const mon = named ?? tracker.getPokemon(event[2], event[3]);
	if (mon === illusion) { // an own one, as its request has said
		mon.revealed = true;
		return;
	}
	const standing = new Standing(illusion), health = new Health(illusion), { before } = illusion;
	switchIn(mon, event[3]);
	tracker.occupy(event[2], mon);
	wasIllusion(illusion, tracker.fields);
	standing.giveAll(mon);
	health.unmask(mon);
	mon.setHp(health.hp);
	mon.setMaxHp(health.maxHp);
	mon.setStatus(health.status);
	before?.give(illusion);
	tracker.release(illusion, mon);
	tracker.unmasked(illusion);
}

function endItem(mon, event, tracker) {
	mon.setItem(null);
	tracker.usedUp = [mon, toId(event[3])];
}

function ailing(mon, event) {
	mon.setStatus(mon.dex.status(event[3]));
	if (mon.dex.gen === 1 && mon.status === 'SLP') mon.mustRecharge = false;
}

function cureStatus(mon, [, , , status]) {
	if (status === '') return;
	if (mon.dex.status(status) !== mon.status) return;
	mon.setStatus(null);
}

function started(mon, event, tracker) {
	const effect = event[3];
	if (effect === 'typechange') {
		need(event, 5);
		if (event[5] === '[silent]' && showsDisguise(mon, event, tracker)) return;
		if (event.length > 5 && event[5].startsWith('[of] ')) {
			copyTypes(mon, tracker.getPokemon(event[5].slice(5)));
		} else {
			startTypeChange(mon, event[4].split('/'));
		}
	} else {
		if (effect === 'Mimic') mimic(mon, event);
		else if (effect === 'typeadd') addType(mon, event[4]);
		else if (effect === 'Smack Down') mon.preparing = false;
		else if (effect === 'confusion' && event[4] === '[silent]') mon.goesOn = ''; // gen 2: the end of Thrash
		const name = startEffect(mon, effect);
		if (tracker.dex.gen <= LAST_GEN_OF_OWN_SCREENS) mon.began.set(name, tracker.turn);
	}
	if (!mon.effects.has('DYNAMAX')) return;
	if (mon.own) tracker.usedDynamax = true;
	else tracker.opponentUsedDynamax = true;
}

/**
 * At the end of a turn the simulator tells the types that a Pokemon seems to have; of an own one in disguise they are
 * another one's. No such line tells of one that has terastallized: then the disguise has, perhaps before a request has
 * said that it is one.
 */
function showsDisguise(mon, event, tracker) {
	if (!mon.own) return false;
	const named = tracker.ownNamed(event[2]);
	return mon !== named || named.terastallized;
}

function copyTypes(mon, other) {
	const types = currentTypes(other);
	startEffect(mon, 'typechange');
	mon.effects.delete('TYPEADD');
	mon.setTemporaryTypes(types);
}

/** |..|POKEMON|Mimic|MOVE: what stands where Mimic was. */
export function mimic(mon, event) {
	need(event, 5);
	mon.moveSet.setMimic(moveId(event[4]));
	mon.movesChanged();
}

function ended(tracker, event) {
	need(event, 4);
	if (event[3] === 'ability: Neutralizing Gas') endField(tracker, event[3]);
	else endEffect(tracker.getPokemon(event[2]), tracker.dex.effect(event[3]));
}

/** Gen 2 does not mark a move that fails: a protecting one ends the row of them. */
function failed(mon, event, tracker) {
	if (mon.dex.gen === 2 && mon === tracker.mover) mon.protectCounter = 0;
}

function cant(mon, event, tracker) {
	mon.dancing = false;
	if (event[3] === 'recharge') mon.mustRecharge = false;
	mon.goesOn = '';
	mon.protectCounter = 0;
	if (tracker.dex.gen > 1 || event[3] === 'par') mon.preparing = false;
}

function mega(tracker, event) {
	need(event, 3);
	evolved(tracker, event[2]);
	need(event, 4);
	const mon = tracker.getPokemon(event[2]);
	mon.setTemporaryAbility(null); // its forme has come with the detailschange before
	showStone(mon, event[4]);
}

function evolved(tracker, ident) {
	if (isOwnSide(tracker, ident)) tracker.usedMega = true;
	else tracker.opponentUsedMega = true;
}

/** |-mega|POKEMON|SPECIES|STONE, |-primal|POKEMON|ORB; Rayquaza needs none. */
function showStone(mon, name = '') {
	if (name !== '') mon.setItem(toId(name));
}

function primal(mon, event) {
	primalReversion(mon);
	showStone(mon, event[3]);
}

/** |-burst|POKEMON|SPECIES|CRYSTAL */
function burst(mon, event, tracker) {
	evolved(tracker, event[2]);
	showStone(mon, event[4]);
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
	mon.preparedTurn = tracker.turn;
}

function transformed(mon, event, tracker) {
	if (event[4] === '[from] ability: Imposter') {
		addMove(mon, 'transform');
		mon.revealAbility('imposter');
	}
	transform(mon, tracker.getPokemon(event[3]));
	tracker.copies.push(mon);
}

const singleMove = ofPokemon(4, (mon, event) => startEffect(mon, event[3].replaceAll('move: ', '')));

export const POKEMON_EVENTS = {
	switch: switched,
	drag: switched,
	replace: replaced,
	faint: ofPokemon(3, fainted),
	cant: ofPokemon(4, cant),
	'-fail': ofPokemon(3, failed),
	'-sethp': ofPokemon(4, (mon, event) => readCondition(mon, event[3])),
	'-status': ofPokemon(4, ailing),
	'-curestatus': ofPokemon(4, cureStatus),
	'-start': ofPokemon(4, started),
	'-end': ended,
	'-singleturn': singleMove,
	'-singlemove': singleMove,
	'-enditem': ofPokemon(4, endItem),
	'-mustrecharge': ofPokemon(3, mon => { mon.mustRecharge = true; }),
	'-prepare': prepare,
	'-anim': ofPokemon(3, mon => { mon.preparing = false; }), // the move that was prepared is used at once
	'-formechange': ofPokemon(4, (mon, event) => takeForme(mon, event[3].split(',')[0])),
	detailschange: ofPokemon(4, (mon, event) => changeForme(mon, event[3])),
	'-mega': mega,
	'-primal': ofPokemon(3, primal),
	'-burst': ofPokemon(4, burst),
	'-zpower': zPower,
	'-terastallize': tera,
	'-transform': ofPokemon(4, transformed),
};
