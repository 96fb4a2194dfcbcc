// What a Pokemon has only while it stands on the field, where another one takes it over: Baton Pass, Shed Tail, Illusion.

import { addEffect } from './effects.mjs';
import { bornTypes } from './formes.mjs';

/** What an unmasked Pokemon had while it looked like another one. */
export class Standing {
	constructor(mon) {
		const { boosts, effects, mustRecharge, preparing, preparedTurn, protectCounter, lastMove, activeTurns } = mon;
		this.boosts = { ...boosts };
		this.effects = [...effects];
		this.began = mon.began;
		this.temporaryTypes = mon.temporaryTypes;
		this.mustRecharge = mustRecharge;
		this.preparing = preparing;
		this.preparedTurn = preparedTurn;
		this.protectCounter = protectCounter;
		this.lastMove = lastMove;
		this.activeTurns = activeTurns;
		this.trapper = mon.trapper;
	}

	/** Illusion: `mon` was it all the time. */
	giveAll(mon) {
		mon.boosts.copy(this.boosts);
		for (const effect of this.effects) addEffect(mon, effect);
		mon.setTemporaryTypes(this.typesOf(mon));
		mon.mustRecharge = this.mustRecharge;
		mon.preparing = this.preparing;
		mon.preparedTurn = this.preparedTurn;
		mon.protectCounter = this.protectCounter;
		mon.lastMove = this.lastMove;
		mon.activeTurns = this.activeTurns;
		mon.trapper = this.trapper;
	}

	/** The changed ones; what was only added to those of a disguise is added to its wearer's. */
	typesOf(mon) {
		const { effects, temporaryTypes } = this;
		if (!effects.includes('TYPEADD') || effects.includes('TYPECHANGE')) return temporaryTypes;
		return [...bornTypes(mon), temporaryTypes.at(-1)];
	}

	/** @param {string} move Baton Pass or Shed Tail */
	pass(mon, move) {
		if (move === 'Shed Tail') {
			if (this.effects.includes('SUBSTITUTE')) mon.effects.add('SUBSTITUTE');
			return;
		}
		mon.boosts.copy(this.boosts);
		for (const effect of this.effects) if (mon.dex.passed.has(effect)) addEffect(mon, effect);
		mon.began = new Map(this.began);
		if (mon.effects.has('TRAPPED')) mon.trapper = this.trapper;
	}
}

const SLEEP_STARTS_ANEW = 5; // generation
const FULL = 100; // a foe's hp comes in percent

/** Hp, status and its counters: from before a Pokemon seemed to come in, or those of another one's disguise. */
export class Health {
	constructor({ hp, maxHp, status, asleep, resting, hurt }) {
		const known = maxHp > 0; // or it has not been seen before
		this.hp = known ? hp : FULL;
		this.maxHp = known ? maxHp : FULL;
		this.status = status;
		this.asleep = asleep;
		this.resting = resting;
		this.hurt = hurt;
	}

	give(mon) {
		mon.setHp(this.hp);
		mon.setMaxHp(this.maxHp);
		mon.setStatus(this.status);
		this.giveCounters(mon);
	}

	giveCounters(mon) {
		mon.asleep = this.asleep;
		mon.resting = this.resting;
		mon.hurt = this.hurt;
		mon.bodyVersion++;
	}

	/** Illusion: to who wore the disguise. Of a sleep that is older than the disguise it has counted the turns itself. */
	unmask(mon) {
		const { asleep, resting } = mon, older = mon.status === 'SLP' && this.status === 'SLP';
		this.giveCounters(mon);
		if (!older) return;
		mon.resting = resting;
		if (mon.dex.gen !== SLEEP_STARTS_ANEW) mon.asleep = asleep;
	}
}
