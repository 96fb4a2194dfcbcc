// The moves of one Pokemon, with what Transform and Mimic put in their place.

import { moveId, toId } from './dex.mjs';

const COPIED_PP = 5;
const FIRST_GEN_OF_FULL_COPIES = 5; // a copied move has all its pp, without PP Ups

export class Move {
	/**
	 * @param {string} id
	 * @param {string | null} spelling as requests or the protocol write it: Hidden Power has type and power there
	 */
	constructor(dex, id, spelling = null) {
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
		this.basePp = kind.basePp;
		this.fullPp = kind.fullPp;
		this.pp = kind.fullPp;
		this.correction = 0; // to what a request said
	}

	/** Brought by another move. @returns {Move} itself */
	withPp(pp, fullPp) {
		this.pp = pp;
		this.fullPp = fullPp;
		return this;
	}

	use(pp) {
		this.pp = Math.max(this.pp - pp, 0);
	}
}

/** As Mimic and Sketch bring it. */
function withBasePp(move) {
	return move.withPp(move.basePp, move.basePp);
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
			move = this.copied === null ? new Move(this.dex, id, spelling) : this.copiedMove(id, spelling, base.size);
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
			if (key === id) base.set(moveId(spelling), withBasePp(new Move(this.dex, moveId(spelling))));
			else base.set(key, move);
		}
		this.resolve();
	}

	/** Mimic: until gen 4 with few of all its pp, in gen 1 with those that Mimic has left. */
	setMimic(id) {
		const move = new Move(this.dex, id), { gen } = this.dex;
		if (gen >= FIRST_GEN_OF_FULL_COPIES) withBasePp(move);
		else if (gen > 1) move.pp = Math.min(COPIED_PP, move.basePp);
		else move.pp = this.base.get('mimic')?.pp ?? move.pp;
		if (this.copied === null) this.learnedMimic = move;
		else this.copiedMimic = move;
		this.resolve();
	}

	/** Transform: the other one's moves as they are now, Hidden Power without its type: from gen 5 on its user's own counts. */
	copy(other) {
		const copied = new Map();
		for (const name of other.moves.keys()) copied.set(name, this.copiedMove(name, null, copied.size));
		this.copied = copied;
		this.copiedMimic = null;
		this.resolve();
	}

	/** A move that Transform brings; until gen 4 the PP Ups are those of the own move in its place, here any that can have some. */
	copiedMove(id, spelling, place) {
		const move = new Move(this.dex, id, spelling), pp = Math.min(COPIED_PP, move.basePp);
		if (this.dex.gen >= FIRST_GEN_OF_FULL_COPIES) return move.withPp(pp, pp);
		const own = [...this.learned.values()][place];
		return move.withPp(pp, own && own.fullPp === own.basePp ? move.basePp : move.fullPp);
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
