// What each of two seats may see of one update.
//
// After `|split|pN` come two lines: the secret one for seat N, the shared one for everybody else.
// Clock lines (`|t:|`) are left out: a battle's records depend on its seeds and choices only.

const SPLIT_PREFIX = '|split|p';

/**
 * @param {string[]} log protocol lines as the battle logged them
 * @param {string[][]} seatLines two lists, appended to
 */
export function appendSeatLines(log, seatLines) {
	const [first, second] = seatLines;
	for (let i = 0; i < log.length; i++) {
		const line = log[i];
		if (line.includes('\n')) {
			appendSeatLines(flatten(log.slice(i)), seatLines);
			return;
		}
		if (line.startsWith(SPLIT_PREFIX)) {
			const secret = log[i + 1] ?? '', shared = log[i + 2] ?? '';
			if (secret.includes('\n') || shared.includes('\n')) {
				appendSeatLines(flatten(log.slice(i)), seatLines);
				return;
			}
			const owner = line.charCodeAt(SPLIT_PREFIX.length) - 49; // '1' is seat 0
			const own = owner === 0 ? secret : shared;
			const other = owner === 1 ? secret : shared;
			if (own) first.push(own);
			if (other) second.push(other);
			i += 2;
		} else if (line && !line.startsWith('|t:|')) {
			first.push(line);
			second.push(line);
		}
	}
}

/** What a spectator sees of a battle, as text. @param {string[]} log as the battle logged it */
export function spectatorLog(log) {
	const lines = flatten(log), shared = [];
	for (let i = 0; i < lines.length; i++) {
		if (lines[i].startsWith(SPLIT_PREFIX)) {
			i += 2;
			if (lines[i]) shared.push(lines[i]);
		} else if (lines[i] && !lines[i].startsWith('|t:|')) {
			shared.push(lines[i]);
		}
	}
	return shared.join('\n') + '\n';
}

/** A logged entry may hold several lines; the protocol counts lines. */
function flatten(log) {
	return log.join('\n').split('\n');
}
