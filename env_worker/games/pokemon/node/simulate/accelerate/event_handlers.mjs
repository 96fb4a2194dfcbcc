// Finds the handlers of an event from the tables, in the order in which the simulator itself finds them.
// (The order matters: among equals it is what the random shuffle starts from.)

import { callbacksOf } from './event_tables.mjs';

const endNothing = () => {};

export class HandlerFinder {
	/** The simulator's own classes. */
	constructor({ Pokemon, Side, Field }) {
		this.Pokemon = Pokemon;
		this.Side = Side;
		this.Field = Field;
	}

	/** Appends the handler of one effect, exactly as the simulator's find...EventHandlers do. */
	push(battle, handlers, name, getKey, effect, callbacks, state, end, endCallArgs, effectHolder) {
		const found = callbacks === null ? null : callbacks.get(name);
		if (found === undefined && !(getKey && state[getKey])) return;
		const handler = { effect, callback: undefined, state, end, endCallArgs, effectHolder };
		if (!found) {
			handler.callback = effect[name];
			if (handler.callback === undefined && !(getKey && state[getKey])) return;
			handlers.push(battle.resolvePriority(handler, name));
			return;
		}
		handler.callback = found.callback;
		handler.order = found.order;
		handler.priority = found.priority;
		handler.subOrder = found.subOrder;
		if (found.dependsOnHolder) {
			const target = state?.target;
			if (target instanceof this.Side) handler.subOrder = state.isSlotCondition ? 3 : 4;
			else if (target instanceof this.Field) handler.subOrder = 5;
		}
		if (found.usesEffectOrder) handler.effectOrder = state?.effectOrder;
		if (effectHolder.getStat) {
			handler.speed = found.isMagicBounce ? effectHolder.getStat('spe', true, true) : effectHolder.speed;
			if (found.isSwitchIn) {
				handler.speed -= battle.speedOrder.indexOf(effectHolder.getFieldPositionValue()) /
					(battle.activePerHalf * 2);
			}
		}
		handlers.push(handler);
	}

	pushPokemon(battle, table, pokemon, name, getKey, handlers) {
		const status = table.condition(pokemon.status);
		this.push(battle, handlers, name, getKey, status.effect, status.callbacks, pokemon.statusState,
			pokemon.clearStatus, undefined, pokemon);
		for (const id in pokemon.volatiles) {
			const volatile = table.condition(id);
			this.push(battle, handlers, name, getKey, volatile.effect, volatile.callbacks, pokemon.volatiles[id],
				pokemon.removeVolatile, undefined, pokemon);
		}
		const ability = table.ability(pokemon.ability);
		this.push(battle, handlers, name, getKey, ability.effect, ability.callbacks, pokemon.abilityState,
			pokemon.clearAbility, undefined, pokemon);
		const item = table.item(pokemon.item);
		this.push(battle, handlers, name, getKey, item.effect, item.callbacks, pokemon.itemState,
			pokemon.clearItem, undefined, pokemon);
		const species = pokemon.baseSpecies;
		this.push(battle, handlers, name, undefined, species, callbacksOf(species), pokemon.speciesState,
			endNothing, undefined, pokemon);
		const { side } = pokemon;
		const slotConditions = side.slotConditions[pokemon.position];
		for (const id in slotConditions) {
			const condition = table.condition(id);
			this.push(battle, handlers, name, getKey, condition.effect, condition.callbacks, slotConditions[id],
				side.removeSlotCondition, [side, pokemon, condition.effect.id], pokemon);
		}
	}

	pushSide(battle, table, side, name, getKey, customHolder, handlers) {
		for (const id in side.sideConditions) {
			const condition = table.condition(id);
			this.push(battle, handlers, name, getKey, condition.effect, condition.callbacks, side.sideConditions[id],
				customHolder ? null : side.removeSideCondition, undefined, customHolder || side);
		}
	}

	pushField(battle, table, field, name, getKey, customHolder, handlers) {
		const holder = customHolder || field;
		for (const id in field.pseudoWeather) {
			const condition = table.condition(id);
			this.push(battle, handlers, name, getKey, condition.effect, condition.callbacks, field.pseudoWeather[id],
				customHolder ? null : field.removePseudoWeather, undefined, holder);
		}
		const weather = table.condition(field.weather);
		this.push(battle, handlers, name, getKey, weather.effect, weather.callbacks, field.weatherState,
			customHolder ? null : field.clearWeather, undefined, holder);
		const terrain = table.condition(field.terrain);
		this.push(battle, handlers, name, getKey, terrain.effect, terrain.callbacks, field.terrainState,
			customHolder ? null : field.clearTerrain, undefined, holder);
	}

	/** The event handlers for one target that is not a list, in the simulator's order. */
	find(battle, table, target, names, source) {
		const handlers = [];
		const bubblesDown = target instanceof this.Side;
		if (target instanceof this.Pokemon && (target.isActive || source?.isActive)) {
			this.findAround(battle, table, target, names, handlers);
			target = target.side;
		}
		if (source && names.source) this.pushPokemon(battle, table, source, names.source, undefined, handlers);
		if (target instanceof this.Side) {
			for (const side of battle.sides) {
				const own = side === target || side === target.allySide;
				if (bubblesDown) this.findActives(battle, table, side, own ? names.on : names.foe, names.any, handlers);
				if (side.n >= 2 && side.allySide) continue;
				const name = own ? names.on : names.foe;
				if (name) this.pushSide(battle, table, side, name, undefined, undefined, handlers);
				if (names.any) this.pushSide(battle, table, side, names.any, undefined, undefined, handlers);
			}
		}
		if (names.on) this.pushField(battle, table, battle.field, names.on, undefined, undefined, handlers);
		if (names.on) {
			this.push(battle, handlers, names.on, undefined, battle.format, callbacksOf(battle.format),
				battle.formatData, null, undefined, battle);
		}
		return handlers;
	}

	findAround(battle, table, target, names, handlers) {
		if (names.on) this.pushPokemon(battle, table, target, names.on, undefined, handlers);
		if (names.ally || names.any) {
			for (const ally of target.alliesAndSelf()) {
				if (names.ally) this.pushPokemon(battle, table, ally, names.ally, undefined, handlers);
				if (names.any) this.pushPokemon(battle, table, ally, names.any, undefined, handlers);
			}
		}
		if (names.foe || names.any) {
			for (const foe of target.foes()) {
				if (names.foe) this.pushPokemon(battle, table, foe, names.foe, undefined, handlers);
				if (names.any) this.pushPokemon(battle, table, foe, names.any, undefined, handlers);
			}
		}
	}

	findActives(battle, table, side, name, anyName, handlers) {
		if (!name && !anyName) return;
		for (const active of side.active) {
			if (name) this.pushPokemon(battle, table, active, name, undefined, handlers);
			if (anyName) this.pushPokemon(battle, table, active, anyName, undefined, handlers);
		}
	}
}
