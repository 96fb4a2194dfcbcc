// Writes one seat's battle into the layout: float16, the same numbers as encoder.py.
//
// Reads a SeatTracker, so only what that seat has been told.

import { NUM_ACTIONS } from './actions.mjs';
import { DamageBlock } from '../damage/writer.mjs';
import { MoveBlocks } from './move_features.mjs';
import { FIELD_WIDTH, SIDE_WIDTH, FieldState } from './field_state.mjs';
import { SetBlocks } from './set_knowledge.mjs';
import { TeamBlocks } from './blocks.mjs';

const TEAM_SIZE = 6;
const NUM_VOLATILES = 14;
const ACTIVE_WIDTH = 8 + NUM_VOLATILES + 5;

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

export class SeatEncoder {
	/** @param {object} battle a SeatTracker */
	constructor(battle, tables) {
		this.battle = battle;
		this.tables = tables;
		this.observation = new Float16Array(tables.layout.size);
		this.standing = new Float64Array(4); // own alive, foe alive, own hp sum, foe hp sum; unrevealed foes are whole
		this.teams = new TeamBlocks(this.observation, tables);
		this.damage = tables.layout.attackers ? new DamageBlock(this.observation, tables) : null;
		this.sets = tables.sets ? new SetBlocks(this.observation, tables) : null;
		this.moves = new MoveBlocks(this.observation, tables);
		this.fieldState = new FieldState();
		this.mine = new Survey();
		this.theirs = new Survey();
	}

	/** Brings `observation` and `standing` up to date; the battle must be in sync with the request. */
	encode(request, choices) {
		const { battle, fieldState, teams, mine, theirs } = this;
		const own = firstSix(battle.team), foes = battle.foes(), met = this.met;
		this.survey(own, foes);
		teams.writeOwnBodies(battle, own, mine.out);
		teams.writeFoeBodies(foes, met);
		this.sets?.write(foes);
		fieldState.read(this.tables, battle, own[mine.out] ?? null, foes[theirs.out] ?? null);
		teams.writePairs(fieldState, own, foes, mine.out, theirs.out);
		// At a team preview no Pokemon is active: the damage stays 0.
		if (this.damage && !request.teamPreview) this.damage.write(battle, teams, own, foes, mine.out, theirs.out);
		this.writeGlobal(request, choices.reviving);
		this.writeMoves(request, choices, mine.out, theirs.out);
		const maskStart = this.tables.layout.mask_start;
		for (let i = 0; i < NUM_ACTIONS; i++) this.observation[maskStart + i] = choices.mask[i];
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

	writeGlobal(request, reviving) {
		const { battle, observation: out, fieldState, standing } = this;
		const asked = request.active ? request.active[0] : null;
		out[0] = Math.min(battle.turn / 100, 1);
		out[1] = request.forceSwitch ? 1 : 0;
		out[2] = reviving ? 1 : 0;
		out[3] = asked?.trapped ? 1 : 0;
		out[4] = asked?.maybeTrapped ? 1 : 0;
		out[5] = asked?.canMegaEvo ? 1 : 0;
		out[6] = asked?.canZMove ? 1 : 0;
		out[7] = asked?.canDynamax ? 1 : 0;
		out[8] = asked?.canTerastallize ? 1 : 0;
		for (let i = 0; i < 6; i++) out[9 + i] = fieldState.weather[i];
		for (let i = 0; i < FIELD_WIDTH; i++) out[15 + i] = fieldState.field[i];
		let at = this.writeSide(15 + FIELD_WIDTH, fieldState.ownSide, standing[0], standing[2],
			battle.usedTera || battle.usedMega || battle.usedZ || battle.usedDynamax);
		at = this.writeSide(at, fieldState.foeSide, standing[1], standing[3], battle.opponentUsedTera ||
			battle.opponentUsedMega || battle.opponentUsedZ || battle.opponentUsedDynamax);
		this.writeActive(at, fieldState.own);
		this.writeActive(at + ACTIVE_WIDTH, fieldState.foe);
	}

	writeSide(at, side, alive, hp, spent) {
		const out = this.observation;
		for (let i = 0; i < SIDE_WIDTH; i++) out[at + i] = side[i];
		at += SIDE_WIDTH;
		out[at] = alive / 6;
		out[at + 1] = hp / 6;
		out[at + 2] = spent ? 1 : 0;
		return at + 3;
	}

	writeActive(at, mon) {
		const out = this.observation;
		if (mon === null) {
			out.fill(0, at, at + ACTIVE_WIDTH);
			return;
		}
		const { boosts } = mon;
		out[at] = this.tables.moveRow(mon.lastMove);
		out[at + 1] = boosts.atk / 6;
		out[at + 2] = boosts.def / 6;
		out[at + 3] = boosts.spa / 6;
		out[at + 4] = boosts.spd / 6;
		out[at + 5] = boosts.spe / 6;
		out[at + 6] = boosts.accuracy / 6;
		out[at + 7] = boosts.evasion / 6;
		out.fill(0, at + 8, at + 8 + NUM_VOLATILES);
		if (mon.effects.size) {
			for (const effect of mon.effects.keys()) {
				const place = this.tables.volatileSlots.get(effect);
				if (place !== undefined) out[at + 8 + place[0]] = place[1];
			}
		}
		at += 8 + NUM_VOLATILES;
		out[at] = mon.mustRecharge ? 1 : 0;
		out[at + 1] = mon.preparing ? 1 : 0;
		out[at + 2] = Math.min(mon.protectCounter / 3, 1);
		out[at + 3] = Math.min(mon.activeTurns / 8, 1);
		out[at + 4] = mon.transformed ? 1 : 0;
	}

	writeMoves(request, choices, ownOut, foeOut) {
		if (ownOut < 0 || !request.active) {
			this.moves.clear();
			return;
		}
		const { teams } = this;
		const foe = foeOut >= 0 ? teams.foe[foeOut].profile : null;
		this.moves.write(this.fieldState, teams.own[ownOut].profile, foe, teams.ownFactors, teams.foeFactors,
			this.battle.entries[ownOut].moves, choices, !!request.active[0].canTerastallize);
	}
}

function firstSix(team) {
	const mons = [];
	for (const mon of team.values()) {
		if (mons.length === TEAM_SIZE) break;
		mons.push(mon);
	}
	return mons;
}
