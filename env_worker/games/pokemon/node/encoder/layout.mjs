// Where each field of a block stands, how many numbers it has (1 where nothing is said), and what they are
// divided by. From tables/layout.py by `python -m simul.env_worker.games.pokemon.tables.layout_files`.

export const FINGERPRINT = '60b625c4f4fc3abe';

export const GLOBAL = {
	width: 134,
	at: {
		turn: 0,
		force_switch: 1,
		reviving: 2,
		trapped: 3,
		maybe_trapped: 4,
		can_gimmick: 5,
		weather: 9,
		weather_turns: 14,
		terrain: 15,
		terrain_turns: 19,
		trick_room: 20,
		trick_room_turns: 21,
		own_side: 22,
		foe_side: 39,
		own_active: 56,
		foe_active: 83,
		own_last: 110,
		foe_last: 118,
		preview: 126,
		preview_picks: 127,
		preview_order: 128,
	},
	size: {
		can_gimmick: 4,
		weather: 5,
		terrain: 4,
		preview_order: 6,
	},
	scale: {
		turn: 100,
		weather_turns: 8,
		terrain_turns: 8,
		trick_room_turns: 8,
		preview_picks: 6,
		preview_order: 6,
	},
};

export const SIDE = {
	width: 17,
	at: {
		hazards: 0,
		screens: 4,
		screen_turns: 9,
		alive: 14,
		team_hp: 15,
		gimmick_used: 16,
	},
	size: {
		hazards: 4,
		screens: 5,
		screen_turns: 5,
	},
	scale: {
		screen_turns: 8,
		alive: 6,
		team_hp: 6,
	},
};

export const ACTIVE = {
	width: 27,
	at: {
		last_move: 0,
		boosts: 1,
		volatiles: 8,
		recharging: 22,
		preparing: 23,
		protect_count: 24,
		turns_active: 25,
		transformed: 26,
	},
	size: {
		boosts: 7,
		volatiles: 14,
	},
	scale: {
		boosts: 6,
		protect_count: 3,
		turns_active: 8,
	},
};

export const LAST = {
	width: 8,
	at: {
		moved_first: 0,
		prevented: 1,
		missed: 2,
		failed: 3,
		critical: 4,
		hp_lost: 5,
		switched: 6,
		fainted: 7,
	},
};

export const POKEMON = {
	width: 64,
	at: {
		species: 0,
		ability: 1,
		item: 2,
		moves: 3,
		types: 7,
		tera_type: 9,
		present: 10,
		hp: 11,
		fainted: 12,
		active: 13,
		revealed: 14,
		terastallized: 15,
		status: 16,
		sleep_turns: 22,
		resting: 23,
		toxic_stage: 24,
		level: 25,
		stats: 26,
		moves_known: 32,
		moves_pp: 52,
		deals: 56,
		deals_effectiveness: 57,
		takes: 58,
		takes_effectiveness: 59,
		moves_first: 60,
		threat: 61,
		threat_chance: 62,
		falls: 63,
	},
	size: {
		moves: 4,
		types: 2,
		status: 6,
		stats: 6,
		moves_known: 20,
		moves_pp: 4,
	},
	scale: {
		sleep_turns: 7,
		toxic_stage: 15,
		level: 100,
		stats: 500,
		deals_effectiveness: 4,
		takes_effectiveness: 4,
	},
};

export const PAIR = {
	width: 8,
	at: {
		deals: 0,
		deals_effectiveness: 1,
		takes: 2,
		takes_effectiveness: 3,
		moves_first: 4,
		threat: 5,
		threat_chance: 6,
		falls: 7,
	},
	scale: {
		deals_effectiveness: 4,
		takes_effectiveness: 4,
	},
};

export const MOVE = {
	width: 60,
	at: {
		id: 0,
		type: 1,
		power: 2,
		accuracy: 3,
		priority: 4,
		category: 5,
		heals: 8,
		drains: 9,
		recoil: 10,
		raises_self: 11,
		lowers_self: 12,
		lowers_foe: 13,
		inflicts: 14,
		confuses: 15,
		hazard: 16,
		clears: 17,
		protects: 18,
		pivots: 19,
		phazes: 20,
		screen: 21,
		field: 22,
		slow: 23,
		contact: 24,
		flags: 25,
		present: 52,
		usable: 53,
		pp: 54,
		stab: 55,
		effectiveness: 56,
		damage: 57,
		knock_out_chance: 58,
		tera_damage: 59,
	},
	size: {
		category: 3,
		flags: 27,
	},
	scale: {
		power: 250,
		priority: 7,
		raises_self: 6,
		lowers_self: 6,
		lowers_foe: 6,
		effectiveness: 4,
	},
};

export const AGAINST = {
	width: 4,
	at: {
		effectiveness: 0,
		damage: 1,
		knock_out_chance: 2,
		tera_damage: 3,
	},
	scale: {
		effectiveness: 4,
	},
};

export const TARGET = {
	width: 16,
	at: {
		foe: 0,
	},
};

export const POSSIBLE = {
	width: 24,
	at: {
		moves: 0,
		moves_chance: 6,
		abilities: 12,
		abilities_chance: 15,
		tera_types: 18,
		tera_types_chance: 21,
	},
	size: {
		moves: 6,
		moves_chance: 6,
		abilities: 3,
		abilities_chance: 3,
		tera_types: 3,
		tera_types_chance: 3,
	},
};

export const DOUBLES_GLOBAL = {
	width: 197,
	at: {
		turn: 0,
		right: 1,
		reviving: 2,
		self: 3,
		partner: 10,
		first: 17,
		weather: 34,
		weather_turns: 39,
		terrain: 40,
		terrain_turns: 44,
		trick_room: 45,
		trick_room_turns: 46,
		own_side: 47,
		foe_side: 64,
		self_active: 81,
		partner_active: 108,
		left_foe_active: 135,
		right_foe_active: 162,
		preview: 189,
		preview_picks: 190,
		preview_order: 191,
	},
	size: {
		weather: 5,
		terrain: 4,
		preview_order: 6,
	},
	scale: {
		turn: 100,
		weather_turns: 8,
		terrain_turns: 8,
		trick_room_turns: 8,
		preview_picks: 6,
		preview_order: 6,
	},
};

export const ASKED = {
	width: 7,
	at: {
		force_switch: 0,
		trapped: 1,
		maybe_trapped: 2,
		can_gimmick: 3,
	},
	size: {
		can_gimmick: 4,
	},
};

export const FIRST = {
	width: 17,
	at: {
		made: 0,
		switch: 1,
		move: 7,
		target: 8,
		gimmick: 13,
	},
	size: {
		switch: 6,
		target: 5,
		gimmick: 4,
	},
};

export const DOUBLES_POKEMON = {
	width: 54,
	at: {
		species: 0,
		ability: 1,
		item: 2,
		moves: 3,
		types: 7,
		tera_type: 9,
		present: 10,
		hp: 11,
		fainted: 12,
		active: 13,
		revealed: 14,
		terastallized: 15,
		status: 16,
		sleep_turns: 22,
		resting: 23,
		toxic_stage: 24,
		level: 25,
		stats: 26,
		moves_pp: 32,
		slot: 36,
		left: 38,
		right: 46,
	},
	size: {
		moves: 4,
		types: 2,
		status: 6,
		stats: 6,
		moves_pp: 4,
		slot: 2,
	},
	scale: {
		sleep_turns: 7,
		toxic_stage: 15,
		level: 100,
		stats: 500,
	},
};

export const DOUBLES_MOVE = {
	width: 64,
	at: {
		id: 0,
		type: 1,
		power: 2,
		accuracy: 3,
		priority: 4,
		category: 5,
		heals: 8,
		drains: 9,
		recoil: 10,
		raises_self: 11,
		lowers_self: 12,
		lowers_foe: 13,
		inflicts: 14,
		confuses: 15,
		hazard: 16,
		clears: 17,
		protects: 18,
		pivots: 19,
		phazes: 20,
		screen: 21,
		field: 22,
		slow: 23,
		contact: 24,
		flags: 25,
		present: 52,
		usable: 53,
		pp: 54,
		stab: 55,
		left: 56,
		right: 60,
	},
	size: {
		category: 3,
		flags: 27,
	},
	scale: {
		power: 250,
		priority: 7,
		raises_self: 6,
		lowers_self: 6,
		lowers_foe: 6,
	},
};
