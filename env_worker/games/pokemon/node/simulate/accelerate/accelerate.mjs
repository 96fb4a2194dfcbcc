// Makes the simulator faster without changing one byte of its output.
//
// About 30% of its time goes into looking up event callbacks that do not exist. Here event names are
// interned, undefined names are skipped, and the callbacks of each effect are collected once.
// Patched in memory, and only if the files it replaces parts of are byte for byte the ones it was written
// against. Where a mod or a battle replaces the event functions itself, that battle runs plain.

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

import { HandlerFinder } from './event_handlers.mjs';
import { EventTable, intern } from './event_tables.mjs';

const require = createRequire(import.meta.url);

/** sha256 over these files of the pinned version, in this order. */
const TOUCHED_FILES = ['battle.js', 'pokemon.js', 'side.js', 'field.js', 'dex-data.js', 'dex-conditions.js',
	'dex-abilities.js', 'dex-items.js', 'dex-formats.js', 'dex.js'];
const CHECKSUM = '797135e54dec2faae33195512f7f47ed909864c07ec2f62f0e6ab554b455bd92';

const BATTLE_FUNCTIONS = ['runEvent', 'singleEvent', 'getCallback', 'resolvePriority', 'findEventHandlers',
	'findPokemonEventHandlers', 'findSideEventHandlers', 'findFieldEventHandlers', 'findBattleEventHandlers', 'modify'];
const POKEMON_FUNCTIONS = ['getStatus', 'getAbility', 'getItem'];
const FIELD_FUNCTIONS = ['getWeather', 'getTerrain'];

const MAX_DEPTH = 8; // the simulator's own limits: beyond them it stops the battle
const MAX_LINES = 1000;

const TABLE = Symbol('event table'); // on a battle: its EventTable, or null = runs plain
const FOUND = Symbol('handlers found'); // on a battle: handed from runEvent to findEventHandlers

/** @returns {{accelerated: boolean, note: string}} */
export function accelerate(sim, folder) {
	const hash = createHash('sha256');
	for (const file of TOUCHED_FILES) hash.update(fs.readFileSync(path.join(folder, file)));
	if (hash.digest('hex') !== CHECKSUM) {
		return { accelerated: false, note: 'this simulator is not the version that the acceleration is made for' };
	}
	const { Field } = require(path.join(folder, 'field.js'));
	patchBattle(sim.Battle.prototype, new HandlerFinder({ Pokemon: sim.Pokemon, Side: sim.Side, Field }));
	return { accelerated: true, note: '' };
}

const tables = new WeakMap();

function tableOf(battle) {
	const table = battle[TABLE];
	return table === undefined ? (battle[TABLE] = chooseTable(battle)) : table;
}

function chooseTable(battle) {
	const { dex, format } = battle;
	const { Scripts } = dex.data;
	const own = (object, names) => object && names.some(name => Object.hasOwn(object, name));
	if (battle.debugMode || own(battle, BATTLE_FUNCTIONS) ||
		own(Scripts.pokemon, POKEMON_FUNCTIONS) || own(format.pokemon, POKEMON_FUNCTIONS) ||
		own(Scripts.field, FIELD_FUNCTIONS) || own(format.field, FIELD_FUNCTIONS)) return null;
	let table = tables.get(dex);
	if (!table) tables.set(dex, table = new EventTable(dex));
	const rules = [...battle.ruleTable.keys()].filter(rule => !'+*-!'.includes(rule.charAt(0)));
	const isKnown = [format, ...rules.map(rule => dex.formats.get(rule))].every(effect => table.knows(effect));
	return isKnown ? table : null;
}

function patchBattle(prototype, finder) {
	patchFinders(prototype, finder);
	patchRunEvent(prototype, finder);
	patchSingleEvent(prototype);
	patchEndTurn(prototype);
}

function patchFinders(prototype, finder) {
	const stock = pick(prototype, BATTLE_FUNCTIONS);

	prototype.findEventHandlers = function (target, eventName, source) {
		const found = this[FOUND];
		if (found) {
			this[FOUND] = null;
			return found;
		}
		const table = tableOf(this);
		if (table === null || this.events || eventName === 'SwitchIn') {
			return stock.findEventHandlers.call(this, target, eventName, source);
		}
		return findAll(finder, this, table, target, eventName, source);
	};
	prototype.findPokemonEventHandlers = function (pokemon, callbackName, getKey) {
		const table = tableOf(this);
		if (table === null || callbackName === 'onSwitchIn') {
			return stock.findPokemonEventHandlers.call(this, pokemon, callbackName, getKey);
		}
		const handlers = [];
		if (getKey || table.defined.has(callbackName)) {
			finder.pushPokemon(this, table, pokemon, callbackName, getKey, handlers);
		}
		return handlers;
	};
	prototype.findSideEventHandlers = function (side, callbackName, getKey, customHolder) {
		const table = tableOf(this);
		if (table === null) return stock.findSideEventHandlers.call(this, side, callbackName, getKey, customHolder);
		const handlers = [];
		finder.pushSide(this, table, side, callbackName, getKey, customHolder, handlers);
		return handlers;
	};
	prototype.findFieldEventHandlers = function (field, callbackName, getKey, customHolder) {
		const table = tableOf(this);
		if (table === null) return stock.findFieldEventHandlers.call(this, field, callbackName, getKey, customHolder);
		const handlers = [];
		finder.pushField(this, table, field, callbackName, getKey, customHolder, handlers);
		return handlers;
	};
}

/** Every handler of an event, also for a list of targets. */
function findAll(finder, battle, table, target, eventName, source) {
	const names = table.names(eventName);
	if (!Array.isArray(target)) return names.undefinedEverywhere ? [] : finder.find(battle, table, target, names, source);
	const handlers = [];
	if (names.undefinedEverywhere) return handlers;
	for (let index = 0; index < target.length; index++) {
		for (const handler of finder.find(battle, table, target[index], names, source)) {
			handler.target = target[index];
			handler.index = index;
			handlers.push(handler);
		}
	}
	return handlers;
}

/** An event without handlers ends where the simulator's runEvent would end; all others go there. */
function patchRunEvent(prototype, finder) {
	const stockRunEvent = prototype.runEvent;

	prototype.runEvent = function (eventid, target, source, sourceEffect, relayVar, onEffect, fastExit) {
		const table = tableOf(this);
		if (table === null || this.events || eventid === 'SwitchIn' || this.eventDepth >= MAX_DEPTH) {
			return stockRunEvent.call(this, eventid, target, source, sourceEffect, relayVar, onEffect, fastExit);
		}
		const handlers = findAll(finder, this, table, target || this, eventid,
			source instanceof finder.Pokemon ? source : null);
		if (handlers.length || onEffect) {
			this[FOUND] = handlers;
			return stockRunEvent.call(this, eventid, target, source, sourceEffect, relayVar, onEffect, fastExit);
		}
		if (relayVar === undefined || relayVar === null) relayVar = true;
		if (Array.isArray(target)) return Array.isArray(relayVar) ? relayVar : target.map(() => true);
		if (typeof relayVar === 'number' && relayVar === Math.abs(Math.floor(relayVar))) {
			return this.modify(relayVar, 1);
		}
		return relayVar;
	};
}

/** An effect without the callback hands the relayed value back, whatever else holds. */
function patchSingleEvent(prototype) {
	const stockSingleEvent = prototype.singleEvent;

	prototype.singleEvent = function (eventid, effect, state, target, source, sourceEffect, relayVar, customCallback) {
		let callback = customCallback;
		if (!callback && tableOf(this) !== null) {
			callback = effect[callbackName(eventid)];
			if (callback === undefined && this.eventDepth < MAX_DEPTH && this.log.length - this.sentLogPos <= MAX_LINES) {
				return relayVar === undefined ? true : relayVar;
			}
		}
		return stockSingleEvent.call(this, eventid, effect, state, target, source, sourceEffect, relayVar, callback);
	};
}

/**
 * At the end of a turn the simulator copies every move of every active Pokemon, to ask each for
 * DisableMove, which hardly any move has. Here only those are copied; the function is its own text otherwise.
 */
function patchEndTurn(prototype) {
	const copy = 'this.dex.getActiveMove(moveSlot.id)';
	const text = prototype.endTurn.toString();
	if (text.split(copy).length !== 2) throw new Error('endTurn is not the one this was written for');
	const build = new Function('moveToAsk', `return ({ ${text.replace(copy, 'moveToAsk(this.dex, moveSlot.id)')} }).endTurn;`);
	prototype.endTurn = build((dex, id) => {
		const move = dex.moves.get(id);
		return move.onDisableMove === undefined ? move : dex.getActiveMove(id);
	});
}

const callbackNames = new Map();

function callbackName(eventid) {
	let name = callbackNames.get(eventid);
	if (name === undefined) callbackNames.set(eventid, name = intern(`on${eventid}`));
	return name;
}

const pick = (object, names) => Object.fromEntries(names.map(name => [name, object[name]]));
