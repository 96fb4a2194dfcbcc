// The encoder's estimate of damage between two Pokemon, before stages; damage/ has the exact formula.
//
// It is split in two: what depends on the user alone, as far as the seat can know, and what depends on the target alone.
// Stages, burn, weather and screens change from turn to turn and are applied elsewhere.

import { takesType } from '../damage/queries.mjs';
import { BY_ATTACK, BY_DEFENCE, BY_FOES_ATTACK, BY_NOTHING, BY_SPECIAL_ATTACK, ON_DEFENCE } from './field_state.mjs';

export const PHYSICAL = 0, SPECIAL = 1, STATUS = 2;
const AVERAGE_ROLL = 0.925;
const ROLLS = 16; // 0.85 to 1, all equally likely
const ASSUMED_POWER = 75; // of a foe's unrevealed STAB moves
const ASSUMED_CHANCE = 0.5; // that it has one
const TECHNICIAN_POWER = 60;
const EVEN = [1, 1];
const NO_OTHERS = [];

let profiles = 0;

/** One Pokemon as it is now; a new one is made when any of this changes. Second types are 0 where there is none. */
export class DamageProfile {
	constructor(gen, mon, terastallized) {
		this.number = ++profiles;
		this.base1 = mon.type1;
		this.base2 = mon.type2;
		this.type1 = 0;
		this.type2 = 0;
		this.type3 = 0; // added to the other two
		this.level = mon.level;
		this.stats = null; // hp, atk, def, spa, spd, spe, unboosted
		this.ability = '';
		this.item = '';
		this.terastallized = terastallized;
		this.tera = 0; // type it may still turn into
		this.moves = [];
		this.guess = false; // it may have STAB moves that it has not shown
		this.dynamaxed = mon.effects.has('DYNAMAX');
		this.slots = null; // MoveOffence|null of each move
		this.offences = null; // all damaging ones, and the guessed ones
		this.shares = false; // one of them takes a share of the present hp
		this.threats = null; // [MoveOffence, chance] of those that it may have, by the sets where they are known
		this.defence = null;
		this.attacks = new Map(); // target's number -> BestDamage
	}
}

/** Everything is known of an own Pokemon. */
export function ownProfile(tables, mon, entry) {
	const profile = new DamageProfile(tables.gen, mon, !!entry.terastallized);
	setTypes(profile, tables, mon);
	profile.stats = stats(tables.gen, mon, mon.maxHp || 1, entry.stats);
	profile.ability = entry.ability || (mon.temporaryAbility ?? entry.baseAbility ?? ''); // until gen 6 the base one only
	profile.item = entry.item;
	profile.tera = tables.typeRow(entry.teraType);
	profile.moves = entry.moves.slice(0, 4).map(name => tables.moveInfo(name));
	return setOffence(tables, profile, null);
}

/** What has been seen of a foe; stats as random battles give them out (even spread, neutral nature). */
export function foeProfile(tables, mon) {
	const profile = new DamageProfile(tables.gen, mon, mon.terastallized);
	setTypes(profile, tables, mon);
	profile.stats = stats(tables.gen, mon, estimatedHp(tables.gen, mon), null);
	profile.ability = mon.ability ?? '';
	profile.item = mon.item ?? '';
	for (const name of mon.moves.keys()) {
		if (profile.moves.length === 4) break;
		profile.moves.push(tables.moveInfo(name));
	}
	profile.guess = profile.moves.length < 4;
	const known = tables.sets && !mon.transformed ? tables.sets.of(mon, tables.abilities.get(mon.innateAbility) ?? 0) : null;
	return setOffence(tables, profile, known && known.likely);
}

/** The types as they defend now (a stellar Pokemon keeps its own). */
function setTypes(profile, tables, mon) {
	const { temporaryTypes, terastallizedType } = mon;
	if (mon.terastallized && terastallizedType && terastallizedType !== tables.stellar) {
		profile.type1 = terastallizedType;
	} else if (temporaryTypes.length) {
		profile.type1 = temporaryTypes[0];
		profile.type2 = temporaryTypes[1] ?? 0;
		profile.type3 = temporaryTypes[2] ?? 0;
	} else {
		profile.type1 = mon.type1;
		profile.type2 = mon.type2;
	}
}

/** Power Trick exchanges attack and defence. */
function stats(gen, mon, hp, known) {
	const found = untricked(gen, mon, hp, known);
	if (mon.effects.has('POWER_TRICK') !== (mon.copied !== null && mon.copied.tricked)) [found[1], found[2]] = [found[2], found[1]];
	return found;
}

/** `known`: the stats that a request gives, null for a foe. A copy has those of its model, but for the hp. */
function untricked(gen, mon, hp, known) {
	const { copied } = mon;
	if (copied !== null) known = copied.stats;
	if (known !== null) return [hp, known.atk, known.def, known.spa, known.spd, known.spe];
	const { atk, def, spa, spd, spe } = copied === null ? mon.speciesStats : copied.baseStats;
	const level = copied === null ? mon.level : copied.level, value = base => estimated(gen, base, level) + 5;
	return [hp, value(atk), value(def), value(spa), value(spd), value(spe)];
}

/** Gens 1-2: all DVs 15 and full stat experience; later: 31 IVs and 85 EVs each. */
function estimated(gen, base, level) {
	return Math.floor((2 * base + (gen <= 2 ? 30 + 63 : 31 + 21)) * level / 100);
}

function estimatedHp(gen, { speciesStats: { hp: base }, level, effects }) {
	if (base === 1) return 1; // Shedinja
	return (estimated(gen, base, level) + level + 10) * (effects.has('DYNAMAX') ? 2 : 1);
}

/** @param {Array | null} likely [MoveInfo, chance] of its hidden moves, null: not known */
function setOffence(tables, profile, likely) {
	profile.slots = profile.moves.map(
		move => move === null || move.category === STATUS ? null : moveOffence(tables, profile, move));
	profile.offences = profile.slots.filter(found => found !== null);
	profile.threats = profile.offences.map(offence => [offence, 1]);
	if (profile.guess) {
		profile.offences.push(assumed(profile, profile.type1));
		if (profile.type2) profile.offences.push(assumed(profile, profile.type2));
		if (profile.type3) profile.offences.push(assumed(profile, profile.type3));
	}
	if (likely === null) {
		for (const offence of profile.offences.slice(profile.threats.length)) profile.threats.push([offence, ASSUMED_CHANCE]);
	} else {
		for (const [move, chance] of likely) {
			if (move.category !== STATUS) profile.threats.push([moveOffence(tables, profile, move), chance]);
		}
	}
	profile.shares = profile.offences.some(offence => offence.share);
	profile.defence = defence(tables, profile);
	return profile;
}

/** Whose stages a move's damage follows. @param {object} move a MoveInfo */
export function stagingOf({ category, fixed, ownDefence, foeAttack, hitsDefence }) {
	if (fixed) return BY_NOTHING;
	if (ownDefence) return BY_DEFENCE;
	if (foeAttack) return BY_FOES_ATTACK;
	if (category === PHYSICAL) return BY_ATTACK;
	return hitsDefence ? ON_DEFENCE : BY_SPECIAL_ATTACK;
}

/** One damaging move of one user: everything that does not depend on the target. */
class MoveOffence {
	constructor(type, staging, stab, scale, defence, accuracy) {
		this.type = type;
		this.staging = staging;
		this.stab = stab;
		this.scale = scale;
		this.defence = defence; // 0 = meets defence, 1 = meets special defence
		this.accuracy = accuracy;
		this.foeAttack = false;
		this.fixed = false;
		this.flat = 0;
		this.fraction = 0;
		this.share = false;
		this.teraType = 0;
		this.teraStab = 1;
	}
}

function moveOffence(tables, user, move) {
	const blast = move.row === tables.teraBlast;
	const type = user.terastallized && blast ? user.type1 : move.type;
	const made = new MoveOffence(type, move.staging, move.fixed ? 1 : stab(tables.gen, user, type),
		scale(tables, user, move), move.hitsDefence ? 0 : 1, move.accuracy);
	made.foeAttack = move.foeAttack;
	made.fixed = move.fixed;
	made.flat = move.levelDamage ? user.level : move.flat;
	made.fraction = move.fraction;
	made.share = move.share;
	if (user.tera && !user.terastallized && !move.fixed) made.teraType = blast ? user.tera : type;
	made.teraStab = teraStab(user, made.teraType);
	return made;
}

function scale(tables, user, move) {
	const slot = move.category === PHYSICAL ? 0 : 1;
	let power = move.power;
	if (user.ability === 'technician' && power <= TECHNICIAN_POWER) power *= 1.5;
	power *= (tables.itemPower.get(user.item) ?? EVEN)[slot] * (tables.abilityPower.get(user.ability) ?? EVEN)[slot];
	const offence = move.foeAttack ? 1 : user.stats[move.ownDefence ? 2 : slot ? 3 : 1];
	return (0.4 * user.level + 2) * power * offence / 50;
}

/** An assumed STAB move of the better attacking category. */
function assumed(user, type) {
	const special = user.stats[1] >= user.stats[3] ? 0 : 1;
	const strength = (0.4 * user.level + 2) * ASSUMED_POWER * user.stats[special ? 3 : 1] / 50;
	return new MoveOffence(type, special ? BY_SPECIAL_ATTACK : BY_ATTACK, 1.5, strength, special, 1);
}

function has(type, type1, type2, type3 = 0) {
	return type === type1 || (type2 !== 0 && type === type2) || (type3 !== 0 && type === type3);
}

function stab(gen, user, type) {
	if (takesType(gen, user.ability, user.type1, user.type2, user.base1, user.base2, user.terastallized)) return 1.5;
	const now = has(type, user.type1, user.type2, user.type3);
	if (!user.terastallized) return now ? (user.ability === 'adaptability' ? 2 : 1.5) : 1;
	const born = has(type, user.base1, user.base2);
	return now ? (born ? 2 : 1.5) : (born ? 1.5 : 1);
}

function teraStab(user, type) {
	const born = has(type, user.base1, user.base2);
	return type === user.tera ? (born ? 2 : 1.5) : (born ? 1.5 : 1);
}

function defence(tables, body) {
	let [physical, special] = tables.bulk.get(body.ability) ?? EVEN;
	if (body.item === 'eviolite') {
		physical *= 1.5;
		special *= 1.5;
	} else if (body.item === 'assaultvest') {
		special *= 1.5;
	}
	const [hp, attack, defence, , specialDefence] = body.stats;
	return {
		type1: body.type1, type2: body.type2, type3: body.type3,
		defences: [defence * physical, specialDefence * special],
		attack, hp,
		perHp: AVERAGE_ROLL / hp,
		dynamaxed: body.dynamaxed,
		immune: tables.immunities.get(body.ability) ?? 0,
	};
}

/** A move that may be used on a target. */
class Threat {
	constructor(offence, chance, damage) {
		this.staging = offence.staging;
		this.fixed = offence.fixed;
		this.accuracy = offence.accuracy;
		this.chance = chance; // that its user has it
		this.damage = damage; // if it hits: fraction of full hp,
		this.share = offence.share; // or of the present hp
	}

	/** With stages, burn and screens. @param {Factors} user, target; @param {number} hp the target's, as a fraction */
	dealt(user, target, hp) {
		return this.damage * (this.share ? hp : user.on(target, this.staging));
	}
}

class BestDamage {
	constructor(physical, special, others, effectiveness, threats) {
		this.physical = physical; // by attack and special attack: fraction of full hp weighted by accuracy
		this.special = special;
		this.others = others; // the Threat of each move that follows other stages, or none
		this.effectiveness = effectiveness;
		this.threats = threats; // the Threat of each move that does damage
	}

	/** With stages, burn and screens. @param {Factors} user, target; @param {number} hp the target's, as a fraction */
	dealt(user, target, hp) {
		const { physical, special, others } = this;
		let most = Math.max(physical * user.physicalDealt * target.physicalTaken,
			special * user.specialDealt * target.specialTaken);
		for (let i = 0; i < others.length; i++) most = Math.max(most, others[i].dealt(user, target, hp) * others[i].accuracy);
		return most;
	}
}

/** One move against one target: fraction of full hp it takes if it hits. */
class MoveDamage {
	constructor(damage, effectiveness, stab, teraDamage) {
		this.damage = damage;
		this.effectiveness = effectiveness;
		this.stab = stab;
		this.teraDamage = teraDamage;
	}
}

export const NO_DAMAGE = new MoveDamage(0, 0, 0, 0);

/** The best of a profile's moves against another profile; cached as long as the user's profile lives. */
export function attack(chart, user, target) {
	let found = user.attacks.get(target.number);
	if (found === undefined) {
		found = bestDamage(chart, user, target.defence);
		user.attacks.set(target.number, found);
	}
	return found;
}

/** The move in one slot in detail. */
export function moveDamage(chart, user, slot, target) {
	const moveOffence = user.slots[slot];
	if (moveOffence === undefined || moveOffence === null) return NO_DAMAGE;
	const defence = target.defence;
	const multiplier = effectiveness(chart, moveOffence.type, defence);
	let teraDamage = 0;
	if (moveOffence.teraType) {
		const teraMultiplier = effectiveness(chart, moveOffence.teraType, defence);
		if (teraMultiplier) teraDamage = damage(moveOffence, defence, moveOffence.teraStab * teraMultiplier);
	}
	if (multiplier === 0) return new MoveDamage(0, 0, 0, teraDamage);
	return new MoveDamage(damage(moveOffence, defence, moveOffence.stab * multiplier), multiplier, moveOffence.stab - 1, teraDamage);
}

/** Chance that one of the rolls about `mean`, `step` apart, is at least `hp`. */
export function knockOutChance(mean, step, hp) {
	if (hp <= 0 || mean <= 0) return 0;
	if (step === 0) return mean >= hp ? 1 : 0;
	return Math.min(Math.max(Math.floor((mean - hp) / step + (ROLLS + 1) / 2), 0), ROLLS) / ROLLS;
}

/** Between the rolls of an ordinary move. */
export function rollStep(mean) {
	return mean / (100 * AVERAGE_ROLL);
}

function bestDamage(chart, user, target) {
	let physical = 0, special = 0, others = NO_OTHERS, best = 0;
	for (const moveOffence of user.offences) {
		const multiplier = effectiveness(chart, moveOffence.type, target);
		if (multiplier === 0) continue;
		const hit = damage(moveOffence, target, moveOffence.stab * multiplier), dealt = hit * moveOffence.accuracy;
		if (moveOffence.staging === BY_ATTACK) physical = Math.max(physical, dealt);
		else if (moveOffence.staging === BY_SPECIAL_ATTACK) special = Math.max(special, dealt);
		else others = [...others, new Threat(moveOffence, 1, hit)];
		if (multiplier > best) best = multiplier;
	}
	const threats = [];
	for (const [offence, chance] of user.threats) {
		const multiplier = effectiveness(chart, offence.type, target);
		if (multiplier) threats.push(new Threat(offence, chance, damage(offence, target, offence.stab * multiplier)));
	}
	return new BestDamage(physical, special, others, best, threats);
}

function damage(moveOffence, target, factor) {
	if (moveOffence.share) return target.dynamaxed ? moveOffence.fraction / 2 : moveOffence.fraction;
	if (moveOffence.fixed) return moveOffence.fraction || moveOffence.flat / target.hp;
	const scale = moveOffence.foeAttack ? moveOffence.scale * target.attack : moveOffence.scale;
	return (scale / target.defences[moveOffence.defence] + 2) * factor * target.perHp;
}

function effectiveness(chart, type, target) {
	if (target.immune && target.immune === type) return 0;
	const row = chart[type];
	if (!target.type2) return row[target.type1];
	const both = row[target.type1] * row[target.type2];
	return target.type3 ? both * row[target.type3] : both;
}
