// Counts in a seat's protocol lines what rewards need and the state does not show.

// Lines that end what the last |move| line did; whatever fails later is not its fault.
const OTHER_ACTIONS = new Set(['', 'cant', 'drag', 'switch', 'turn', 'upkeep']);

export class SeatTally {
	/** @param {string} role 'p1' | 'p2'; @param {number} freeSwitches so many in a row are not counted */
	constructor(role, freeSwitches) {
		this.role = role;
		this.freeSwitches = freeSwitches;
		this.askedToMove = false; // by the last request
		this.inARow = 0;
		this.counts = new Int32Array(4); // fails, switches, own fainted, foe fainted
	}

	/** The seat's lines since its last request, and the request that follows them (null: the battle is over). */
	take(lines, request) {
		const { counts, role } = this;
		let ownMove = false, failed = false, switches = 0;
		for (const line of lines) {
			if (line[0] !== '|') continue;
			const end = line.indexOf('|', 1);
			const kind = end < 0 ? line.slice(1) : line.slice(1, end);
			const own = end >= 0 && line.startsWith(role, end + 1);
			if (kind === 'move') {
				ownMove = own;
				failed = false;
			} else if (kind === '-fail' || kind === '-immune') {
				if (ownMove && !failed) counts[0]++;
				failed = true;
			} else if (kind === 'faint') {
				counts[own ? 2 : 3]++;
			} else if (OTHER_ACTIONS.has(kind)) {
				ownMove = false;
				if (own && kind === 'switch') switches++;
			}
		}
		if (this.askedToMove) this.switched(switches);
		this.askedToMove = Boolean(request?.active);
	}

	/** A switch is voluntary where the seat could have moved instead. */
	switched(switches) {
		this.inARow = switches ? this.inARow + switches : 0;
		this.counts[1] += Math.min(switches, Math.max(this.inARow - this.freeSwitches, 0));
	}
}
