// Helpers of the event handlers.

import { ValueFailure } from '../dex.mjs';

/** The line must have this many parts, the two before the first argument included. */
export function need(event, count) {
	if (event.length < count) throw new ValueFailure(event.join('|'));
}

/** A handler of |EVENT|POKEMON|... that needs `count` parts. */
export function ofPokemon(count, act) {
	return (tracker, event) => {
		need(event, count);
		act(tracker.getPokemon(event[2]), event, tracker);
	};
}

/** A whole number of the protocol; throws where the text is none. */
export function integer(text) {
	if (!/^\s*[+-]?\d+\s*$/.test(text)) throw new ValueFailure(text);
	return Number(text);
}

export function isOwnSide(tracker, text) {
	return text.startsWith(tracker.role);
}

export function withoutOf(text) {
	return text.replaceAll('[of] ', '');
}

export function startField(tracker, text) {
	const field = tracker.dex.field(text);
	if (field.endsWith('_TERRAIN')) {
		for (const name of tracker.fields.keys()) if (name.endsWith('_TERRAIN')) tracker.fields.delete(name);
	}
	tracker.fields.set(field, tracker.turn);
}

export function endField(tracker, text) {
	const field = tracker.dex.field(text);
	if (field === 'UNKNOWN') return;
	if (!tracker.fields.delete(field) && field !== 'NEUTRALIZING_GAS') throw new ValueFailure(text);
}
