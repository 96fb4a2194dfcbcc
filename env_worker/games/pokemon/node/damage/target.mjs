// One Pokemon as a target: all of the damage formula that does not depend on the attacker's move.

import { ICE, ONE, ROCK, chain, grounded, hasType, held, modify, removable, speed, staged, stagesOf } from './queries.mjs';

const MOST_GUARDS = 5;

export class Target {
	/** @param {string[]} screens reflect, lightscreen, auroraveil, luckychant; @param {boolean} mold its ability does not count */
	constructor(tables, known, screens, around, mold) {
		const foe = mold && !tables.unbreakable.has(known.ability) ? known.withoutAbility() : known;
		const { gen, stage } = tables, stages = stagesOf(gen, foe);
		this.low = 0;
		this.high = 0;
		this.addFacts(tables, foe, around);
		this.guards = [];
		const mods = this.apply(tables, rulesOf(tables, foe, screens), around);
		this.type1 = foe.types[0];
		this.type2 = foe.types.length > 1 ? foe.types[1] : 0;
		this.type3 = foe.types.length > 2 ? foe.types[2] : 0; // added to the other two
		this.setDefences(gen, foe, stages, screens, around, tables.facts);
		this.defenceMod = mods[stage.defence];
		this.specialMod = mods[stage.special_defence];
		this.attack = staged(gen, foe.stats[1], stages[0]);
		this.attackPlain = foe.stats[1];
		this.unaware = foe.ability === 'unaware';
		this.hp = foe.hp;
		this.maxHp = foe.maxHp;
		this.fullHp = foe.stats[0];
		this.dynamaxed = foe.effects.includes('DYNAMAX');
		this.weight = tables.weights.get(foe.species) ?? 0;
		this.speed = speed(tables, foe, stages, around);
		this.uncritical = tables.uncritical.has(foe.ability) || screens.includes('luckychant');
		this.wonderGuard = foe.ability === 'wonderguard';
		this.teraShell = foe.ability === 'terashell' && foe.hp >= foe.maxHp;
		this.tarShot = foe.effects.includes('TAR_SHOT');
		this.strongWinds = around.harsh === 3;
		this.terastallized = foe.terastallized;
	}

	add(fact) {
		this.low |= fact[0];
		this.high |= fact[1];
	}

	addFacts(tables, foe, around) {
		const { facts } = tables, { status } = foe, comatose = foe.ability === 'comatose';
		if (foe.hp >= foe.maxHp) this.add(facts.target_full);
		if (2 * foe.hp <= foe.maxHp) this.add(facts.target_half);
		if (status || comatose) this.add(facts.target_status);
		if (status === 'PSN' || status === 'TOX') this.add(facts.target_poisoned);
		else if (status === 'SLP' || comatose) this.add(facts.target_asleep);
		else if (status === 'PAR') this.add(facts.target_paralyzed);
		if (grounded(tables.gen, foe, around)) this.add(facts.target_grounded);
		if (removable(tables, foe)) this.add(facts.target_item);
	}

	/** Modifiers of its defences; what depends on the attacker's move goes to `guards`. */
	apply(tables, rules, around) {
		const { defence, special_defence: special } = tables.stage;
		const mods = new Array(tables.stageCount).fill(ONE);
		const low = this.low | around.low, high = this.high | around.high;
		for (const rule of rules) {
			if (rule.stage === defence || rule.stage === special) {
				if ((low & rule.low) === rule.low && (high & rule.high) === rule.high) {
					mods[rule.stage] = chain(mods[rule.stage], rule.mod);
				}
			} else if (this.guards.length < MOST_GUARDS) {
				this.guards.push(rule);
			}
		}
		return mods;
	}

	/** With stages and without; weather comes before other modifiers. */
	setDefences(gen, foe, stages, screens, around, facts) {
		const [, , defence, , special] = foe.stats;
		this.defence = staged(gen, defence, stages[1]);
		this.defencePlain = defence;
		this.specialDefence = staged(gen, special, stages[3]);
		this.specialPlain = special;
		if (gen >= 9 && isOn(around, facts.snow) && hasType(foe.types, ICE) && around.harsh === 0) {
			this.defence = modify(this.defence, 6144);
			this.defencePlain = modify(this.defencePlain, 6144);
		}
		if (gen >= 4 && isOn(around, facts.sand) && hasType(foe.types, ROCK)) {
			this.specialDefence = modify(this.specialDefence, 6144);
			this.specialPlain = modify(this.specialPlain, 6144);
		}
		if (gen <= 2 && (screens.includes('reflect') || foe.effects.includes('REFLECT'))) this.defence *= 2;
		if (gen <= 2 && (screens.includes('lightscreen') || foe.effects.includes('LIGHT_SCREEN'))) this.specialDefence *= 2;
	}
}

function isOn(around, fact) {
	return (around.low & fact[0]) !== 0 || (around.high & fact[1]) !== 0;
}

function rulesOf(tables, foe, screens) {
	const found = [...tables.rules('target_ability', foe.ability)];
	for (const effect of foe.effects) found.push(...tables.rules('target_effect', effect));
	const item = held(foe);
	for (const rule of tables.rules('target_item', item)) if (rule.suits(foe.species)) found.push(rule);
	if (item === 'eviolite' && tables.unfinished.has(foe.species)) found.push(...tables.eviolite);
	for (const screen of screens.includes('auroraveil') ? ['auroraveil'] : screens) {
		found.push(...tables.rules('screen', screen));
	}
	return found;
}
