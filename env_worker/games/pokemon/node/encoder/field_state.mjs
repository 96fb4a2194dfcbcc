// The field at one decision, and its effect on damage and speed. The same as field_state.py and features.py.

export const TRICK_ROOM = 5; // index in `field`; its age follows
export const SIDE_WIDTH = 14; // hazards (4), screens (5), their age (5)
export const FIELD_WIDTH = 7; // one-hot terrain (4), its age, trick room, its age
export const REFLECT = 4, LIGHT_SCREEN = 5, AURORA_VEIL = 6;
export const SUN = 0, RAIN = 1;
const STACKABLE_SLOTS = 3; // spikes and toxic spikes are 1 and 2
const SCREENS = 4, NUM_SCREENS = 5; // the first with turns
export const STAGES = Array.from({ length: 13 }, (_, i) => i > 6 ? (2 + i - 6) / 2 : 2 / (2 - (i - 6)));

/** Multipliers of one Pokemon's damage, dealt (stages, burn) and taken (stages, screens), and its speed. */
export class Factors {
	constructor() {
		this.physicalDealt = 1;
		this.specialDealt = 1;
		this.physicalTaken = 1;
		this.specialTaken = 1;
		this.speed = 0;
	}

	/** Of the Pokemon on the field; `speed` without stages. */
	setActive(mon, speed, side) {
		const boosts = mon.boosts;
		this.physicalDealt = STAGES[boosts.atk + 6] * (mon.status === 'BRN' ? 0.5 : 1);
		this.specialDealt = STAGES[boosts.spa + 6];
		this.physicalTaken = physicalScreen(side) / STAGES[boosts.def + 6];
		this.specialTaken = specialScreen(side) / STAGES[boosts.spd + 6];
		this.speed = speed * STAGES[boosts.spe + 6];
	}

	setBenched(mon, speed, side) {
		this.physicalDealt = mon.status === 'BRN' ? 0.5 : 1;
		this.specialDealt = 1;
		this.physicalTaken = physicalScreen(side);
		this.specialTaken = specialScreen(side);
		this.speed = speed;
	}

	equals(other) {
		return this.physicalDealt === other.physicalDealt && this.specialDealt === other.specialDealt &&
			this.physicalTaken === other.physicalTaken && this.specialTaken === other.specialTaken &&
			this.speed === other.speed;
	}

	copy(other) {
		this.physicalDealt = other.physicalDealt;
		this.specialDealt = other.specialDealt;
		this.physicalTaken = other.physicalTaken;
		this.specialTaken = other.specialTaken;
		this.speed = other.speed;
	}
}

/** Numbers of both sides, the weather and the field; `own`, `foe`: the active Pokemon, null = none. */
export class FieldState {
	constructor() {
		this.own = null;
		this.foe = null;
		this.ownSide = new Float64Array(SIDE_WIDTH);
		this.foeSide = new Float64Array(SIDE_WIDTH);
		this.weather = new Float64Array(6); // one-hot (5), age
		this.field = new Float64Array(FIELD_WIDTH);
	}

	read(tables, battle, own, foe) {
		this.own = own;
		this.foe = foe;
		readSide(tables, battle.sideConditions, battle.turn, this.ownSide);
		readSide(tables, battle.opponentSideConditions, battle.turn, this.foeSide);
		readAged(tables.weatherSlots, battle.weather, battle.turn, this.weather, 5);
		readAged(tables.terrainSlots, battle.fields, battle.turn, this.field, 4);
		const start = battle.fields.get('TRICK_ROOM');
		if (start === undefined) return;
		this.field[TRICK_ROOM] = 1;
		this.field[TRICK_ROOM + 1] = Math.min((battle.turn - start) / 8, 1);
	}
}

function readSide(tables, conditions, turn, numbers) {
	numbers.fill(0);
	for (const [name, count] of conditions) {
		const place = tables.sideSlots.get(name);
		if (place === undefined) continue;
		const slot = place[0];
		numbers[slot] = slot > 0 && slot < STACKABLE_SLOTS ? Math.min(count * place[1], 1) : 1;
		if (slot >= SCREENS) numbers[slot + NUM_SCREENS] = Math.min((turn - count) / 8, 1);
	}
}

function readAged(slots, kinds, turn, numbers, ageSlot) {
	numbers.fill(0);
	for (const [name, start] of kinds) {
		const slot = slots.get(name);
		if (slot === undefined) continue;
		numbers[slot] = 1;
		numbers[ageSlot] = Math.min((turn - start) / 8, 1);
	}
}

export function physicalScreen(side) {
	return side[AURORA_VEIL] || side[REFLECT] ? 0.5 : 1;
}

export function specialScreen(side) {
	return side[AURORA_VEIL] || side[LIGHT_SCREEN] ? 0.5 : 1;
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
