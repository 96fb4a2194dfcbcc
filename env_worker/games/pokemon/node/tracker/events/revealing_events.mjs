// Events that tell abilities and items, mostly in passing.

import { readCondition } from '../condition.mjs';
import { moveId, ParseFailure, toId, ValueFailure } from '../dex.mjs';
import { startEffect } from '../effects.mjs';
import { addMove, endTera } from '../formes.mjs';
import { integer, need, startField, withoutOf } from './event_parts.mjs';
import { presses } from './move_event.mjs';
import { mimic } from './pokemon_events.mjs';

const LEPPA_PP = 10;
const REVIVAL = '[from] move: Revival Blessing';
const GRUDGE = 'move: Grudge';
const ABILITY = '[ability] ';
const LAST_GEN_OF_LATE_PRESSURE = 4;
const AS_ONE = new Set(['As One', 'Unnerve', 'Chilling Neigh', 'Grim Neigh']);
const THIEVES = new Map([
	['[from] ability: Pickpocket', 'pickpocket'],
	['[from] ability: Magician', 'magician'],
	['[from] move: Thief', ''],
	['[from] move: Covet', ''],
]);

const CHANGES_HANDS = new Set([...THIEVES.keys(), '[from] move: Bestow', '[from] move: Trick', '[from] move: Switcheroo']);

const afterLast = (text, mark) => text.slice(text.lastIndexOf(mark) + mark.length);

function damage(tracker, event) {
	need(event, 4);
	const mon = tracker.getPokemon(event[2]);
	readCondition(mon, event[3]);
	if (event.length !== 5 && event.length !== 6) return;
	const cause = event[4];
	if (cause === '[from] confusion') { // it does not get to move
		mon.protectCounter = 0;
		mon.preparing = false;
		mon.goesOn = '';
	}
	if (event.length === 5) {
		if (cause.startsWith('[from] item:')) mon.setItem(toId(afterLast(cause, 'item:')));
	} else if (event[5].startsWith('[of]')) {
		if (cause.startsWith('[from] item:')) {
			if (cause.endsWith(' Berry')) return; // eaten
			tracker.getPokemon(afterLast(event[5], '[of]').trim()).setItem(toId(afterLast(cause, 'item:')));
		} else if (cause.startsWith('[from] ability:')) {
			tracker.getPokemon(afterLast(event[5], '[of]').trim()).revealAbility(afterLast(cause, 'ability:'));
		}
	}
}

function heal(tracker, event) {
	need(event, 4);
	const mon = tracker.getPokemon(event[2]), end = event[event.length - 1], revived = end === REVIVAL;
	if (revived && !mon.own && mon.status !== 'FNT') tracker.hiddenFaints--; // it fainted in a disguise
	readCondition(mon, event[3]);
	if (revived) {
		endTera(mon);
	} else if (end === '[from] move: Lunar Dance') {
		for (const move of mon.moves.values()) mon.setPp(move, move.fullPp);
	}
	if (event.length >= 5 && event[4].startsWith('[from] ability:')) {
		const ability = toId(afterLast(event[4], 'ability:'));
		const owner = ability === 'hospitality' ? withoutOf(event[5]).trim() : event[2];
		tracker.getPokemon(owner).revealAbility(ability);
	} else if (event.length >= 5 && event[4].startsWith('[from] item:')) {
		const item = toId(afterLast(event[4], 'item:'));
		// What was just eaten is not held any more.
		if (mon.item !== null && !item.includes('berry') && !item.includes('herb')) mon.setItem(item);
	}
}

function ability(tracker, event) {
	need(event, 4);
	const mon = tracker.getPokemon(event[2]), cause = event[3];
	if (mon.dex.species(mon.species).base.includes('calyrex') && AS_ONE.has(cause)) return;
	const replaces = event[5]?.startsWith('[from] move: ') && !event[4].startsWith('[');
	if (replaces) revealLost(mon, event[4]); // Role Play, Worry Seed
	const traced = text => text !== undefined && text.startsWith('[from] ability: Trace');
	if (traced(event[4]) || traced(event[5])) {
		if (mon.ability !== 'trace') {
			if (mon.temporaryAbility !== null) mon.setTemporaryAbility(null);
			else if (mon.ability !== null) mon.innateAbility = null;
			mon.revealAbility('trace');
		}
		mon.revealAbility(cause);
	} else {
		if (cause === 'Neutralizing Gas') startField(tracker, cause);
		mon.revealAbility(cause);
	}
}

function endAbility(tracker, event) {
	need(event, 3);
	tracker.getPokemon(event[2]).effects.add('GASTRO_ACID');
}

function immune(tracker, event) {
	if (event.length !== 4 || !event[3].startsWith('[from] ability:')) return;
	tracker.getPokemon(event[2]).revealAbility(event[3].replaceAll('[from] ability:', ''));
}

/** A White Herb and its like may be used as soon as they change hands, before the line that says that they do. */
function isUsedUp({ usedUp }, mon, [, , , name, cause]) {
	return usedUp !== null && usedUp[0] === mon && usedUp[1] === toId(name) && CHANGES_HANDS.has(cause);
}

function item(tracker, event) {
	if (event.length === 6) {
		itemWithCause(tracker, event);
		return;
	}
	need(event, 4);
	const mon = tracker.getPokemon(event[2]);
	if (!isUsedUp(tracker, mon, event)) mon.setItem(toId(event[3]));
}

function itemWithCause(tracker, event) {
	const [, , pokemon, name, cause, of] = event;
	if (cause === '[from] ability: Frisk') {
		const mon = tracker.getPokemon(afterLast(of, '[of] '));
		tracker.frisked(mon, pokemon)?.setItem(toId(name));
		mon.revealAbility('frisk');
		return;
	}
	if (cause === '[from] move: Bestow') {
		takeItem(tracker, event);
		return;
	}
	const thief = THIEVES.get(cause);
	if (thief === undefined) throw new ValueFailure(cause);
	takeItem(tracker, event);
	if (thief) tracker.getPokemon(pokemon).revealAbility(thief);
}

/** From one to another. */
function takeItem(tracker, event) {
	const mon = tracker.getPokemon(event[2]);
	if (!isUsedUp(tracker, mon, event)) mon.setItem(toId(event[3]));
	tracker.getPokemon(withoutOf(event[5])).setItem(null);
}

/** The ability that it had until another one took its place; a copy shows its model's. */
function revealLost(mon, ability) {
	if (!mon.ability) mon.revealAbility(ability);
}

function skillSwap(tracker, event) {
	if (event.length <= 4) return;
	const end = event[event.length - 1], ofActor = end.startsWith('[of] ');
	const target = ofActor ? tracker.getPokemon(event[2]) : null;
	const actor = tracker.getPokemon(ofActor ? withoutOf(end) : event[4]);
	const abilities = (ofActor ? event.slice(4, -1) : event.slice(5))
		.map(text => text.replaceAll(ABILITY, '').replaceAll('[ability2] ', '')).filter(Boolean);
	if (abilities.length >= 2) {
		const other = target ?? tracker.getPokemon(event[2]), [gained, lost] = abilities;
		startEffect(other, event[3]);
		if (ofActor) revealLost(actor, gained);
		revealLost(other, lost);
		other.setTemporaryAbility(gained);
		actor.setTemporaryAbility(lost);
	} else if (target !== null && abilities.length === 0) { // until gen 4 and between partners no line tells them
		const given = target.ability;
		target.takeAbility(actor.ability);
		actor.takeAbility(given);
	}
}

function wanderingSpirit(tracker, event) {
	need(event, 7);
	tracker.getPokemon(event[2]).setTemporaryAbility(event[4]);
	tracker.getPokemon(withoutOf(event[6])).setTemporaryAbility('wanderingspirit');
}

function mummy(tracker, event) {
	need(event, 6);
	const target = event[5].includes('[of] ') ? withoutOf(event[5]) : event[4];
	const mon = tracker.getPokemon(target);
	if (event[5].startsWith(ABILITY)) revealLost(mon, event[5].slice(ABILITY.length));
	mon.setTemporaryAbility('mummy');
}

function symbiosis(tracker, event) {
	need(event, 6);
	tracker.getPokemon(withoutOf(event[5])).setItem(toId(event[4].replaceAll('[item] ', '')));
	tracker.getPokemon(event[2]).setItem(null);
}

function leppaBerry(tracker, event) {
	const mon = tracker.getPokemon(event[2]);
	need(event, 5);
	const move = addMove(mon, event[4]); // one that Pluck feeds may not have shown it
	if (move === null) throw new ParseFailure(event[4]);
	move.pp = Math.min(move.pp + LEPPA_PP, move.fullPp);
	mon.bodyVersion++;
}

/** Spite and its like name a move and the pp it loses; Grudge takes all. */
function takePp(mon, [, , , effect, name, pp]) {
	const move = mon.moves.get(moveId(name));
	if (move === undefined) return;
	if (effect === GRUDGE) {
		mon.setPp(move, 0);
	} else {
		move.use(integer(pp));
		mon.bodyVersion++;
	}
}

/** Until gen 4 it meets the Pressure of the Pokemon from which it takes the move, when it does so. */
function snatch(tracker, mon, event) {
	startEffect(mon, event[3]);
	const move = mon.moves.get('snatch');
	if (mon.dex.gen > LAST_GEN_OF_LATE_PRESSURE || move === undefined) return;
	if (!presses(tracker, tracker.getPokemon(withoutOf(event[event.length - 1])))) return;
	move.use(1);
	mon.bodyVersion++;
}

function sketch(mon, name) {
	mon.moveSet.replace('sketch', name);
	mon.movesChanged();
}

/** Gens 3 and 4 tell of Sketch as of Mimic. */
function mimicOrSketch(tracker, event) {
	const mon = tracker.getPokemon(event[2]);
	if (tracker.moved[0] === event[2] && tracker.moved[1] === 'Sketch') sketch(mon, event[4]);
	else mimic(mon, event);
}

/** It is down: what it prepared is lost (only Fly and Bounce are told of), and nothing keeps it afloat. */
function gravity(mon, effect) {
	startEffect(mon, effect);
	mon.preparing = false;
	mon.effects.delete('MAGNET_RISE');
	mon.effects.delete('TELEKINESIS');
}

function trapped(tracker, target) {
	const mon = tracker.getPokemon(target);
	startEffect(mon, 'trapped');
	mon.trapper = tracker.trapperOf(mon);
}

/** Rollout ends where it does not hit. */
function protect(tracker, mon, effect) {
	startEffect(mon, effect);
	for (const foe of tracker.outs(!mon.own)) if (foe.goesOn === 'rollout') foe.goesOn = '';
}

function activate(tracker, event) {
	need(event, 4);
	const target = event[2], effect = event[3];
	if (target && effect.replaceAll('move: ', '') === 'Skill Swap') {
		skillSwap(tracker, event);
		return;
	}
	switch (effect) {
	case 'ability: Dancer': tracker.getPokemon(target).dancing = true; break;
	case 'ability: Mummy': mummy(tracker, event); break;
	case 'ability: Wandering Spirit': wanderingSpirit(tracker, event); break;
	case 'ability: Symbiosis': symbiosis(tracker, event); break;
	case 'item: Leppa Berry': leppaBerry(tracker, event); break;
	case 'Protect': protect(tracker, tracker.getPokemon(target), effect); break;
	case 'trapped': trapped(tracker, target); break;
	case 'move: Gravity': gravity(tracker.getPokemon(target), effect); break;
	case 'move: Sketch': sketch(tracker.getPokemon(target), event[4]); break;
	case 'move: Mimic': mimicOrSketch(tracker, event); break;
	case 'move: Snatch': snatch(tracker, tracker.getPokemon(target), event); break;
	case 'move: Spite': case 'move: Eerie Spell': case 'move: G-Max Depletion': case GRUDGE: {
		const mon = tracker.getPokemon(target);
		startEffect(mon, effect);
		takePp(mon, event);
		break;
	}
	case 'move: Trick': break; // lines of both items follow
	default: if (target !== '') startEffect(tracker.getPokemon(target), effect);
	}
}

export const REVEALING_EVENTS = {
	'-damage': damage,
	'-heal': heal,
	'-ability': ability,
	'-endability': endAbility,
	'-immune': immune,
	'-item': item,
	'-activate': activate,
	'-block': () => {}, // what protects is read as a cause
};
