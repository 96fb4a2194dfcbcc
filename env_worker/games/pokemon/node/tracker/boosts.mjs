// The stages of one Pokemon.

import { ParseFailure } from './dex.mjs';

export const BOOSTS = ['accuracy', 'atk', 'def', 'evasion', 'spa', 'spd', 'spe'];

export class Boosts {
	constructor() {
		this.atk = 0;
		this.def = 0;
		this.spa = 0;
		this.spd = 0;
		this.spe = 0;
		this.accuracy = 0;
		this.evasion = 0;
	}

	clear() {
		for (const stat of BOOSTS) this[stat] = 0;
	}

	copy(other) {
		for (const stat of BOOSTS) this[stat] = other[stat];
	}

	/** The stage of a stat that must exist. */
	get(stat) {
		const stage = this[stat];
		if (typeof stage !== 'number') throw new ParseFailure(`stat ${stat}`);
		return stage;
	}
}
