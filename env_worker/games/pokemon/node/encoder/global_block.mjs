// The parts of a global block that singles and doubles share: the field, a side, an active Pokemon, what may be done.

import { evolution } from './actions.mjs';
import { ACTIVE, LAST, SIDE } from './layout.mjs';

const STAGES = ['atk', 'def', 'spa', 'spd', 'spe', 'accuracy', 'evasion'];
const LATER_GIMMICKS = ['canZMove', 'canDynamax', 'canTerastallize'];

/** Weather, terrain, Trick Room. @param {object} at the places of GLOBAL or DOUBLES_GLOBAL */
export function writeField(out, at, fieldState) {
	out.set(fieldState.weather, at.weather);
	out[at.weather_turns] = fieldState.weatherTurns;
	out.set(fieldState.terrain, at.terrain);
	out[at.terrain_turns] = fieldState.terrainTurns;
	out[at.trick_room] = fieldState.trickRoom ? 1 : 0;
	out[at.trick_room_turns] = fieldState.trickRoomTurns;
}

/** Both sides. @param {Float64Array} standing as BattleEncoder keeps it */
export function writeSides(out, at, fieldState, battle, standing) {
	writeSide(out, at.own_side, fieldState.ownSide, standing[0], standing[2],
		battle.usedTera || battle.usedMega || battle.usedZ || battle.usedDynamax);
	writeSide(out, at.foe_side, fieldState.foeSide, standing[1], standing[3], battle.opponentUsedTera ||
		battle.opponentUsedMega || battle.opponentUsedZ || battle.opponentUsedDynamax);
}

function writeSide(out, start, side, alive, hp, spent) {
	const { at, scale } = SIDE;
	out.set(side.hazards, start + at.hazards);
	out.set(side.screens, start + at.screens);
	out.set(side.screenTurns, start + at.screen_turns);
	out[start + at.alive] = alive / scale.alive;
	out[start + at.team_hp] = hp / scale.team_hp;
	out[start + at.gimmick_used] = spent ? 1 : 0;
}

/** @param {object | null} mon who stands there */
export function writeActive(out, start, tables, mon) {
	const { at, scale, size } = ACTIVE;
	if (mon === null) {
		out.fill(0, start, start + ACTIVE.width);
		return;
	}
	out[start + at.last_move] = tables.moveRow(mon.lastMove);
	for (let i = 0; i < size.boosts; i++) out[start + at.boosts + i] = mon.boosts[STAGES[i]] / scale.boosts;
	out.fill(0, start + at.volatiles, start + at.volatiles + size.volatiles);
	if (mon.effects.size) {
		for (const effect of mon.effects.keys()) {
			const place = tables.volatileSlots.get(effect);
			if (place !== undefined) out[start + at.volatiles + place[0]] = place[1];
		}
	}
	out[start + at.recharging] = mon.mustRecharge ? 1 : 0;
	out[start + at.preparing] = mon.preparing ? 1 : 0;
	out[start + at.protect_count] = Math.min(mon.protectCounter / scale.protect_count, 1);
	out[start + at.turns_active] = Math.min(mon.activeTurns / scale.turns_active, 1);
	out[start + at.transformed] = mon.transformed ? 1 : 0;
}

/** What one side did and met in the last turn. @param {object} events a TurnEvents */
export function writeLast(out, start, events) {
	const { at } = LAST;
	out[start + at.moved_first] = events.movedFirst;
	out[start + at.prevented] = events.prevented;
	out[start + at.missed] = events.missed;
	out[start + at.failed] = events.failed;
	out[start + at.critical] = events.critical;
	out[start + at.hp_lost] = Math.min(events.hpLost, 1);
	out[start + at.switched] = events.switched;
	out[start + at.fainted] = events.fainted;
}

/** What a request says of one Pokemon. @param {object} at the places of GLOBAL or ASKED; @param {object} [asked] */
export function writeAsked(out, start, at, forced, asked) {
	out[start + at.force_switch] = forced ? 1 : 0;
	out[start + at.trapped] = asked?.trapped ? 1 : 0;
	out[start + at.maybe_trapped] = asked?.maybeTrapped ? 1 : 0;
	out[start + at.can_gimmick] = asked && evolution(asked) ? 1 : 0;
	for (let i = 0; i < LATER_GIMMICKS.length; i++) {
		out[start + at.can_gimmick + 1 + i] = asked?.[LATER_GIMMICKS[i]] ? 1 : 0;
	}
}
