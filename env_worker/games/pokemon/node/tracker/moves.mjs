// The moves of one Pokemon, with what Transform and Mimic put in their place: poke-env's `MoveSet`.

import { moveId, toId } from './dex.mjs';

const COPIED_PP = 5;

export class Move {
	/**
	 * @param {string} id
	 * @param {string | null} spelling as requests or the protocol write it: Hidden Power has type and power there
	 * @param {boolean} copied by Transform
	 */
	constructor(dex, id, spelling = null, copied = false) {
		let power = '';
		if (spelling !== null && id.startsWith('hiddenpower')) {
			id = toId(spelling).replace(/[0-9]/g, '');
			power = spelling.replace(/[^0-9]/g, '');
		}
		const kind = dex.moveKind(id);
		const hasPower = power === '' ? kind.hasPower : Number(power) > 0;
		this.id = id;
		this.protects = kind.protects;
		this.endsCharge = hasPower && kind.type === dex.electric;
		this.fullPp = copied && dex.gen >= 5 ? Math.min(COPIED_PP, kind.fullPp) : kind.fullPp;
		this.pp = copied ? Math.min(COPIED_PP, kind.fullPp) : kind.fullPp;
		this.correction = 0; // to what a request said
	}

	use(pp) {
		this.pp = Math.max(this.pp - pp, 0);
	}
}

export class MoveSet {
	constructor(dex) {
		this.dex = dex;
		this.learned = new Map();
		this.learnedMimic = null; // the move that stands where Mimic was
		this.copied = null; // a Map while transformed
		this.copiedMimic = null;
		this.moves = this.learned; // what can be used now
	}

	/** Without what Mimic has put in its place. */
	get base() {
		return this.copied ?? this.learned;
	}

	get mimic() {
		return this.copied === null ? this.learnedMimic : this.copiedMimic;
	}

	/**
	 * The move of that name, from now on among the known ones.
	 * @returns {Move | null} null = one that is not stored, such as Struggle and Z-moves
	 */
	add(spelling) {
		const id = moveId(spelling);
		const present = this.moves.get(id);
		if (present !== undefined) return present;
		if (!this.dex.moves.get(id)?.stored) return null;
		const { base } = this;
		let move = base.get(id);
		if (move === undefined) {
			move = new Move(this.dex, id, spelling, this.copied !== null);
			base.set(id, move);
			this.resolve();
		}
		return move;
	}

	/** Sketch: another move stands in the place of the one with that id. */
	replace(id, spelling) {
		const { base } = this, known = [...base];
		base.clear();
		for (const [key, move] of known) {
			if (key === id) base.set(moveId(spelling), new Move(this.dex, moveId(spelling)));
			else base.set(key, move);
		}
		this.resolve();
	}

	setMimic(move) {
		if (this.copied === null) this.learnedMimic = move;
		else this.copiedMimic = move;
		this.resolve();
	}

	/** Transform: the other one's moves as they are now. */
	copy(other) {
		const copied = new Map();
		for (const move of other.moves.values()) copied.set(move.id, new Move(this.dex, move.id, null, true));
		this.copied = copied;
		this.copiedMimic = null;
		this.resolve();
	}

	/** @returns {boolean} whether there was anything to drop */
	dropCopies() {
		if (this.copied === null && this.learnedMimic === null) return false;
		this.copied = null;
		this.copiedMimic = null;
		this.learnedMimic = null;
		this.resolve();
		return true;
	}

	resolve() {
		const { base, mimic } = this;
		if (mimic === null) {
			this.moves = base;
			return;
		}
		this.moves = new Map();
		for (const [id, move] of base) {
			if (id === 'mimic') this.moves.set(mimic.id, mimic);
			else this.moves.set(id, move);
		}
	}
}
