// `|move|`: what was used, and what that says of the Pokemon.

import { moveId, ParseFailure } from '../dex.mjs';
import { endEffect, startEffect } from '../effects.mjs';
import { need } from './event_parts.mjs';
import { addMove } from '../formes.mjs';

const FAILED = ['[miss]', '[still]', '[notarget]'];
const LOCKED = new Set(['[from] lockedmove', '[from]lockedmove', '[from] Sky Attack']);
const PASSED_OVER = '[zeffect]';
// Causes of moves that their users have chosen all the same; other moves and abilities as a cause call them.
const CHOSEN = new Set(['Grass Pledge', 'Water Pledge', 'Fire Pledge', 'lockedmove']);
const HASTENED = new Set(['Round', 'Pursuit', 'Quick Claw']); // the same, and nothing else follows from them
// Gen 1: moves of two turns, which are used, and cost their pp, in the second.
const TWO_TURNS = new Set(['Dig', 'Fly', 'Razor Wind', 'Skull Bash', 'Sky Attack', 'Solar Beam']);
const TRAPPING = new Set(['Bind', 'Clamp', 'Fire Spin', 'Wrap']);
// Gen 2: moves of two or three turns.
const THRASHING = new Set(['outrage', 'petaldance', 'thrash']);
const ROLLS = 5; // turns of Rollout at most
const ABILITY = /^\[from\] ?ability: /;

const CALLED_BY_MOVE = '[from] move: '; // from gen 4 on; conditions and items that use a move have no such prefix
const LAST_GEN_WITH_FREE_CALLS = 3; // Pressure does not act on moves that others call

/** What the end of a move line says; one object for all lines, read at once. */
const said = {
	failed: false, use: true, reveal: true, called: false, prepares: false, stop: false,
	own: false, // a called move is its user's own
	aimless: false, // nothing was there to aim at
	caused: false, // what another one causes meets no Pressure; in its place `payer` pays for it
	payer: '', // id of a move, '' = none
};

const last = event => event[event.length - 1];

function afterColon(text) {
	return text.slice(text.lastIndexOf(': ') + 2);
}

/** The move or ability that a part of the line names as its cause, '' for none. */
function causeOf(part) {
	if (!part.startsWith('[from]')) return '';
	return part.slice(part.lastIndexOf(': ') < 0 ? 6 : part.lastIndexOf(': ') + 2).trim();
}

/** Gen 1: a called move of two turns gives the pp of its caller back and takes them in the second turn. */
function payCaller(mon, pp) {
	const caller = mon.moves.get(mon.caller);
	if (caller === undefined) return;
	caller.pp -= pp;
	mon.bodyVersion++;
}

/** What the causes say; the parts that say it in an old generation's way are written as later ones write them. */
function readCauses(tracker, event) {
	const { gen } = tracker.dex, name = event[3], long = gen === 1 && TWO_TURNS.has(name);
	said.prepares = long;
	for (let i = event.length - 1; i >= 4; i--) {
		const cause = causeOf(event[i]);
		if (cause === '') continue;
		if (cause === name && gen === 1) { // it goes on
			said.prepares = false;
			const mon = tracker.getPokemon(event[2]), own = mon.caller === '';
			if (long && own) event.splice(i, 1);
			else event[i] = '[from] lockedmove';
			if (long && !own) payCaller(mon, 1);
		} else {
			said.caused = gen > LAST_GEN_WITH_FREE_CALLS || cause !== 'Pursuit';
			said.payer = gen > LAST_GEN_WITH_FREE_CALLS && event[i].startsWith(CALLED_BY_MOVE) ? moveId(cause) : '';
			if (HASTENED.has(cause)) {
				event.splice(i, 1);
				tracker.moved.push(cause);
			} else if (cause !== name && !CHOSEN.has(cause)) readCaller(tracker, event, i, cause, long);
		}
	}
	if (said.prepares && !said.called) tracker.getPokemon(event[2]).caller = '';
}

/** Another move or an ability calls the move. */
function readCaller(tracker, event, i, cause, long) {
	said.called = true;
	if (long) {
		const mon = tracker.getPokemon(event[2]);
		mon.caller = moveId(cause);
		payCaller(mon, -1);
	}
	said.own = cause === 'Sleep Talk';
	if (!ABILITY.test(event[i])) event[i] = '[from] Mirror Move';
}

/** Takes the bracketed parts off the line's end, one kind after another. */
function readSuffixes(tracker, event, reveal) {
	said.failed = said.called = said.own = said.prepares = said.stop = said.aimless = said.caused = false;
	said.use = said.reveal = reveal;
	said.payer = '';
	const end = last(event);
	if (end.charCodeAt(0) !== 91 && end !== 'null') return; // no '[': the usual case
	said.aimless = event.includes('[notarget]');
	readCauses(tracker, event);
	for (const suffix of FAILED) {
		if (last(event) === suffix) {
			event.pop();
			said.failed = true;
		}
	}
	if (last(event) === '[notarget]') event.pop();
	while (last(event).startsWith('[spread]')) event.pop();
	while (last(event) === '[still]') event.pop();
	if (LOCKED.has(last(event))) {
		said.use = said.reveal = false;
		event.pop();
	}
	if (last(event) === PASSED_OVER) event.pop();
	if (last(event).startsWith('[anim]')) event.pop();
	readCause(tracker, event);
}

function readCause(tracker, event) {
	if (last(event).startsWith('[from] move: ') || last(event).startsWith('[from]move: ')) event.pop();
	if (last(event) === 'null') event.pop();
	if (last(event).startsWith('[from] ability: ') || last(event).startsWith('[from]ability: ')) {
		const ability = afterColon(event.pop());
		if (event.length < 3) throw new ParseFailure(ability);
		tracker.getPokemon(event[2]).revealAbility(ability);
		if (ability === 'Magic Bounce') said.use = said.reveal = false;
		else if (ability === 'Dancer') said.stop = true;
	}
	if (last(event) === '[from] Magic Coat' || last(event) === '[from] Mirror Move') {
		said.use = said.reveal = false;
		event.pop();
	}
}

/** How many foes' Pressure the move meets; makes a Pokemon of a target that is not known. */
function metPressure(tracker, user, name, target) {
	const kind = tracker.dex.moves.get(moveId(name));
	if (kind === undefined) return 0;
	const aimed = !kind.aimsAtAll && target !== '' ? tracker.getPokemon(target) : null;
	if (!kind.pressed || said.aimless) return 0;
	if (aimed !== null && !kind.atAllFoes) {
		return target.slice(0, 2) !== user.slice(0, 2) && presses(tracker, aimed) ? 1 : 0;
	}
	let pressing = 0;
	for (const foe of tracker.outs(!user.startsWith(tracker.role))) if (presses(tracker, foe)) pressing++;
	return kind.atAllFoes ? pressing : Math.min(pressing, 1);
}

/** Whether moves that aim at a Pokemon cost more. */
export function presses(tracker, mon) {
	return mon.ability === 'pressure' && mon.status !== 'FNT' && !mon.effects.has('GASTRO_ACID') &&
		(!tracker.fields.has('NEUTRALIZING_GAS') || mon.item === 'abilityshield');
}

function spend(mon, move, pp) {
	if (pp === 0) return;
	move.use(pp);
	if (mon.dex.gen === 1 && move === mon.mimicMove) mon.moveSet.base.get('mimic')?.use(pp); // the same pp
	mon.bodyVersion++;
}

function moved(mon, name, failed, use, reveal, pp) {
	mon.mustRecharge = false;
	mon.preparing = false;
	const move = reveal ? addMove(mon, name) : null;
	if (use && move !== null) spend(mon, move, pp);
	const protects = move === null ? moveId(name) === 'maxguard' : move.protects;
	mon.protectCounter = protects && !failed ? mon.protectCounter + 1 : 0;
	if (mon.effects.size === 0) return;
	if (mon.effects.has('GLAIVE_RUSH')) endEffect(mon, 'GLAIVE_RUSH');
	else if (mon.effects.has('CHARGE') && move !== null && move.endsCharge && use) endEffect(mon, 'CHARGE');
}

/** Gen 2: whether the move goes on next turn, as far as lines tell; its first turn alone costs pp. */
function goOn(mon, id, failed) {
	mon.rolls = id === 'rollout' && mon.goesOn === id ? mon.rolls + 1 : 1;
	const lasts = THRASHING.has(id) || (id === 'rollout' && !failed && mon.rolls < ROLLS && mon.status !== 'SLP');
	mon.goesOn = lasts ? id : '';
}

/** Gen 1: whom a trapping move aims at needs not recharge, hit or missed; hit, it cannot move next turn. */
function trap(tracker, user, failed, begins) {
	const target = tracker.activeOf(user.own ? tracker.foeMons : tracker.ownMons);
	if (target === null) return;
	target.mustRecharge = false;
	if (failed) return;
	target.boundTurns = !begins && target.effects.has('PARTIALLY_TRAPPED') ? target.boundTurns + 1 : 1;
	target.boundTurn = tracker.turn;
	target.effects.add('PARTIALLY_TRAPPED');
}

/** Of the move that a line names; a status move as a Z-move is the move itself. */
function lastId(name) {
	return moveId(name.startsWith('Z-') ? name.slice(2) : name);
}

export function moveEvent(tracker, event) {
	need(event, 3);
	const user = tracker.getPokemon(event[2]);
	tracker.mover = user;
	tracker.usedUp = null;
	tracker.moved = [event[2], event[3], event[4]];
	const reveal = !user.dancing;
	user.dancing = false;
	// Gen 2 does not mark the turns after the first.
	if (tracker.dex.gen === 2 && (user.preparing || (user.goesOn !== '' && user.goesOn === moveId(event[3])))) {
		event.splice(5, 0, '[from] lockedmove');
	}
	readSuffixes(tracker, event, reveal);
	if (said.stop) return;
	const { failed, use } = said;
	need(event, 4);
	const pokemon = event[2], name = event[3], target = event.length > 4 ? event[4] : '';
	if (name.toUpperCase().trim() === 'MINIMIZE') startEffect(tracker.getPokemon(pokemon), 'MINIMIZE');
	const pressure = metPressure(tracker, pokemon, name, target);
	const mon = tracker.getPokemon(pokemon);
	if (!said.prepares && (!said.called || tracker.dex.gen === 1)) mon.lastMove = lastId(name);
	if (tracker.dex.gen === 2) goOn(mon, moveId(name), failed);
	else if (tracker.dex.gen === 1) {
		mon.effects.delete('PARTIALLY_TRAPPED'); // or it could not have moved
		if (TRAPPING.has(name)) trap(tracker, mon, failed, use);
	}
	const free = said.prepares || (said.called && tracker.dex.gen > 2);
	moved(mon, name, failed, use, said.reveal, free ? 0 : said.caused ? 1 : 1 + pressure);
	if (said.own) addMove(mon, name);
	const payer = pressure > 0 ? mon.moves.get(said.payer) : undefined;
	if (payer !== undefined) spend(mon, payer, pressure);
}
