// poke-env's 26 actions, computed by slot from a request alone.
//
//   0-5 switch to team member i     6-9 move k      10-13 + mega evolution   14-17 as z-move
//   18-21 + dynamax                 22-25 + terastallization
//
// Ultra Burst has the actions of mega evolution: no Pokemon is offered both.
//
// Team members are numbered as in the first request, moves as in the Pokemon's own list. The simulator is answered by
// slot of the current request (never by name: a transformed Ditto would switch to the wrong one).

export const NUM_ACTIONS = 26;
export const FIRST_MOVE = 6;
export const SUFFIXES = ['', ' mega', ' zmove', ' dynamax', ' terastallize'];
export const MEGA = 1; // place of ' mega' in SUFFIXES
const MEGA_EVOLUTION = SUFFIXES[MEGA], ULTRA_BURST = ' ultra';
const TRAILING_DIGITS = /[0-9]+$/;

/** What a seat may answer to one request; used again for the next. */
export class Choices {
	constructor() {
		this.mask = new Uint8Array(NUM_ACTIONS); // 1 = legal
		this.reviving = false; // the switch brings back a fainted Pokemon
		this.moveEntries = [null, null, null, null]; // what the request offers in each of the Pokemon's move slots
		this.evolves = ''; // what the actions of mega evolution say
		this.switchSlots = new Uint8Array(6);
		this.moveSlots = new Uint8Array(4);
	}

	/** The simulator command for an action, null if it is not legal. */
	command(action) {
		if (this.mask[action] !== 1) return null;
		if (action < FIRST_MOVE) return `switch ${this.switchSlots[action]}`;
		const move = (action - FIRST_MOVE) % 4, gimmick = (action - FIRST_MOVE) >> 2;
		return `move ${this.moveSlots[move]}${gimmick === MEGA ? this.evolves : SUFFIXES[gimmick]}`;
	}

	/** Whether the move in a slot may be used as it is, 0 or 1. */
	usable(slot) {
		return this.mask[FIRST_MOVE + slot];
	}

	/** @param {(ident: string) => number} position team position of an own Pokemon */
	read(request, position) {
		const side = request.side.pokemon;
		this.mask.fill(0);
		this.moveEntries.fill(null);
		this.reviving = side.some(entry => entry.reviving);
		const asked = request.active ? request.active[0] : null;
		if (asked === null || !asked.trapped) this.allowSwitches(side, position);
		if (asked !== null) this.allowMoves(asked, side.find(entry => entry.active).moves);
	}

	allowSwitches(side, position) {
		for (let i = 0; i < side.length; i++) {
			const entry = side[i];
			const fainted = entry.condition.endsWith(' fnt');
			if (this.reviving ? !fainted : fainted || entry.active) continue;
			const at = position(entry.ident);
			this.mask[at] = 1;
			this.switchSlots[at] = i + 1;
		}
	}

	allowMoves(asked, known) {
		const offered = asked.moves;
		const maxMoves = asked.maxMoves?.maxMoves;
		const plain = maxMoves && !asked.canDynamax ? maxMoves : offered; // a dynamaxed Pokemon's moves are max moves
		this.evolves = evolution(asked);
		const gimmicks = [this.evolves, asked.canZMove, asked.canDynamax && maxMoves, asked.canTerastallize];
		const aligned = offered.length === known.length;
		for (let i = 0; i < offered.length && i < 4; i++) {
			const entry = offered[i];
			const move = aligned ? i : knownSlot(entry.id, known, i);
			this.moveEntries[move] = entry;
			this.moveSlots[move] = i + 1;
			if (plain[i] && !plain[i].disabled) this.mask[FIRST_MOVE + move] = 1;
			for (let kind = 0; kind < 4; kind++) {
				const gimmick = gimmicks[kind];
				if (!gimmick) continue;
				// Z-moves and max moves may be usable where the move itself is disabled.
				const form = Array.isArray(gimmick) ? gimmick[i] : entry;
				if (form && !form.disabled) this.mask[FIRST_MOVE + 4 * (kind + 1) + move] = 1;
			}
		}
	}
}

/** What a Pokemon says with its move to evolve for the battle, '' where it cannot. @param {object} asked of it */
export function evolution({ canMegaEvo, canUltraBurst }) {
	return canMegaEvo ? MEGA_EVOLUTION : canUltraBurst ? ULTRA_BURST : '';
}

/** A locked move stays in its own slot; struggle, recharge and fight take slot 0. */
export function knownSlot(id, known, index) {
	for (let slot = 0; slot < known.length && slot < 4; slot++) {
		const name = known[slot];
		if (name === id || name.replace(TRAILING_DIGITS, '') === id || (id === 'hiddenpower' && name.includes(id))) return slot;
	}
	return index;
}
