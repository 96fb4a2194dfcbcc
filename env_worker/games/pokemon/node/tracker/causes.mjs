// Abilities and items that a line names in passing, as the cause of something else or as what acts.

import { toId } from './dex.mjs';

/** Events whose handlers do not read what caused them. */
export const REVEALING = new Set(['-activate', '-fail', '-fieldstart', '-formechange', '-setboost', '-start', '-status', '-weather', 'cant']);
const ABILITY = /^(?:\[from\] ?)?ability: ?(.+)/, ITEM = /^(?:\[from\] ?)?item: ?(.+)/;
const GIVEN_AWAY = /berry|herb|gem$/; // used up when a line names it
// Activated they change hands, and their handlers say whose they are.
const MOVING = new Set(['lingeringaroma', 'mummy', 'symbiosis', 'wanderingspirit']);

/** Takes what the line names: of the Pokemon behind `[of]`, else of the line's own. */
export function readCause(tracker, event) {
	for (let i = 2; i < event.length; i++) {
		const ability = ABILITY.exec(event[i]), item = ability ? null : ITEM.exec(event[i]);
		if (ability === null && item === null) continue;
		const owner = ownerOf(tracker, event, event[i].startsWith('['));
		if (owner !== null && ability !== null) takeAbility(owner, toId(ability[1]));
		else if (owner !== null) takeItem(owner, toId(item[1]));
		return;
	}
}

/** @param {boolean} caused by it; what acts itself is the line's own Pokemon's */
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
