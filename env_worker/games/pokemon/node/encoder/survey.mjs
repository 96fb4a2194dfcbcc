// What an encoder of either kind keeps of a battle: the observation, and how both sides stand.

import { FieldState } from './field_state.mjs';

export const TEAM_SIZE = 6;

/** Of one team: index of the active one (-1: none), how many live, sum of hp fractions. */
class Survey {
	constructor() {
		this.out = -1;
		this.alive = 0;
		this.hp = 0;
	}

	count(team, size) {
		this.out = -1;
		this.alive = 0;
		this.hp = 0;
		for (let i = 0; i < size; i++) {
			const mon = team[i];
			if (mon.active && this.out < 0) this.out = i;
			if (mon.status !== 'FNT') this.alive++;
			if (mon.hp) this.hp += mon.hp / mon.maxHp;
		}
	}
}

export class BattleEncoder {
	/** @param {object} battle a SeatTracker; @param {object} tables an EncoderTables */
	constructor(battle, tables) {
		this.battle = battle;
		this.tables = tables;
		this.observation = new Float16Array(tables.layout.size);
		this.standing = new Float64Array(4); // own alive, foe alive, own hp sum, foe hp sum; unrevealed foes are whole
		this.fieldState = new FieldState();
		this.mine = new Survey();
		this.theirs = new Survey();
	}

	/** So many foes have been out; the others only team preview has shown. */
	get met() {
		return Math.min(this.battle.opponentTeam.size, TEAM_SIZE);
	}

	/** Brings `standing` up to date and returns it. */
	survey(own = firstSix(this.battle.team), foes = this.battle.foes()) {
		const { mine, theirs, standing, met } = this;
		mine.count(own, own.length);
		theirs.count(foes, met);
		const unseen = Math.max(this.battle.foeTeamSize - met - this.battle.hiddenFaints, 0);
		standing[0] = mine.alive;
		standing[1] = theirs.alive + unseen;
		standing[2] = mine.hp;
		standing[3] = theirs.hp + unseen;
		return standing;
	}
}

export function firstSix(team) {
	const mons = [];
	for (const mon of team.values()) {
		if (mons.length === TEAM_SIZE) break;
		mons.push(mon);
	}
	return mons;
}
