// Small pure questions about one Pokemon.

export const ONE = 4096;
export const FIRE = 7, FLYING = 8, GHOST = 9, GROUND = 11, ICE = 12, NORMAL = 13, PSYCHIC = 15, ROCK = 16, WATER = 18,
	TYPELESS = 19, STELLAR = 20;
const GEN1_LOWERED = [100, 66, 50, 40, 33, 28, 25];
const CAP_GEN2 = 999;
const [OWN_TYPE, TERA_TYPE, WEATHER_TYPE, TERRAIN_TYPE, ITEM_TYPE, FIRST_TYPE, FORME_TYPE] = [0, 1, 2, 3, 4, 5, 6];
const STRUGGLES = 1 << 7;

export const divide = (a, b) => Math.floor(a / b);
/** value * mod / 4096, halves down: the games' rounding. */
export const modify = (value, mod) => Math.floor((value * mod + 2047) / 4096);
/** Two modifiers as one, halves up. */
export const chain = (first, second) => Math.floor((first * second + 2048) / 4096);

export function staged(gen, stat, stage) {
	if (gen <= 2) {
		const value = stage >= 0 ? divide(stat * (2 + stage), 2) : divide(stat * GEN1_LOWERED[-stage], 100);
		return Math.min(Math.max(value, 1), CAP_GEN2);
	}
	return stage >= 0 ? divide(stat * (2 + stage), 2) : divide(stat * 2, 2 - stage);
}

/** In gen 4 the ability Simple doubles the stages as they are read. */
export function stagesOf(gen, fighter) {
	if (gen !== 4 || fighter.ability !== 'simple') return fighter.stages;
	return fighter.stages.map(stage => Math.max(-6, Math.min(6, 2 * stage)));
}

/** The item that has an effect. */
export const held = fighter => fighter.ability === 'klutz' ? '' : fighter.item;

/** Whether any of a fact's bits hold. */
export const holds = (low, high, fact) => (low & fact[0]) !== 0 || (high & fact[1]) !== 0;

export function hasType(types, type) {
	return types.includes(type);
}

export function grounded(gen, fighter, around) {
	const { effects } = fighter, item = held(fighter);
	if (around.gravity || effects.includes('SMACK_DOWN') || item === 'ironball' ||
		(gen >= 4 && effects.includes('INGRAIN'))) return true;
	if (hasType(fighter.types, FLYING) && !effects.includes('ROOST')) return false;
	if (fighter.ability === 'levitate' || effects.includes('MAGNET_RISE') || effects.includes('TELEKINESIS')) return false;
	return item !== 'airballoon';
}

export function speed(tables, fighter, stages, around) {
	const { gen } = tables;
	let value = staged(gen, fighter.stats[5], stages[4]);
	const item = held(fighter), { ability, effects } = fighter;
	if (item === 'choicescarf') value = modify(value, 6144);
	else if (tables.heavyItems.has(item)) value = modify(value, 2048);
	const fact = tables.speedAbilities.get(ability);
	if (fact !== undefined && holds(around.low, around.high, fact)) value *= 2;
	if (effects.includes('PROTOSYNTHESISSPE') || effects.includes('QUARKDRIVESPE')) value = modify(value, 6144);
	if (fighter.status === 'PAR' && ability !== 'quickfeet') value = divide(value, gen >= 7 ? 2 : 4);
	return Math.max(value, 1);
}

/** Whether its ability gives it the type of the move that it uses; in gen 9 only until its types have changed. */
export function takesType(gen, ability, type1, type2, base1, base2, terastallized) {
	if ((ability !== 'protean' && ability !== 'libero') || terastallized) return false;
	return gen <= 8 || (type1 === base1 && (base2 === 0 || type2 === base2));
}

/** Whether knock off finds an item it can take. */
export function removable(tables, fighter) {
	const { item, species } = fighter;
	if (item === '' || (item !== 'eviolite' && tables.alwaysStuck.some(ending => item.endsWith(ending)))) return false;
	return !tables.stuck.some(([prefix, part]) => species.startsWith(prefix) && item.includes(part));
}

/** The move's type for this user, negative where an ability changed it. */
export function moveType(tables, user, move, around) {
	const { gen } = tables, how = move.typeKind;
	switch (how) {
	case WEATHER_TYPE: return firstOf(tables, tables.byWeather, around, move.type);
	case TERRAIN_TYPE: return grounded(gen, user, around) ? firstOf(tables, tables.byTerrain, around, move.type) : move.type;
	case ITEM_TYPE: return tables.itemTypes.get(held(user)) ?? move.type;
	case FIRST_TYPE: return user.types[0];
	case FORME_TYPE:
		for (const [asked, species, type] of tables.byForme) {
			if (asked === move.id && user.species.startsWith(species)) return type;
		}
		return move.type;
	case TERA_TYPE: if (user.terastallized) return user.tera; // fall through
	case OWN_TYPE: return byAbility(tables, user, move);
	default: return move.type;
	}
}

function byAbility(tables, user, move) {
	if (user.ability === 'liquidvoice' && holds(move.low, move.high, tables.facts.sound)) return WATER;
	const change = tables.retyping.get(user.ability);
	if (change !== undefined && tables.gen >= change[1] && (move.type === NORMAL || change[0] === NORMAL) &&
		!(move.bits & STRUGGLES)) return -change[0];
	return move.type;
}

function firstOf(tables, pairs, around, otherwise) {
	for (const [fact, type] of pairs) if (holds(around.low, around.high, tables.facts[fact])) return type;
	return otherwise;
}
