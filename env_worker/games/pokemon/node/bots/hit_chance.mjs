// Expected share of a move's damage: accuracy, and moves that work only sometimes or have a cost.

import { holds } from '../damage/queries.mjs';

const ONLY_FRESH = new Set(['fakeout', 'firstimpression']);
const ON_SLEEPERS = 'dreameater', ASLEEP = 'snore', BLIZZARD = 'blizzard';
const STORMS = new Set(['thunder', 'hurricane', 'bleakwindstorm', 'wildboltstorm', 'sandsearstorm']);
const HALVED_IN_SUN = new Set(['thunder', 'hurricane']);
const AT_ONCE_IN = new Map([['solarbeam', 'sun'], ['solarblade', 'sun'], ['electroshot', 'rain']]);
const CHARGED = 0.5; // factor for the turn that it costs

/** 0 to 1. @param {string} name as requests spell it; '': an unseen attack */
export function hitChance(tables, name, user, target, around) {
	const move = tables.hitTermsOf(name);
	if (ONLY_FRESH.has(move.id) && !user.fresh) return 0;
	if ((move.id === ON_SLEEPERS && !target.asleep) || (move.id === ASLEEP && !user.asleep)) return 0;
	if (move.ohko && (target.fighter.level > user.fighter.level || target.fighter.ability === 'sturdy')) return 0;
	const is = weather => weather !== undefined && holds(around.low, around.high, tables.damage.facts[weather]);
	const charges = move.charges && user.fighter.item !== 'powerherb' && !is(AT_ONCE_IN.get(move.id));
	return move.price * (charges ? CHARGED : 1) * accuracy(move, user, target, is);
}

/** @param {(weather: string) => boolean} is whether it is that weather */
function accuracy(move, user, target, is) {
	if (move.sure || user.fighter.ability === 'noguard' || target.fighter.ability === 'noguard') return 1;
	if ((STORMS.has(move.id) && is('rain')) || (move.id === BLIZZARD && is('snow'))) return 1;
	let chance = HALVED_IN_SUN.has(move.id) && is('sun') ? 0.5 : move.accuracy;
	if (move.ohko) return chance;
	if (user.fighter.ability === 'compoundeyes') chance *= 1.3;
	const stage = Math.max(-6, Math.min(6, user.aim - target.evasion));
	return Math.min(1, chance * (3 + Math.max(stage, 0)) / (3 - Math.min(stage, 0)));
}
