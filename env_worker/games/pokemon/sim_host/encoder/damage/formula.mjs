// The damage formula of one weapon on one target: integers throughout, as each generation's games count.
// The same as damage/formula.py and damage/powers.py.

import { FIRE, FLYING, GHOST, GROUND, NORMAL, ONE, STELLAR, WATER, chain, divide, modify } from './state.mjs';
import { CRITS, EXPLODES, FOE_ATTACK, IGNORES_STAGES, STRUGGLES } from './weapons.mjs';

const FIGHTING = 6;
const WEIGHT = 1, WEIGHT_RATIO = 2, SLOWER = 3, FASTER = 4, TARGET_HP = 5;
const FLAT = 1, LEVEL = 2, TARGET_SHARE = 3, TARGET_ALL = 4, TO_USERS_HP = 5, USERS_HP = 6;
const FREEZE_DRY = 1, FLYING_PRESS = 2, THOUSAND_ARROWS = 3;
const TECHNICAL_POWER = 60;
const NO_FACT = [0, 0];
const IMMUNE_EFFECT = -100;
const BY_WEIGHT = [[2000, 120], [1000, 100], [500, 80], [250, 60], [100, 40]];
const SPEED_POWER = [40, 60, 80, 120, 150];

/** Every roll of a weapon on a target; 16 of them, 39 in gens 1 and 2. */
export class Formula {
	constructor(tables) {
		this.tables = tables;
		this.rolls = new Float64Array(tables.gen <= 2 ? 39 : 16);
		this.mods = new Float64Array(tables.stageCount);
	}

	/** Fills `rolls`; false where the target is immune and all of them are 0. */
	run(weapon, target) {
		const { tables, mods, rolls } = this, { gen, facts, stage } = tables;
		const effect = effectiveness(tables, weapon, target);
		const power = pairedPower(gen, weapon, target);
		let low = weapon.low | target.low, high = weapon.high | target.high;
		const strong = effect > 0 ? facts.super_effective : effect < 0 ? facts.resisted : NO_FACT;
		const quick = weapon.speed > target.speed ? facts.faster : weapon.speed < target.speed ? facts.slower : NO_FACT;
		const weak = power <= TECHNICAL_POWER ? facts.technical : NO_FACT;
		low |= strong[0] | quick[0] | weak[0];
		high |= strong[1] | quick[1] | weak[1];
		mods[stage.power] = weapon.powerMod;
		mods[stage.attack] = weapon.attackMod;
		mods[stage.final] = weapon.finalMod;
		mods[stage.early] = weapon.earlyMod;
		let immune = effect === IMMUNE_EFFECT || weapon.weather === 0;
		if (this.apply(weapon.waiting, low, high)) immune = true;
		if (this.apply(target.guards, low, high)) immune = true;
		if (immune && !(gen === 1 && weapon.fixed)) {
			rolls.fill(0);
			return false;
		}
		if (weapon.fixed) fixedDamage(weapon, target, rolls);
		else this.spread(weapon, target, effect === IMMUNE_EFFECT ? 0 : effect, power);
		return true;
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

	/** `effect`: doublings of the damage, or halvings rounded down. */
	spread(weapon, target, effect, power) {
		const { tables: { gen, stage }, mods } = this;
		power = Math.max(modify(power, mods[stage.power]), 1);
		if (weapon.lifted && power < 60) power = 60;
		let attack = modify(attackOf(weapon, target), mods[stage.attack]);
		let defence = defenceOf(weapon, target);
		if (gen <= 2 && (attack >= 256 || defence >= 256)) {
			attack = Math.max(divide(attack, 4) & 255, 1);
			defence = Math.max(divide(defence, 4) & 255, 1);
		}
		if (gen <= 4 && weapon.bits & EXPLODES) defence = Math.max(divide(defence, 2), 1);
		const damage = divide(divide(weapon.levelTerm * power * attack, defence), 50);
		if (gen <= 2) this.spread1(gen, weapon, effect, damage);
		else if (gen <= 4) this.spread3(gen, weapon, effect, damage);
		else this.spread5(gen, weapon, effect, damage);
	}

	spread5(gen, weapon, effect, damage) {
		const { rolls } = this, final = this.mods[this.tables.stage.final];
		damage = modify(damage + 2, weapon.weather);
		if (weapon.bits & CRITS) damage = gen >= 6 ? divide(damage * 3, 2) : damage * 2;
		const times = 2 ** effect, { stab, burned } = weapon;
		for (let i = 0; i < 16; i++) {
			let roll = Math.floor(modify(divide(damage * (85 + i), 100), stab) * times);
			if (burned) roll = modify(roll, 2048);
			rolls[i] = Math.max(modify(roll, final), 1);
		}
	}

	spread3(gen, weapon, effect, damage) {
		const { rolls } = this, { early, final } = this.tables.stage;
		if (weapon.burned) damage = modify(damage, 2048);
		damage = modify(modify(damage, this.mods[early]), weapon.weather);
		if (gen === 3) damage = Math.max(damage, weapon.special ? 0 : 1);
		damage += 2;
		if (weapon.middleMod > ONE) damage = divide(damage * 13, 10);
		const times = 2 ** effect, { stab } = weapon, mod = this.mods[final];
		for (let i = 0; i < 16; i++) {
			const before = gen === 4 ? divide(damage * (85 + i), 100) : damage;
			const roll = modify(Math.floor(modify(before, stab) * times), mod);
			rolls[i] = Math.max(gen === 4 ? roll : divide(roll * (85 + i), 100), 1);
		}
	}

	spread1(gen, weapon, effect, damage) {
		const { rolls } = this;
		if (this.mods[this.tables.stage.final] > ONE) damage = divide(damage * 11, 10);
		damage = Math.min(Math.max(damage, gen === 2 ? 1 : 0), 997) + 2;
		damage = divide(damage * weapon.weather, ONE);
		if (weapon.stab > ONE) damage += divide(damage, 2);
		damage = Math.floor(damage * 2 ** effect);
		for (let i = 0; i < 39; i++) rolls[i] = Math.max(damage > 1 ? divide(damage * (217 + i), 255) : damage, 1);
	}
}

function attackOf(weapon, target) {
	if (weapon.bits & FOE_ATTACK) return target.unaware ? target.attackPlain : target.attack;
	return target.unaware ? weapon.attackPlain : weapon.attack;
}

function defenceOf(weapon, target) {
	const staged = weapon.special ? target.specialDefence : target.defence;
	const plain = weapon.special ? target.specialPlain : target.defencePlain;
	let defence = weapon.bits & CRITS ? Math.min(staged, plain) : staged;
	if (weapon.bits & IGNORES_STAGES || weapon.unaware) defence = plain;
	const mod = chain(weapon.special ? target.specialMod : target.defenceMod, weapon.defenceMod);
	return Math.max(modify(defence, mod), 1);
}

/** log2 of the type multiplier, IMMUNE_EFFECT where there is no damage at all. */
function effectiveness(tables, weapon, target) {
	const { type, oddity } = weapon, afloat = (target.high & tables.facts.target_grounded[1]) === 0 &&
		(target.low & tables.facts.target_grounded[0]) === 0;
	const one = against(tables, weapon, target, target.type1), two = against(tables, weapon, target, target.type2);
	let effect = one + two + (target.tarShot && type === FIRE ? 1 : 0);
	if (type === STELLAR && target.terastallized) effect = 1;
	if (target.teraShell && effect >= 0) effect = -1;
	const flies = target.type1 === FLYING || target.type2 === FLYING;
	const immune = type === GROUND ? afloat && oddity !== THOUSAND_ARROWS :
		barred(tables, weapon, target.type1) || barred(tables, weapon, target.type2);
	if (immune || (target.wonderGuard && effect <= 0 && !(weapon.bits & STRUGGLES))) return IMMUNE_EFFECT;
	return oddity === THOUSAND_ARROWS && afloat && flies ? 0 : effect;
}

function against(tables, weapon, target, type) {
	let value = tables.exponents[weapon.type][type];
	if (weapon.oddity === FREEZE_DRY && type === WATER) value = 1;
	else if (weapon.oddity === FLYING_PRESS) value += tables.exponents[FLYING][type];
	return target.strongWinds && type === FLYING && value > 0 ? 0 : value;
}

function barred(tables, weapon, type) {
	if (weapon.scrappy && type === GHOST && (weapon.type === NORMAL || weapon.type === FIGHTING)) return false;
	return tables.immune[weapon.type][type];
}

function pairedPower(gen, weapon, target) {
	switch (weapon.powerKind) {
	case WEIGHT: {
		const step = BY_WEIGHT.find(([bound]) => target.weight >= bound);
		return step === undefined ? 20 : step[1];
	}
	case WEIGHT_RATIO: {
		const times = divide(weapon.weight, Math.max(target.weight, 1));
		return times >= 5 ? 120 : times >= 2 ? 20 + 20 * times : 40;
	}
	case SLOWER: return Math.min(divide(25 * target.speed, weapon.speed) + 1, 150);
	case FASTER: return SPEED_POWER[Math.min(divide(weapon.speed, target.speed), 4)];
	case TARGET_HP: {
		if (gen <= 4) return divide(target.hp * weapon.power, target.maxHp) + 1;
		const share = weapon.power * 100 * divide(target.hp * 4096, target.maxHp);
		return Math.max(divide(divide(share + 2047, 4096), 100), 1);
	}
	default: return weapon.power;
	}
}

function fixedDamage(weapon, target, rolls) {
	const { amount } = weapon, hp = divide(target.fullHp * target.hp, target.maxHp);
	switch (weapon.fixed) {
	case FLAT: case LEVEL: rolls.fill(amount); break;
	case TARGET_SHARE: rolls.fill(Math.max(amount === 4 ? divide(hp * 3, 4) : divide(hp, amount), 1)); break;
	case TARGET_ALL: rolls.fill(target.fullHp); break;
	case TO_USERS_HP: rolls.fill(Math.max(hp - weapon.hp, 0)); break;
	case USERS_HP: rolls.fill(weapon.hp); break;
	default: { // psywave
		const last = rolls.length - 1;
		for (let i = 0; i <= last; i++) rolls[i] = divide(amount * (last + 2 * i), 2 * last);
	}
	}
}
