// `|move|`: what was used, and what that says of the Pokemon.

import { moveId, ParseFailure } from './dex.mjs';
import { endEffect, startEffect } from './effects.mjs';
import { need } from './event_parts.mjs';
import { addMove } from './formes.mjs';

const FAILED = ['[miss]', '[still]', '[notarget]'];
const LOCKED = new Set(['[from] lockedmove', '[from]lockedmove', '[from] Sky Attack']);
const PASSED_OVER = new Set(['[from] Pursuit', '[from]Pursuit', '[zeffect]']);
const NOT_OWNED = new Set(['Copycat', 'Metronome', 'Nature Power', 'Round']);
const DECEIVING = new Set(['Sleep Talk', 'Copycat', 'Metronome', 'Nature Power']); // another move comes of them
// Causes of moves that their users have chosen all the same; other moves and abilities as a cause call them.
const CHOSEN = new Set(['Grass Pledge', 'Water Pledge', 'Fire Pledge', 'Round', 'Pursuit', 'lockedmove']);
const PLEDGES = new Set(['Grass Pledge', 'Water Pledge', 'Fire Pledge']);

/** What the end of a move line says; one object for all lines, read at once. */
const said = { failed: false, use: true, reveal: true, spread: false, by: '', called: false, stop: false };

const last = event => event[event.length - 1];

function afterColon(text) {
	return text.slice(text.lastIndexOf(': ') + 2);
}

/** Whether a part of a line says that the user has not chosen the move. */
function isCall(part, name) {
	if (!part.startsWith('[from]')) return false;
	const cause = part.slice(part.lastIndexOf(': ') < 0 ? 6 : part.lastIndexOf(': ') + 2).trim();
	return cause !== name && !CHOSEN.has(cause);
}

/** Takes the bracketed parts off the line's end, in poke-env's order. */
function readSuffixes(tracker, event, reveal) {
	said.failed = said.spread = said.called = said.stop = false;
	said.use = said.reveal = reveal;
	said.by = '';
	const end = last(event);
	if (end.charCodeAt(0) !== 91 && end !== 'null') return; // no '[': the usual case
	for (let i = 4; i < event.length; i++) if (isCall(event[i], event[3])) said.called = true;
	for (const suffix of FAILED) {
		if (last(event) === suffix) {
			event.pop();
			said.failed = true;
		}
	}
	if (last(event) === '[notarget]') event.pop();
	while (last(event).startsWith('[spread]')) {
		said.spread = true;
		event.pop();
	}
	while (last(event) === '[still]') event.pop();
	if (LOCKED.has(last(event))) {
		said.use = said.reveal = false;
		event.pop();
	}
	if (PASSED_OVER.has(last(event))) event.pop();
	if (last(event) === '[from] Sleep Talk') event[event.length - 1] = '[from] move: Sleep Talk';
	if (last(event).startsWith('[anim]')) event.pop();
	readCause(tracker, event);
}

function readCause(tracker, event) {
	if (last(event).startsWith('[from] move: ') || last(event).startsWith('[from]move: ')) {
		said.by = afterColon(event.pop());
		if (NOT_OWNED.has(said.by)) said.reveal = false;
		else if (PLEDGES.has(said.by)) said.by = '';
	}
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

/** Whether Pressure doubles the cost; makes a Pokemon of a target that is not known, as poke-env does. */
function underPressure(tracker, user, move, target) {
	const kind = tracker.dex.moves.get(moveId(move));
	if (kind === undefined) return false;
	let mon = null;
	if (!kind.aimsAtAll && target !== '') mon = tracker.getPokemon(target);
	else mon = tracker.activeOf(user.slice(0, 2) === tracker.role ? tracker.foeMons : tracker.ownMons);
	return mon !== null && mon.ability === 'pressure' && mon.status !== 'FNT' && kind.pressed;
}

function spend(mon, move, pp) {
	if (pp === 0) return;
	move.use(pp);
	mon.bodyVersion++;
}

function moved(mon, name, failed, use, reveal, pp) {
	mon.mustRecharge = false;
	mon.preparing = false;
	const move = reveal ? addMove(mon, name) : null;
	if (use && move !== null) spend(mon, move, pp);
	const protects = move === null ? moveId(name) === 'maxguard' : move.protects;
	mon.protectCounter = protects && !failed ? mon.protectCounter + 1 : 0;
	if (mon.status === 'SLP') mon.setStatusCounter(mon.statusCounter + 1);
	if (mon.effects.size === 0) return;
	if (mon.effects.has('GLAIVE_RUSH')) endEffect(mon, 'GLAIVE_RUSH');
	else if (mon.effects.has('CHARGE') && move !== null && move.endsCharge && use) endEffect(mon, 'CHARGE');
	else if (mon.effects.has('FLASH_FIRE') && move !== null && move.endsFlashFire && use) endEffect(mon, 'FLASH_FIRE');
}

/** Of the move that a line names; a status move as a Z-move is the move itself. */
function lastId(name) {
	return moveId(name.startsWith('Z-') ? name.slice(2) : name);
}

export function moveEvent(tracker, event) {
	need(event, 3);
	const user = tracker.getPokemon(event[2]);
	const reveal = !user.dancing;
	user.dancing = false;
	readSuffixes(tracker, event, reveal);
	if (said.stop) return;
	const { failed, use, spread, by } = said;
	need(event, 4);
	const pokemon = event[2], name = event[3], target = event.length > 4 ? event[4] : '';
	if (name.toUpperCase().trim() === 'MINIMIZE') startEffect(tracker.getPokemon(pokemon), 'MINIMIZE');
	const pressed = underPressure(tracker, pokemon, name, spread ? '' : target);
	const mon = tracker.getPokemon(pokemon);
	if (!said.called) mon.lastMove = lastId(name);
	if (by === '') {
		moved(mon, name, failed, use, said.reveal, pressed && (failed || !DECEIVING.has(name)) ? 2 : 1);
		return;
	}
	moved(mon, name, failed, false, said.reveal, 0);
	const source = mon.moves.get(moveId(by));
	if (source === undefined) throw new ParseFailure(by);
	spend(mon, source, pressed ? 1 : 0);
}
