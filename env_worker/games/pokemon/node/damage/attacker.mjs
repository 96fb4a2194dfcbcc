// One move of one user: all of the damage formula that does not depend on the target.

import {
	FIRE, ICE, ONE, PSYCHIC, STELLAR, TYPELESS, WATER, chain, divide, grounded, hasType, held, holds, modify, moveType, speed,
	staged, stagesOf, takesType,
} from './queries.mjs';

export const PHYSICAL = 1, SPECIAL = 2;
export const CRITS = 1, BETTER_SIDE = 2, OWN_DEFENCE = 4, FOE_ATTACK = 8, HITS_DEFENCE = 16, IGNORES_STAGES = 32,
	IGNORES_ABILITY = 64, STRUGGLES = 128, EXPLODES = 256, UNFORCED = 512, RISES = 1024;
const USER_HP = 6, PINCH = 7, BOOSTS = 8, NO_ITEM = 9, FALLEN = 10;
const TERA_TYPE = 1, FIRST_TYPE = 5; // where a move's type comes from
const MOST_WAITING = 3;
const NO_FACT = [0, 0];
const PREPARING = 'PREPARING';

export class AttackerMove {
	/** @param {object} user a Fighter; @param {object} around Surroundings */
	constructor(tables, user, move, around) {
		const { gen, facts, stage } = tables, stages = stagesOf(gen, user);
		const typed = moveType(tables, user, move, around);
		const type = Math.abs(typed);
		const category = categoryOf(gen, user, stages, move, type);
		this.low = around.low | move.low;
		this.high = around.high | move.high;
		this.add(category === PHYSICAL ? facts.physical : facts.special);
		if (type >= 1) this.low |= 1 << (type - 1);
		this.addUser(tables, user, around);
		if (typed < 0) this.add(facts.retyped);
		if (user.ability === 'infiltrator' && gen >= 5) this.drop(facts.meets_screens);
		if (user.ability === 'sheerforce' && gen <= 4) this.drop(facts.secondary);
		this.waiting = []; // for the target
		this.waitingBase = []; // the same, of the power that Technician looks at
		const mods = this.apply(tables, rulesOf(tables, user, move, around));
		this.critical = tables.rules('critical', user.ability);
		this.screened = user.ability === 'infiltrator' && gen >= 5 ? NO_FACT : facts.meets_screens; // not critical after all
		this.special = category === SPECIAL && !(move.bits & HITS_DEFENCE);
		this.type = move.bits & STRUGGLES ? 0 : type;
		this.levelTerm = divide(2 * user.level, 5) + 2;
		this.power = powerOf(gen, user, stages, move);
		this.powerKind = move.powerKind;
		this.setAttack(gen, user, stages, move, category, mods[stage.attack_first]);
		this.baseMod = mods[stage.base];
		this.powerMod = mods[stage.power];
		this.attackMod = mods[stage.attack];
		this.defenceMod = mods[this.special ? stage.foe_special_defence : stage.foe_defence];
		this.finalMod = mods[stage.final];
		this.earlyMod = mods[stage.early];
		this.middleMod = mods[stage.middle];
		this.stab = stabOf(gen, user, type, move);
		this.weather = weatherOf(tables, around, type, move.id);
		this.burned = gen > 2 && user.status === 'BRN' && category === PHYSICAL && user.ability !== 'guts' &&
			(gen <= 5 || move.id !== 'facade');
		this.fixed = move.fixed;
		this.amount = move.amount || user.level;
		this.oddity = move.oddity;
		this.bits = move.bits;
		this.hp = divide(user.stats[0] * user.hp, user.maxHp);
		this.weight = tables.weights.get(user.species) ?? 0;
		this.speed = speed(tables, user, stages, around);
		this.lifted = user.terastallized && hasType(user.types, type) && !(move.bits & UNFORCED);
		this.scrappy = tables.scrappy.has(user.ability);
		this.mold = tables.mold.has(user.ability) || (move.bits & IGNORES_ABILITY) !== 0;
		this.unaware = user.ability === 'unaware';
		[this.hits, this.spread] = blows(gen, user, move);
	}

	add(fact) {
		this.low |= fact[0];
		this.high |= fact[1];
	}

	drop(fact) {
		this.low &= ~fact[0];
		this.high &= ~fact[1];
	}

	addUser(tables, user, around) {
		const { facts, gen } = tables, { status } = user;
		if (3 * user.hp <= user.maxHp) this.add(facts.user_pinched);
		if (2 * user.hp <= user.maxHp) this.add(facts.user_weak);
		if (status && !(status === 'SLP' && gen >= 3 && user.ability !== 'guts')) this.add(facts.user_status);
		if (status === 'BRN') this.add(facts.user_burned);
		else if (status === 'PSN' || status === 'TOX') this.add(facts.user_poisoned);
		if (grounded(gen, user, around)) this.add(facts.user_grounded);
	}

	/** Modifiers by stage; what has to wait for the target stays in `waiting`. */
	apply(tables, rules) {
		const mods = new Array(tables.stageCount).fill(ONE);
		for (const rule of rules) {
			const low = rule.low & ~tables.pairLow, high = rule.high & ~tables.pairHigh;
			if ((this.low & low) !== low || (this.high & high) !== high) continue;
			if (rule.low === low && rule.high === high) mods[rule.stage] = chain(mods[rule.stage], rule.mod);
			else if (rule.stage === tables.stage.base) this.waitingBase.push(rule);
			else if (this.waiting.length < MOST_WAITING) this.waiting.push(rule);
		}
		return mods;
	}

	/** With stages and without; 0 where the target's attack is used. */
	setAttack(gen, user, stages, move, category, first) {
		this.attack = this.attackPlain = 0;
		if (move.bits & FOE_ATTACK) return;
		const place = move.bits & OWN_DEFENCE ? 1 : category === PHYSICAL ? 0 : 2;
		const stat = user.stats[place + 1];
		let stage = stages[place];
		if (move.bits & RISES && !user.effects.includes(PREPARING)) stage = Math.max(-6, Math.min(6, stage + riseOf(user)));
		this.attack = staged(gen, stat, stage);
		this.attackPlain = staged(gen, stat, 0);
		if (gen <= 2 && place === 0 && user.status === 'BRN') this.attack = Math.max(divide(this.attack, 2), 1);
		if (first === ONE) return;
		this.attack = modify(this.attack, first);
		this.attackPlain = modify(this.attackPlain, first);
	}
}

/** Whether a move is the same after its user terastallizes. */
export function sameTerastallized(gen, user, tera, attackerMove, move, around) {
	return move.typeKind !== TERA_TYPE && move.typeKind !== FIRST_TYPE && !(move.bits & (BETTER_SIDE | STRUGGLES)) &&
		!hasType(tera.types, attackerMove.type) && stabOf(gen, tera, attackerMove.type, move) === attackerMove.stab &&
		grounded(gen, tera, around) === grounded(gen, user, around);
}

function categoryOf(gen, user, stages, move, type) {
	if (gen <= 3 && type !== move.type) return type === FIRE || type === WATER || type === ICE ? SPECIAL : PHYSICAL;
	if (move.bits & BETTER_SIDE && (user.terastallized || move.type === PSYCHIC)) {
		const attack = staged(gen, user.stats[1], stages[0]);
		return attack > staged(gen, user.stats[3], stages[2]) ? PHYSICAL : move.category;
	}
	return move.category;
}

function powerOf(gen, user, stages, move) {
	const { power } = move;
	switch (move.powerKind) {
	case USER_HP: return Math.max(divide(power * user.hp, user.maxHp), 1);
	case PINCH: return pinch(gen, user);
	case BOOSTS: return power + 20 * stages.reduce((sum, stage) => stage > 0 ? sum + stage : sum, 0);
	case NO_ITEM: return user.item && !user.item.endsWith('gem') ? power : 2 * power;
	case FALLEN: return power + 50 * user.down;
	default: return move.typeKind === TERA_TYPE && user.terastallized && user.tera === STELLAR ? 100 : power;
	}
}

function pinch(gen, user) {
	const bounds = gen === 4 ? [2, 6, 13, 22, 43] : [2, 5, 10, 17, 33];
	const share = Math.max(divide(user.hp * (gen === 4 ? 64 : 48), user.maxHp), 1);
	const place = bounds.findIndex(bound => share < bound);
	return place < 0 ? 20 : [200, 150, 100, 80, 40][place];
}

/** All that may apply, in the order the modifiers are chained. */
function rulesOf(tables, user, move, around) {
	const found = [...tables.rules('user_ability', user.ability), ...tables.rules('move', move.id),
		...tables.rules('field', 'any')];
	if (around.gravity) found.push(...tables.rules('gravity', move.id));
	const item = held(user);
	if (!(item.startsWith('choice') && user.effects.includes('DYNAMAX'))) {
		for (const rule of tables.rules('user_item', item)) if (rule.suits(user.species)) found.push(rule);
	}
	for (const effect of user.effects) found.push(...tables.rules('user_effect', effect));
	return found;
}

/** Stages that a move of RISES adds to the special attack before it hits. */
function riseOf(user) {
	return user.ability === 'contrary' ? -1 : user.ability === 'simple' ? 2 : 1;
}

function stabOf(gen, user, type, move) {
	if (move.bits & STRUGGLES || type === TYPELESS) return ONE;
	const { types, baseTypes } = user;
	if (takesType(gen, user.ability, types[0], types[1] ?? 0, baseTypes[0], baseTypes[1] ?? 0, user.terastallized)) return 6144;
	const now = hasType(user.types, type), born = hasType(user.baseTypes, type);
	if (user.terastallized && user.tera === STELLAR) return now || born ? 8192 : 4915;
	const both = user.terastallized && user.tera === type && born;
	if (user.ability === 'adaptability' && now) return both ? 9216 : 8192;
	return both ? 8192 : now || (born && user.terastallized) ? 6144 : ONE;
}

function weatherOf(tables, around, type, id) {
	if (holds(around.low, around.high, tables.facts.sun)) {
		if (id === 'hydrosteam' || type === FIRE) return 6144;
		if (type === WATER) return around.harsh === 1 ? 0 : 2048;
	} else if (holds(around.low, around.high, tables.facts.rain)) {
		if (type === WATER) return 6144;
		if (type === FIRE) return around.harsh === 2 ? 0 : 2048;
	}
	return ONE;
}

/** Mean and variance of how often a move hits. */
function blows(gen, user, move) {
	if (move.fewHits && user.ability === 'skilllink') return [5, 0];
	if (move.fewHits && user.item === 'loadeddice') return [4.5, 0.25];
	if (user.ability === 'parentalbond' && move.hits[0] === 1) return [gen >= 7 ? 1.25 : 1.5, 0];
	return move.hits;
}
