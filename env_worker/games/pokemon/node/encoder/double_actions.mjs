// poke-env's 107 actions of a slot in doubles, computed from a request alone.
//
//   0 pass      1-6 switch to team member i      then for each of four moves five targets (-2, -1, 0, 1, 2):
//   7-26 move   27-46 + mega evolution   47-66 as z-move   67-86 + dynamax   87-106 + terastallization
//
// Targets are Showdown's: -1 and -2 the own left and right slot, 1 and 2 the foe's, 0 where the move asks for none.

import { MEGA, SUFFIXES, evolution, knownSlot } from './actions.mjs';

export const NUM_ACTIONS = 107;
export const PASS = 0, FIRST_SWITCH = 1, FIRST_MOVE = 7;
export const TARGETS = [-2, -1, 0, 1, 2];
const PER_MOVE = TARGETS.length, PER_GIMMICK = 4 * PER_MOVE;
const FIND_ITSELF = [0], FOES = [1, 2];

/** What an action stands for; `member`, `move`: -1 where it is none. gimmick: 0 none, 1 mega .. 4 tera. */
export class Meaning {
	constructor(member = -1, move = -1, target = 0, gimmick = 0) {
		this.member = member;
		this.move = move;
		this.target = target;
		this.gimmick = gimmick;
	}
}

const MEANINGS = Array.from({ length: NUM_ACTIONS }, (_, action) => {
	if (action === PASS) return new Meaning();
	if (action < FIRST_MOVE) return new Meaning(action - FIRST_SWITCH);
	const rest = (action - FIRST_MOVE) % PER_GIMMICK;
	return new Meaning(-1, Math.floor(rest / PER_MOVE), TARGETS[rest % PER_MOVE], Math.floor((action - FIRST_MOVE) / PER_GIMMICK));
});

/** @param {number | null} action null = none */
export function meaning(action) {
	return MEANINGS[action ?? PASS];
}

/** What one slot may answer to a request; used again for the next. */
export class SlotChoices {
	constructor() {
		this.mask = new Uint8Array(NUM_ACTIONS); // 1 = legal
		this.moveEntries = [null, null, null, null]; // what the request offers in each of the Pokemon's move slots
		this.reviving = false; // the switch brings back a fainted Pokemon
		this.spent = 0; // the gimmick that the left slot leaves none of
		this.evolves = ''; // what the actions of mega evolution say
		this.idle = false; // only passing was legal
		this.switchSlots = new Uint8Array(6);
		this.moveSlots = new Uint8Array(4);
	}

	/** The simulator command for an action. */
	command(action) {
		if (action === PASS) return 'pass';
		const { member, move, target, gimmick } = meaning(action);
		if (member >= 0) return `switch ${this.switchSlots[member]}`;
		return `move ${this.moveSlots[move]}${target ? ` ${target}` : ''}${gimmick === MEGA ? this.evolves : SUFFIXES[gimmick]}`;
	}

	/** Whether the move in a slot may be used as it is on any target, 0 or 1. */
	usable(slot) {
		const first = FIRST_MOVE + PER_MOVE * slot;
		for (let i = 0; i < PER_MOVE; i++) if (this.mask[first + i]) return 1;
		return 0;
	}

	/**
	 * Everything a request allows slot 0 (left) or 1 (right).
	 * @param {(ident: string) => number} position team position of an own Pokemon
	 * @param {number | null} first the left slot's action, for the right one
	 */
	read(request, slot, position, first) {
		const side = request.side.pokemon, before = meaning(first);
		this.mask.fill(0);
		this.moveEntries.fill(null);
		this.reviving = false;
		this.spent = 0;
		if (request.forceSwitch) {
			if (request.forceSwitch[slot]) this.force(request.forceSwitch, side, slot, position, before.member);
		} else if (acts(request, slot)) {
			if (!request.active[slot].trapped) this.allowSwitches(side, position, before.member);
			this.allowMoves(request, slot, before.gimmick);
		}
		this.idle = !this.mask.includes(1);
		if (this.idle) this.mask[PASS] = 1;
	}

	force(demanded, side, slot, position, taken) {
		this.reviving = Boolean(side[slot].reviving);
		this.allowSwitches(side, position, taken);
		if (slot === 1 || !demanded[1] || side.some(entry => entry.reviving)) return;
		const benched = side.filter(entry => !entry.active && !fainted(entry));
		if (benched.length === 1) this.mask[PASS] = 1; // the only one left may come in on either side
	}

	/** @param {number} taken the team member that the left slot switches to */
	allowSwitches(side, position, taken) {
		for (let i = 0; i < side.length; i++) {
			const entry = side[i];
			if (this.reviving ? !fainted(entry) : fainted(entry) || entry.active) continue;
			const member = position(entry.ident);
			if (member === taken) continue;
			this.mask[FIRST_SWITCH + member] = 1;
			this.switchSlots[member] = i + 1;
		}
	}

	/** @param {number} used the gimmick of the left slot in this turn */
	allowMoves(request, slot, used) {
		const asked = request.active[slot], known = request.side.pokemon[slot].moves, offered = asked.moves;
		const maxMoves = asked.maxMoves?.maxMoves;
		const plain = maxMoves && !asked.canDynamax ? maxMoves : offered; // a dynamaxed Pokemon's moves are max moves
		this.evolves = evolution(asked);
		const forms = [plain, this.evolves && offered, asked.canZMove, asked.canDynamax && maxMoves,
			asked.canTerastallize && offered];
		// One slot may mega evolve and the other use Ultra Burst.
		const other = used === MEGA && evolution(request.active[1 - slot]) !== this.evolves;
		this.spent = other ? 0 : used;
		if (this.spent) forms[this.spent] = null;
		const aligned = offered.length === known.length;
		for (let i = 0; i < offered.length && i < 4; i++) {
			const entry = offered[i], move = aligned ? i : knownSlot(entry.id, known, i);
			this.moveEntries[move] = entry;
			this.moveSlots[move] = i + 1;
			for (let kind = 0; kind < forms.length; kind++) {
				const form = forms[kind] ? forms[kind][i] : null;
				// Z-moves and max moves may be usable where the move itself is disabled.
				if (!form || form.disabled) continue;
				const at = FIRST_MOVE + PER_GIMMICK * kind + PER_MOVE * move - TARGETS[0];
				for (const target of targets(form.target, request, slot)) this.mask[at + target] = 1;
			}
		}
	}
}

/** Where a move of this target type may be aimed; 0: it finds its target itself. */
function targets(kind, request, slot) {
	const own = -(slot + 1), ally = -(2 - slot);
	switch (kind) {
	case 'normal': case 'any': return stands(request, 1 - slot) ? [...FOES, ally] : FOES;
	case 'adjacentFoe': return FOES;
	case 'adjacentAlly': return [ally];
	case 'adjacentAllyOrSelf': return stands(request, 1 - slot) ? [own, ally] : [own];
	default: return FIND_ITSELF;
	}
}

/** Whether an active Pokemon there can act. */
function acts(request, slot) {
	return stands(request, slot) && !request.side.pokemon[slot].commanding;
}

function stands({ side: { pokemon }, active }, slot) {
	return slot < pokemon.length && Boolean(active[slot]) && !fainted(pokemon[slot]);
}

function fainted(entry) {
	return entry.condition.endsWith(' fnt');
}
