// Abilities and items that a line names in passing, as the cause of something else or as what acts.

import { toId } from '../dex.mjs';

// Events whose handlers do not read what caused them.
const REVEALING = [
	'-activate', '-block', '-clearboost', '-copyboost', '-fail', '-fieldstart', '-formechange', '-setboost', '-start',
	'-status', '-weather', 'cant',
];
const NAMED = /^(?:\[from\] ?)?(ability|item): ?(.+)/;
const GIVEN_AWAY = /berry|herb|gem$/; // used up when a line names it
// Activated they change hands, and their handlers say whose they are.
const MOVING = new Set(['lingeringaroma', 'mummy', 'symbiosis', 'wanderingspirit']);

/** Takes what the line names: of the Pokemon behind `[of]`, else of the line's own. */
function readCause(tracker, event) {
	for (let i = 2; i < event.length; i++) {
		const found = NAMED.exec(event[i]);
		if (found === null) continue;
		const owner = ownerOf(tracker, event, event[i].startsWith('[') || event[1] === '-block');
		if (owner === null) return;
		if (found[1] === 'ability') takeAbility(owner, toId(found[2]));
		else takeItem(owner, toId(found[2]));
		return;
	}
}

/** @param {boolean} caused by it, or it protects another one; what acts itself is the line's own Pokemon's */
function ownerOf(tracker, event, caused) {
	const of = caused ? event.find(part => part.startsWith('[of]')) : undefined;
	const name = of === undefined ? event[2] : of.slice(4).trim();
	return /^p[12][ab]?: /.test(name) ? tracker.getPokemon(name) : null;
}

function takeAbility(mon, id) {
	if (mon.ability === id || MOVING.has(id)) return;
	mon.revealAbility(id);
}

function takeItem(mon, id) {
	if (!mon.own && mon.item !== null && !GIVEN_AWAY.test(id)) mon.setItem(id);
}

/** Event -> what names its cause, after the battle has taken the line. */
export const CAUSED = new Map(REVEALING.map(name => [name, readCause]));
