// The damage formula of one attacker's move on one target: integers throughout, as each generation's games count.

import { FIRE, FLYING, GHOST, GROUND, NORMAL, ONE, STELLAR, WATER, chain, divide, modify } from './queries.mjs';
import { CRITS, EXPLODES, FOE_ATTACK, IGNORES_STAGES, STRUGGLES } from './attacker.mjs';

const FIGHTING = 6;
const WEIGHT = 1, WEIGHT_RATIO = 2, SLOWER = 3, FASTER = 4, TARGET_HP = 5;
const FLAT = 1, LEVEL = 2, TARGET_SHARE = 3, TARGET_ALL = 4, TO_USERS_HP = 5, USERS_HP = 6;
const FREEZE_DRY = 1, FLYING_PRESS = 2, THOUSAND_ARROWS = 3;
const TECHNICAL_POWER = 60;
const NO_FACT = [0, 0];
const IMMUNE_EFFECT = -100;
const BY_WEIGHT = [[2000, 120], [1000, 100], [500, 80], [250, 60], [100, 40]];
const SPEED_POWER = [40, 60, 80, 120, 150];

/** Every roll of an attacker's move on a target; 16 of them, 39 in gens 1 and 2. */
export class Formula {
	constructor(tables) {
		this.tables = tables;
		this.rolls = new Float64Array(tables.gen <= 2 ? 39 : 16);
		this.mods = new Float64Array(tables.stageCount);
	}

	/** Fills `rolls`; false where the target is immune and all of them are 0. */
	run(move, target) {
		const { tables, mods, rolls } = this, { gen, facts, stage } = tables;
		const effect = effectiveness(tables, move, target);
		const critical = (move.bits & CRITS) !== 0 && !target.uncritical;
		let low = move.low | target.low, high = move.high | target.high;
		const strong = effect > 0 ? facts.super_effective : effect < 0 ? facts.resisted : NO_FACT;
		const quick = move.speed > target.speed ? facts.faster : move.speed < target.speed ? facts.slower : NO_FACT;
		const screened = move.bits & CRITS && !critical ? move.screened : NO_FACT;
		low |= strong[0] | quick[0] | screened[0];
		high |= strong[1] | quick[1] | screened[1];
		const power = this.basePower(move, target, low, high);
		if (power <= TECHNICAL_POWER) {
			low |= facts.technical[0];
			high |= facts.technical[1];
		}
		mods[stage.power] = move.powerMod;
		mods[stage.attack] = move.attackMod;
		mods[stage.final] = move.finalMod;
		mods[stage.early] = move.earlyMod;
		let immune = effect === IMMUNE_EFFECT || move.weather === 0;
		if (this.apply(move.waiting, low, high)) immune = true;
		if (this.apply(target.guards, low, high)) immune = true;
		if (critical) this.apply(move.critical, low, high);
		if (immune && !(gen === 1 && move.fixed)) {
			rolls.fill(0);
			return false;
		}
		if (move.fixed) fixedDamage(move, target, rolls);
		else this.spread(move, target, effect === IMMUNE_EFFECT ? 0 : effect, power, critical);
		return true;
	}

	/** Before all modifiers of power. */
	basePower(move, target, low, high) {
		const { mods, tables: { gen, stage } } = this;
		mods[stage.base] = move.baseMod;
		this.apply(move.waitingBase, low, high);
		return modify(pairedPower(gen, move, target), mods[stage.base]);
	}

	/** Chains the modifiers of the rules that hold; true if one of them makes immune. */
	apply(rules, low, high) {
		const { mods } = this, { immune } = this.tables.stage;
		let never = false;
		for (let i = 0; i < rules.length; i++) {
			const rule = rules[i];
			if ((low & rule.low) !== rule.low || (high & rule.high) !== rule.high) continue;
			if (rule.stage === immune) never = true;
			else mods[rule.stage] = chain(mods[rule.stage], rule.mod);
		}
		return never;
	}

	/** `effect`: doublings of the damage, or halvings rounded down; `critical`: the hit is sure to be. */
	spread(move, target, effect, power, critical) {
		const { tables: { gen, stage }, mods } = this;
		power = Math.max(modify(power, mods[stage.power]), 1);
		if (move.lifted && power < 60) power = 60;
		let attack = modify(attackOf(move, target, critical), mods[stage.attack]);
		let defence = defenceOf(move, target, critical);
		if (gen <= 2 && (attack >= 256 || defence >= 256)) {
			attack = Math.max(divide(attack, 4) & 255, 1);
			defence = Math.max(divide(defence, 4) & 255, 1);
		}
		if (gen <= 4 && move.bits & EXPLODES) defence = Math.max(divide(defence, 2), 1);
		const damage = divide(divide(move.levelTerm * power * attack, defence), 50);
		if (gen <= 2) this.spread1(gen, move, effect, damage);
		else if (gen <= 4) this.spread3(gen, move, effect, damage);
		else this.spread5(gen, move, effect, damage, critical);
	}

	spread5(gen, move, effect, damage, critical) {
		const { rolls } = this, final = this.mods[this.tables.stage.final];
		damage = modify(damage + 2, move.weather);
		if (critical) damage = gen >= 6 ? divide(damage * 3, 2) : damage * 2;
		const times = 2 ** effect, { stab, burned } = move;
		for (let i = 0; i < 16; i++) {
			let roll = Math.floor(modify(divide(damage * (85 + i), 100), stab) * times);
			if (burned) roll = modify(roll, 2048);
			rolls[i] = Math.max(modify(roll, final), 1);
		}
	}

	spread3(gen, move, effect, damage) {
		const { rolls } = this, { early, final } = this.tables.stage;
		if (move.burned) damage = modify(damage, 2048);
		damage = modify(modify(damage, this.mods[early]), move.weather);
		if (gen === 3) damage = Math.max(damage, move.special ? 0 : 1);
		damage += 2;
		if (move.middleMod > ONE) damage = divide(damage * 13, 10);
		const times = 2 ** effect, { stab } = move, mod = this.mods[final];
		for (let i = 0; i < 16; i++) {
			const before = gen === 4 ? divide(damage * (85 + i), 100) : damage;
			const roll = modify(Math.floor(modify(before, stab) * times), mod);
			rolls[i] = Math.max(gen === 4 ? roll : divide(roll * (85 + i), 100), 1);
		}
	}

	spread1(gen, move, effect, damage) {
		const { rolls } = this;
		if (this.mods[this.tables.stage.final] > ONE) damage = divide(damage * 11, 10);
		damage = Math.min(Math.max(damage, gen === 2 ? 1 : 0), 997) + 2;
		damage = divide(damage * move.weather, ONE);
		if (move.stab > ONE) damage += divide(damage, 2);
		damage = Math.floor(damage * 2 ** effect);
		for (let i = 0; i < 39; i++) rolls[i] = Math.max(damage > 1 ? divide(damage * (217 + i), 255) : damage, 1);
	}
}

function attackOf(move, target, critical) {
	if (move.bits & FOE_ATTACK) return target.unaware ? target.attackPlain : target.attack;
	if (target.unaware) return move.attackPlain;
	return critical ? Math.max(move.attack, move.attackPlain) : move.attack; // a critical hit passes over lowered stages
}

function defenceOf(move, target, critical) {
	const staged = move.special ? target.specialDefence : target.defence;
	const plain = move.special ? target.specialPlain : target.defencePlain;
	let defence = critical ? Math.min(staged, plain) : staged;
	if (move.bits & IGNORES_STAGES || move.unaware) defence = plain;
	const mod = chain(move.special ? target.specialMod : target.defenceMod, move.defenceMod);
	return Math.max(modify(defence, mod), 1);
}

/** log2 of the type multiplier, IMMUNE_EFFECT where there is no damage at all. */
function effectiveness(tables, move, target) {
	const { type, oddity } = move, afloat = (target.high & tables.facts.target_grounded[1]) === 0 &&
		(target.low & tables.facts.target_grounded[0]) === 0;
	const one = against(tables, move, target, target.type1), two = against(tables, move, target, target.type2);
	let effect = one + two + (target.tarShot && type === FIRE ? 1 : 0);
	if (target.type3 !== 0) effect += against(tables, move, target, target.type3);
	if (type === STELLAR && target.terastallized) effect = 1;
	if (target.teraShell && effect >= 0) effect = -1;
	const flies = target.type1 === FLYING || target.type2 === FLYING;
	const immune = type === GROUND ? afloat && oddity !== THOUSAND_ARROWS :
		barred(tables, move, target.type1) || barred(tables, move, target.type2) || barred(tables, move, target.type3);
	if (immune || (target.wonderGuard && effect <= 0 && !(move.bits & STRUGGLES))) return IMMUNE_EFFECT;
	return oddity === THOUSAND_ARROWS && afloat && flies ? 0 : effect;
}

function against(tables, move, target, type) {
	let value = tables.exponents[move.type][type];
	if (move.oddity === FREEZE_DRY && type === WATER) value = 1;
	else if (move.oddity === FLYING_PRESS) value += tables.exponents[FLYING][type];
	return target.strongWinds && type === FLYING && value > 0 ? 0 : value;
}

function barred(tables, move, type) {
	if (move.scrappy && type === GHOST && (move.type === NORMAL || move.type === FIGHTING)) return false;
	return tables.immune[move.type][type];
}

function pairedPower(gen, move, target) {
	switch (move.powerKind) {
	case WEIGHT: {
		const step = BY_WEIGHT.find(([bound]) => target.weight >= bound);
		return step === undefined ? 20 : step[1];
	}
	case WEIGHT_RATIO: {
		const times = divide(move.weight, Math.max(target.weight, 1));
		return times >= 5 ? 120 : times >= 2 ? 20 + 20 * times : 40;
	}
	case SLOWER: return Math.min(divide(25 * target.speed, move.speed) + 1, 150);
	case FASTER: return SPEED_POWER[Math.min(divide(move.speed, target.speed), 4)];
	case TARGET_HP: {
		if (gen <= 4) return divide(target.hp * move.power, target.maxHp) + 1;
		const share = move.power * 100 * divide(target.hp * 4096, target.maxHp);
		return Math.max(divide(divide(share + 2047, 4096), 100), 1);
	}
	default: return move.power;
	}
}

function fixedDamage(move, target, rolls) {
	const { amount } = move, shown = divide(target.fullHp * target.hp, target.maxHp);
	const hp = target.dynamaxed ? Math.ceil(shown / 2) : shown; // a share is one of the hp before that
	switch (move.fixed) {
	case FLAT: case LEVEL: rolls.fill(amount); break;
	case TARGET_SHARE: rolls.fill(Math.max(amount === 4 ? divide(hp * 3, 4) : divide(hp, amount), 1)); break;
	case TARGET_ALL: rolls.fill(target.fullHp); break;
	case TO_USERS_HP: rolls.fill(Math.max(hp - move.hp, 0)); break;
	case USERS_HP: rolls.fill(move.hp); break;
	default: { // psywave
		const last = rolls.length - 1;
		for (let i = 0; i <= last; i++) rolls[i] = divide(amount * (last + 2 * i), 2 * last);
	}
	}
}
