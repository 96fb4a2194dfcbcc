// A seat's request as text that does not repeat what its last one said of the team.
//
// In side.pokemon stands instead of an entry
//   k             the k-th entry of the seat's request before, as it was
//   [k, {...}]    that entry, with these fields changed
//   {...}         the entry itself
// host_messages.py puts it together again.

/**
 * @param {object} request as the simulator made it
 * @param {object[]} before the entries of the seat's request before, [] if this is the first
 * @returns {string} JSON
 */
export function shortRequest(request, before) {
	const pokemon = request.side.pokemon.map(entry => shortEntry(entry, before));
	return JSON.stringify({ ...request, side: { ...request.side, pokemon } });
}

function shortEntry(entry, before) {
	const k = before.findIndex(old => old.ident === entry.ident);
	if (k < 0) return entry;
	const old = before[k];
	for (const key in old) if (!(key in entry)) return entry;
	let changed = null;
	for (const key in entry) {
		if (!sameValue(entry[key], old[key])) (changed ??= {})[key] = entry[key];
	}
	return changed === null ? k : [k, changed];
}

/** Of text, numbers, booleans and of lists or objects of them: moves, stats. */
function sameValue(one, other) {
	if (one === other) return true;
	if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
	const keys = Object.keys(one);
	if (keys.length !== Object.keys(other).length) return false;
	for (const key of keys) if (one[key] !== other[key]) return false;
	return true;
}
