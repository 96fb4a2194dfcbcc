// Writes one seat's battle into the layout: float16, the same numbers as encoder.py.
//
// Reads a SeatTracker, so only what that seat has been told.

import { NUM_ACTIONS } from './actions.mjs';
import { DamageBlock } from '../damage/writer.mjs';
import { MoveBlocks } from './move_features.mjs';
import { ACTIVE, GLOBAL, SIDE } from './layout.mjs';
import { FieldState } from './field_state.mjs';
import { SetBlocks } from './set_knowledge.mjs';
import { TeamBlocks } from './blocks.mjs';

const TEAM_SIZE = 6;
const STAGES = ['atk', 'def', 'spa', 'spd', 'spe', 'accuracy', 'evasion'];
const GIMMICKS = ['canMegaEvo', 'canZMove', 'canDynamax', 'canTerastallize'];

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
		const { battle, observation: out, fieldState, standing } = this, { at, scale } = GLOBAL;
		const asked = request.active ? request.active[0] : null;
		out[at.turn] = Math.min(battle.turn / scale.turn, 1);
		out[at.force_switch] = request.forceSwitch ? 1 : 0;
		out[at.reviving] = reviving ? 1 : 0;
		out[at.trapped] = asked?.trapped ? 1 : 0;
		out[at.maybe_trapped] = asked?.maybeTrapped ? 1 : 0;
		for (let i = 0; i < GIMMICKS.length; i++) out[at.can_gimmick + i] = asked?.[GIMMICKS[i]] ? 1 : 0;
		out.set(fieldState.weather, at.weather);
		out[at.weather_turns] = fieldState.weatherTurns;
		out.set(fieldState.terrain, at.terrain);
		out[at.terrain_turns] = fieldState.terrainTurns;
		out[at.trick_room] = fieldState.trickRoom ? 1 : 0;
		out[at.trick_room_turns] = fieldState.trickRoomTurns;
		this.writeSide(at.own_side, fieldState.ownSide, standing[0], standing[2],
			battle.usedTera || battle.usedMega || battle.usedZ || battle.usedDynamax);
		this.writeSide(at.foe_side, fieldState.foeSide, standing[1], standing[3], battle.opponentUsedTera ||
			battle.opponentUsedMega || battle.opponentUsedZ || battle.opponentUsedDynamax);
		this.writeActive(at.own_active, fieldState.own);
		this.writeActive(at.foe_active, fieldState.foe);
	}

	writeSide(start, side, alive, hp, spent) {
		const out = this.observation, { at, scale } = SIDE;
		out.set(side.hazards, start + at.hazards);
		out.set(side.screens, start + at.screens);
		out.set(side.screenTurns, start + at.screen_turns);
		out[start + at.alive] = alive / scale.alive;
		out[start + at.team_hp] = hp / scale.team_hp;
		out[start + at.gimmick_used] = spent ? 1 : 0;
	}

	writeActive(start, mon) {
		const out = this.observation, { at, scale, size } = ACTIVE;
		if (mon === null) {
			out.fill(0, start, start + ACTIVE.width);
			return;
		}
		out[start + at.last_move] = this.tables.moveRow(mon.lastMove);
		for (let i = 0; i < size.boosts; i++) out[start + at.boosts + i] = mon.boosts[STAGES[i]] / scale.boosts;
		out.fill(0, start + at.volatiles, start + at.volatiles + size.volatiles);
		if (mon.effects.size) {
			for (const effect of mon.effects.keys()) {
				const place = this.tables.volatileSlots.get(effect);
				if (place !== undefined) out[start + at.volatiles + place[0]] = place[1];
			}
		}
		out[start + at.recharging] = mon.mustRecharge ? 1 : 0;
		out[start + at.preparing] = mon.preparing ? 1 : 0;
		out[start + at.protect_count] = Math.min(mon.protectCounter / scale.protect_count, 1);
		out[start + at.turns_active] = Math.min(mon.activeTurns / scale.turns_active, 1);
		out[start + at.transformed] = mon.transformed ? 1 : 0;
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
