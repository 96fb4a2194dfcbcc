// Events that change stages.

import { BOOSTS } from '../boosts.mjs';
import { ParseFailure } from '../dex.mjs';
import { integer, need, ofPokemon } from './event_parts.mjs';

function boost(mon, stat, amount) {
	const stage = mon.boosts.get(stat) + amount;
	mon.boosts[stat] = stage > 6 ? 6 : stage < -6 ? -6 : stage;
}

function setBoost(mon, [, , , stat, text]) {
	const amount = integer(text);
	if (Math.abs(amount) > 6) throw new ParseFailure(text);
	mon.boosts.get(stat);
	mon.boosts[stat] = amount;
}

function changeBoosts(change) {
	return ofPokemon(3, ({ boosts }) => {
		for (const stat of BOOSTS) boosts[stat] = change(boosts[stat]);
	});
}

/** The first takes over what the second has: Psych Up. */
function copyBoost(tracker, event) {
	need(event, 4);
	const target = tracker.getPokemon(event[3]);
	tracker.getPokemon(event[2]).boosts.copy(target.boosts);
}

function swapBoost(tracker, event) {
	need(event, 5);
	const source = tracker.getPokemon(event[2]).boosts, target = tracker.getPokemon(event[3]).boosts;
	const stats = event[4].includes('[from]') ? BOOSTS : event[4].split(', ');
	for (const stat of stats) {
		const stage = source.get(stat);
		source[stat] = target.get(stat);
		target[stat] = stage;
	}
}

function clearAll(tracker) {
	for (const mon of tracker.fighters()) mon.boosts.clear();
}

export const BOOST_EVENTS = {
	'-boost': ofPokemon(5, (mon, event) => boost(mon, event[3], integer(event[4]))),
	'-unboost': ofPokemon(5, (mon, event) => boost(mon, event[3], -integer(event[4]))),
	'-setboost': ofPokemon(5, setBoost),
	'-clearboost': ofPokemon(3, mon => mon.boosts.clear()),
	'-clearnegativeboost': changeBoosts(stage => (stage < 0 ? 0 : stage)),
	'-clearpositiveboost': changeBoosts(stage => (stage > 0 ? 0 : stage)),
	'-invertboost': changeBoosts(stage => 0 - stage),
	'-copyboost': copyBoost,
	'-swapboost': swapBoost,
	'-clearallboost': clearAll,
};
