// What can be known about events before a battle asks: which names are defined, and for each effect
// its callbacks with their order. The simulator looks all this up by building strings, anew for every event.

const DATA_TABLES = ['Abilities', 'Items', 'Conditions', 'Moves', 'Rulesets', 'Pokedex', 'FormatsData'];
const UNPREFIXED = new Set(['BeforeTurn', 'Update', 'Weather', 'WeatherChange', 'TerrainChange']);
const TYPE_SUB_ORDER = { Condition: 2, Weather: 5, Format: 5, Rule: 5, Ruleset: 5, Ability: 7, Item: 8 };
const NAME_SUB_ORDER = { 'Poison Touch': 6, 'Perish Body': 6, Stall: 9 };

/** The one copy of a string that V8 uses for property names: looking it up needs no hashing. */
export const intern = text => Object.keys({ [text]: 0 })[0];

/** One callback of one effect, and where it stands in line. */
class Callback {
	constructor(effect, name) {
		this.callback = effect[name];
		this.order = effect[`${name}Order`] || false;
		this.priority = effect[`${name}Priority`] || 0;
		const ownSubOrder = effect[`${name}SubOrder`] || 0;
		this.subOrder = ownSubOrder || subOrderOf(effect);
		this.dependsOnHolder = !ownSubOrder && effect.effectType === 'Condition';
		this.isSwitchIn = name.endsWith('SwitchIn');
		this.usesEffectOrder = this.isSwitchIn || name.endsWith('RedirectTarget');
		this.isMagicBounce = effect.effectType === 'Ability' && effect.name === 'Magic Bounce' &&
			name === 'onAllyTryHitSide';
	}
}

function subOrderOf(effect) {
	return (effect.effectType === 'Ability' && NAME_SUB_ORDER[effect.name]) || TYPE_SUB_ORDER[effect.effectType] || 0;
}

const profiles = new WeakMap();
const NONE = new Map();

/**
 * The callbacks of an effect by name, or null if the effect may still change: then ask the effect itself.
 * Frozen effects cannot change; rules and formats are not frozen, but the pinned version never assigns to one.
 * @returns {Map<string, Callback> | null}
 */
export function callbacksOf(effect) {
	let profile = profiles.get(effect);
	if (profile !== undefined) return profile;
	if (!Object.isFrozen(effect) && !isRule(effect)) return null;
	profile = NONE;
	for (const key in effect) {
		if (!key.startsWith('on') || effect[key] === undefined) continue;
		if (profile === NONE) profile = new Map();
		profile.set(intern(key), new Callback(effect, key));
	}
	profiles.set(effect, profile);
	return profile;
}

function isRule(effect) {
	return effect.effectType === 'Format' || effect.effectType === 'Rule' || effect.effectType === 'ValidatorRule';
}

/** The names one event looks for; '' = not defined in this dex. */
class EventNames {
	constructor(eventName, defined) {
		const name = prefix => {
			const text = intern(prefix + eventName);
			return defined.has(text) ? text : '';
		};
		this.prefixed = !UNPREFIXED.has(eventName);
		this.on = name('on');
		this.ally = this.prefixed ? name('onAlly') : '';
		this.any = this.prefixed ? name('onAny') : '';
		this.foe = this.prefixed ? name('onFoe') : '';
		this.source = this.prefixed ? name('onSource') : '';
		this.undefinedEverywhere = !(this.on || this.ally || this.any || this.foe || this.source);
	}
}

/** Everything known about the events of one dex (one mod of one generation). */
export class EventTable {
	constructor(dex) {
		this.defined = new Set();
		for (const table of DATA_TABLES) {
			for (const entry of Object.values(dex.data[table] ?? {})) this.addNames(entry);
		}
		// A Pokemon's ability or item without onSwitchIn answers SwitchIn with onStart.
		this.defined.add('onSwitchIn');
		this.events = new Map();
		this.conditions = new Map();
		this.abilities = new Map();
		this.items = new Map();
		this.dex = dex;
	}

	addNames(entry) {
		if (!entry || typeof entry !== 'object') return;
		for (const key in entry) if (key.startsWith('on')) this.defined.add(key);
		if (entry.condition) this.addNames(entry.condition);
	}

	/** True = every callback name of this effect is known, so that skipping unknown names is safe. */
	knows(effect) {
		for (const key in effect) {
			if (key.startsWith('on') && effect[key] !== undefined && !this.defined.has(key)) return false;
		}
		return true;
	}

	names(eventName) {
		let names = this.events.get(eventName);
		if (!names) {
			names = new EventNames(eventName, this.defined);
			this.events.set(intern(eventName), names);
		}
		return names;
	}

	condition(id) { return lookUp(this.conditions, this.dex.conditions, id); }
	ability(id) { return lookUp(this.abilities, this.dex.abilities, id); }
	item(id) { return lookUp(this.items, this.dex.items, id); }
}

/** An effect and its callbacks; `callbacks` is null if they may change. */
function lookUp(cache, source, id) {
	let found = cache.get(id);
	if (found) return found;
	const effect = source.getByID(id);
	found = { effect, callbacks: callbacksOf(effect) };
	if (found.callbacks) cache.set(intern(id), found);
	return found;
}
