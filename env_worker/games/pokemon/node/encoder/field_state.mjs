// The field at one decision, and its effect on damage and speed.

import { GLOBAL, SIDE } from './layout.mjs';

const REFLECT = 0, LIGHT_SCREEN = 1, AURORA_VEIL = 2, TAILWIND = 4; // of SIDE's screens
export const SUN = 0, RAIN = 1; // of GLOBAL's weather
const LAST_GEN_OF_OWN_SCREENS = 2; // that a Pokemon puts up for itself
const HAZARDS = SIDE.size.hazards, SCREENS = SIDE.size.screens;
// Whose stages and screens a move's damage meets.
export const BY_ATTACK = 0, BY_SPECIAL_ATTACK = 1, BY_DEFENCE = 2, BY_FOES_ATTACK = 3, ON_DEFENCE = 4, BY_NOTHING = 5;
const STAGES = Array.from({ length: 13 }, (_, i) => i > 6 ? (2 + i - 6) / 2 : 2 / (2 - (i - 6)));

/** Multipliers of one Pokemon's damage, dealt (stages, burn) and taken (stages, screens), and its speed. */
export class Factors {
	constructor() {
		this.physicalDealt = 1;
		this.specialDealt = 1;
		this.defenceDealt = 1; // by Body Press
		this.burn = 1;
		this.attack = 1; // stages that Foul Play uses against it
		this.physicalTaken = 1;
		this.specialTaken = 1;
		this.mixedTaken = 1; // by Psyshock
		this.speed = 0;
	}

	/** Of the Pokemon on the field; `speed` without stages. */
	setActive(mon, speed, side) {
		const { boosts } = mon, defence = STAGES[boosts.def + 6];
		this.burn = mon.status === 'BRN' ? 0.5 : 1;
		this.attack = STAGES[boosts.atk + 6];
		this.physicalDealt = this.attack * this.burn;
		this.specialDealt = STAGES[boosts.spa + 6];
		this.defenceDealt = defence * this.burn;
		this.physicalTaken = side.physicalTaken / defence;
		this.specialTaken = side.specialTaken / STAGES[boosts.spd + 6];
		this.mixedTaken = side.specialTaken / defence;
		this.speed = speed * STAGES[boosts.spe + 6] * side.wind;
	}

	setBenched(mon, speed, side) {
		this.burn = mon.status === 'BRN' ? 0.5 : 1;
		this.attack = 1;
		this.physicalDealt = this.burn;
		this.specialDealt = 1;
		this.defenceDealt = this.burn;
		this.physicalTaken = side.lasting ? side.physicalTaken : 1;
		this.specialTaken = this.mixedTaken = side.lasting ? side.specialTaken : 1;
		this.speed = speed * side.wind;
	}

	/** Of a move that this one uses on `target`, both as they stand. @param {number} staging BY_ATTACK or its like */
	on(target, staging) {
		switch (staging) {
		case BY_ATTACK: return this.physicalDealt * target.physicalTaken;
		case BY_SPECIAL_ATTACK: return this.specialDealt * target.specialTaken;
		case BY_DEFENCE: return this.defenceDealt * target.physicalTaken;
		case BY_FOES_ATTACK: return this.burn * target.attack * target.physicalTaken;
		case ON_DEFENCE: return this.specialDealt * target.mixedTaken;
		default: return 1;
		}
	}

	equals(other) {
		return this.physicalDealt === other.physicalDealt && this.specialDealt === other.specialDealt &&
			this.defenceDealt === other.defenceDealt && this.burn === other.burn && this.attack === other.attack &&
			this.physicalTaken === other.physicalTaken && this.specialTaken === other.specialTaken &&
			this.mixedTaken === other.mixedTaken && this.speed === other.speed;
	}

	copy(other) {
		this.physicalDealt = other.physicalDealt;
		this.specialDealt = other.specialDealt;
		this.defenceDealt = other.defenceDealt;
		this.burn = other.burn;
		this.attack = other.attack;
		this.physicalTaken = other.physicalTaken;
		this.specialTaken = other.specialTaken;
		this.mixedTaken = other.mixedTaken;
		this.speed = other.speed;
	}
}

/** Hazards and screens of one side; each number as it is written. */
class SideState {
	constructor() {
		this.hazards = new Float64Array(HAZARDS);
		this.screens = new Float64Array(SCREENS);
		this.screenTurns = new Float64Array(SCREENS);
		this.physicalTaken = this.specialTaken = 1; // what the screens leave of damage
		this.wind = 1; // 2 behind a tailwind
		this.lasting = true; // the screens stay when a Pokemon leaves
	}

	/** @param {object | null} mon who stands there, where it may have screens of its own */
	read(tables, conditions, mon, turn) {
		const { hazards, screens, screenTurns } = this;
		hazards.fill(0);
		screens.fill(0);
		screenTurns.fill(0);
		for (const [name, count] of conditions) {
			const place = tables.sideSlots.get(name);
			if (place === undefined) continue;
			const [slot, part] = place; // screens are numbered behind the hazards
			if (slot < HAZARDS) {
				hazards[slot] = part < 1 ? Math.min(count * part, 1) : 1; // layers, or it lies there
			} else {
				this.raise(slot - HAZARDS, turn - count);
			}
		}
		if (mon !== null && mon.effects.size > 0) this.readOwn(tables, mon, turn);
		this.lasting = tables.gen > 1;
		this.physicalTaken = screens[AURORA_VEIL] || screens[REFLECT] ? tables.behindScreen : 1;
		this.specialTaken = screens[AURORA_VEIL] || screens[LIGHT_SCREEN] ? tables.behindScreen : 1;
		this.wind = screens[TAILWIND] ? 2 : 1;
	}

	raise(screen, turns) {
		this.screens[screen] = 1;
		this.screenTurns[screen] = share(turns, 0, SIDE.scale.screen_turns);
	}

	/** What the Pokemon has put up for itself: gen 1 Reflect, Light Screen, Mist; gen 2 Mist. */
	readOwn(tables, mon, turn) {
		for (const effect of mon.effects) {
			const place = tables.sideSlots.get(effect), began = mon.began.get(effect);
			if (place !== undefined && began !== undefined) this.raise(place[0] - HAZARDS, turn - began);
		}
	}
}

/** Numbers of both sides, the weather and the field. */
export class FieldState {
	constructor() {
		this.ownSide = new SideState();
		this.foeSide = new SideState();
		this.weather = new Float64Array(GLOBAL.size.weather);
		this.terrain = new Float64Array(GLOBAL.size.terrain);
		this.weatherTurns = this.terrainTurns = this.trickRoomTurns = 0;
		this.trickRoom = false;
	}

	read(tables, battle) {
		const { turn, weather, fields } = battle, { scale } = GLOBAL, early = tables.gen <= LAST_GEN_OF_OWN_SCREENS;
		this.ownSide.read(tables, battle.sideConditions, early ? battle.activeOf(battle.ownMons) : null, turn);
		this.foeSide.read(tables, battle.opponentSideConditions, early ? battle.activeOf(battle.foeMons) : null, turn);
		this.weatherTurns = share(turn, readKinds(tables.weatherSlots, weather, this.weather), scale.weather_turns);
		this.terrainTurns = share(turn, readKinds(tables.terrainSlots, fields, this.terrain), scale.terrain_turns);
		const start = fields.get('TRICK_ROOM');
		this.trickRoom = start !== undefined;
		this.trickRoomTurns = share(turn, start, scale.trick_room_turns);
	}
}

/** Turns since `start` (undefined: 0), as a share of `whole`. */
function share(turn, start, whole) {
	return start === undefined ? 0 : Math.min((turn - start) / whole, 1);
}

/** Marks the kinds that have a slot; returns the turn in which the last of them began, undefined without one. */
function readKinds(slots, kinds, numbers) {
	let began;
	numbers.fill(0);
	for (const [name, start] of kinds) {
		const slot = slots.get(name);
		if (slot === undefined) continue;
		numbers[slot] = 1;
		began = start;
	}
	return began;
}

/** Speed with paralysis and choice scarf, without stages. */
export function baseSpeed(gen, profile, mon) {
	let value = profile.stats[5];
	if (mon.status === 'PAR' && profile.ability !== 'quickfeet') value *= gen >= 7 ? 0.5 : 0.25;
	if (profile.item === 'choicescarf') value *= 1.5;
	return value;
}

/** 1 = the own Pokemon is faster, -1 = slower, 0 = a tie. */
export function movesFirst(ownSpeed, foeSpeed, trickRoom) {
	if (ownSpeed === foeSpeed) return 0;
	return (ownSpeed > foeSpeed) !== trickRoom ? 1 : -1;
}
