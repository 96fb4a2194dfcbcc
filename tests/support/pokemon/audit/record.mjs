// Plays seeded battles on the pinned simulator and prints what each seat was sent beside the simulator's own state.
//   node record.mjs < JOBS
// In, JSON lines: {"tables": encoder_tables(gen, extras, doubles)} for the battles that follow, and battles:
//   {"format", "seed": [a, b, c, d], "team_seeds": [seed, seed], "teams": [packed|null, packed|null], "turns": most,
//    "choices": {"p1": [text, ...], "p2": [...]} | null}; without choices both seats choose at random.
// Out, JSON lines, one a request: {"seat", "lines", "request", "truths", "rows", "picks"}; then {"end": turns}.
//   A request is a list of decisions: the picks of a team preview, or those of the slots that are asked.
//   "truths": the state at each; "rows": at each the slot that decides, and the host's observation (float16, base64);
//   "picks": what is chosen at each, a Pokemon's place in the team at a preview, otherwise a word of the simulator's.
//
// The state is read from the simulator's objects, never from the protocol. What these do not keep (when an effect
// began, who has come out in which order) is noted as the simulator makes it.

import { once } from 'node:events';
import { createInterface } from 'node:readline';

import { EncoderTables } from '../../../../env_worker/games/pokemon/node/encoder/host_tables.mjs';
import { HostedBattle } from '../../../../env_worker/games/pokemon/node/simulate/hosted_battle.mjs';
import { randomChoice } from '../../../../env_worker/games/pokemon/node/measure/random_choice.mjs';
import { seededRandom } from '../../../../env_worker/games/pokemon/node/random.mjs';
import { SeatView } from '../../../../env_worker/games/pokemon/node/follow/seat_view.mjs';
import { loadSimulator } from '../../../../env_worker/games/pokemon/node/simulate/simulator.mjs';

const { sim } = loadSimulator(true);
const GIMMICKS = ['', ' mega', ' ultra', ' zmove', ' dynamax', ' terastallize'];
const TARGETS = ['', ' 1', ' 2', ' -1', ' -2'];
const SWITCH_SHARE = 0.2; // of the turns of singles that leave a choice

const startTurn = new WeakMap(); // state of an effect -> the turn in which it was made
const byRest = new WeakSet(); // state of a sleep that Rest began
const sleepLength = new WeakMap(); // state of a sleep -> its length in turns
const appeared = new WeakMap(); // side -> its Pokemon as they look from outside, in order of appearance
const spent = new WeakSet(); // sides that have used their gimmick
const terastallized = new WeakSet(); // sides that have done it
const swapped = new WeakSet(); // Pokemon that Skill Swap has changed since they came in
const pressing = new WeakSet(), borrowing = new WeakSet(); // sides
const MIXING = new Set(['move: Guard Split', 'move: Power Split', 'move: Speed Swap']);
const mixed = new WeakSet(); // Pokemon on the field whose stats these moves may have changed
const powering = new WeakSet(); // sides that have used Z-moves or max moves
const disguised = new WeakSet(); // Pokemon that another one has looked like
const copies = new WeakSet(); // Pokemon that have transformed since they came in: Zen Mode, when it is lost, denies it

const { initEffectState, add } = sim.Battle.prototype;
sim.Battle.prototype.initEffectState = function (...args) {
	const state = initEffectState.apply(this, args);
	startTurn.set(state, this.turn ?? 0);
	return state;
};
sim.Battle.prototype.add = function (...parts) {
	const [kind, pokemon] = parts;
	if (kind === 'switch' || kind === 'drag' || kind === 'replace') {
		const { side, illusion } = pokemon, shown = illusion ?? pokemon;
		if (!appeared.has(side)) appeared.set(side, new Set());
		appeared.get(side).add(shown);
		if (illusion) disguised.add(illusion).add(pokemon);
	}
	if (kind === '-status' && parts[3] === '[from] move: Rest') byRest.add(pokemon.statusState); // asleep before, in gen 2
	if (kind === '-activate' && MIXING.has(parts[2])) for (const mon of this.getAllActive()) mixed.add(mon);
	if (['-mega', '-burst', '-zpower', '-terastallize'].includes(kind)) spent.add(pokemon.side);
	if (kind === '-start' && parts[2] === 'Dynamax') spent.add(pokemon.side);
	if (kind === '-terastallize') terastallized.add(pokemon.side);
	if (kind === '-zpower' || (kind === '-start' && parts[2] === 'Dynamax')) powering.add(pokemon.side);
	if (turns.has(this)) {
		readLosses(this);
		noteLine(this, ...parts);
	}
	return add.apply(this, parts);
};
const { setStatus } = sim.Pokemon.prototype;
sim.Pokemon.prototype.setStatus = function (status, source, sourceEffect, ...rest) {
	const done = setStatus.call(this, status, source, sourceEffect, ...rest);
	if (done && this.status === 'slp') {
		sleepLength.set(this.statusState, this.statusState.time);
		if ((sourceEffect ?? this.battle.effect)?.id === 'rest') byRest.add(this.statusState);
	}
	return done;
};

const lastUsed = new WeakMap(); // Pokemon -> the move that it used last since it came in
const flinched = new WeakSet(); // gen 1: Pokemon that a flinch has spared the recharge
const { moveUsed, clearVolatile, removeVolatile, transformInto } = sim.Pokemon.prototype;
sim.Pokemon.prototype.transformInto = function (model, ...rest) {
	if (mixed.has(model)) mixed.add(this);
	const done = transformInto.call(this, model, ...rest);
	if (done) copies.add(this);
	return done;
};
sim.Pokemon.prototype.removeVolatile = function (status) {
	if (status === 'mustrecharge' && this.battle.effect.id === 'flinch' && status in this.volatiles) flinched.add(this);
	return removeVolatile.call(this, status);
};
sim.Pokemon.prototype.moveUsed = function (move, ...rest) {
	const ids = move.baseMove ? [move.id, move.baseMove] : [move.id]; // a max move and what it was made from
	flinched.delete(this);
	lastUsed.set(this, { ids, powered: Boolean(move.isZ || move.isMax) });
	return moveUsed.call(this, move, ...rest);
};
const { skillSwap, setActiveMove } = sim.Battle.prototype;
sim.Battle.prototype.setActiveMove = function (move, user, ...rest) {
	if (move?.isMax) lastUsed.get(user)?.ids.push(move.id); // another one where something changes the type
	return setActiveMove.call(this, move, user, ...rest);
};
sim.Battle.prototype.skillSwap = function (source, target) {
	swapped.add(source).add(target);
	return skillSwap.call(this, source, target);
};
sim.Pokemon.prototype.clearVolatile = function (...args) {
	swapped.delete(this);
	mixed.delete(this);
	copies.delete(this);
	lastUsed.delete(this);
	flinched.delete(this);
	return clearVolatile.apply(this, args);
};

/**
 * What one side did and met in a turn. told: a line says that it was kept from moving; lost: hp fractions, exact and as
 * the other side sees them.
 */
class TurnOfSide {
	constructor() {
		Object.assign(this, { first: false, moved: false, prevented: false, told: false, missed: false, failed: false, critical: false });
		Object.assign(this, { switched: false, fainted: false, lost: { exact: 0, shown: 0 } });
	}
}

const turns = new WeakMap(); // battle -> the turn of both sides, from their choices on; null before the first
const shares = new WeakMap(); // Pokemon -> its hp fractions when they were read last

function readShares(mon) {
	const [, left, all] = mon.getHealth().shared.match(/^(\d+)\/(\d+)/) ?? [0, 0, 1];
	return { exact: mon.hp / mon.maxhp, shown: left / all };
}

/** Counts what hp were lost; read behind each line, so what is lost and healed between two lines does not count. */
function readLosses(battle) {
	for (const side of battle.sides) {
		for (const mon of side.pokemon) {
			const now = readShares(mon), before = shares.get(mon) ?? now, { lost } = turns.get(battle)[side.n];
			for (const how of ['exact', 'shown']) lost[how] += Math.max(before[how] - now[how], 0);
			shares.set(mon, now);
		}
	}
}

const { commitChoices, runAction } = sim.Battle.prototype;
sim.Battle.prototype.commitChoices = function () {
	if (this.requestState === 'move') {
		turns.set(this, this.sides.map(() => new TurnOfSide()));
		readLosses(this);
	}
	return commitChoices.call(this);
};
sim.Battle.prototype.runAction = function (action) {
	const { choice, pokemon, target } = action, leaves = choice === 'switch' && pokemon.hp > 0;
	const done = runAction.call(this, action);
	if (leaves && target.isActive) turns.get(this)[pokemon.side.n].switched = true;
	return done;
};

/** A Pokemon is called upon to move; it is kept from it where it does not come to use a move. */
function noteMoves(battle) {
	const { actions } = battle, { runMove, useMove } = actions;
	let used = false;
	const begin = pokemon => {
		const turn = turns.get(battle);
		if (!turn.some(side => side.moved)) turn[pokemon.side.n].first = true;
		turn[pokemon.side.n].moved = true;
	};
	actions.runMove = function (move, pokemon, ...rest) {
		const outer = used, side = turns.get(battle)[pokemon.side.n];
		begin(pokemon);
		used = false;
		runMove.call(this, move, pokemon, ...rest);
		if (!used) side.prevented = true;
		used = outer;
	};
	actions.useMove = function (move, pokemon, ...rest) {
		begin(pokemon); // until gen 4 Pursuit of who leaves begins here
		used = true;
		return useMove.call(this, move, pokemon, ...rest);
	};
}

/** What a line says of the move that is being used. */
function noteLine(battle, kind, pokemon, detail, cause) {
	const turn = turns.get(battle), user = battle.activeMove && battle.activePokemon;
	if (kind === 'faint') turn[pokemon.side.n].fainted = true;
	if (kind === '-miss') turn[pokemon.side.n].missed = true;
	if (kind === '-crit') turn[user.side.n].critical = true;
	if (user && (kind === '-immune' || (kind === '-fail' && detail !== 'unboost'))) turn[user.side.n].failed = true;
	if (user && kind === 'cant' && pokemon !== user) turn[user.side.n].failed = true; // another one's ability stops it
	if (user && kind === 'cant' && pokemon === user) turn[user.side.n].prevented = true;
	if (user === pokemon && (kind === 'cant' || kind === '-curestatus' || cause === '[from] confusion')) turn[user.side.n].told = true;
}

/** Numbers and texts of an effect's state; what points at others is left out. */
function plain(state) {
	const found = { start: startTurn.get(state) };
	for (const key in state) if (['number', 'string', 'boolean'].includes(typeof state[key])) found[key] = state[key];
	return found;
}

/** Turns lost to sleep; Rest sets a length of its own after the status has begun. */
function sleptTurns({ status, statusState: state }) {
	if (status !== 'slp') return 0;
	return (state.startTime ?? (byRest.has(state) ? 3 : sleepLength.get(state))) - state.time;
}

const states = effects => Object.fromEntries(Object.entries(effects).map(([id, state]) => [id, plain(state)]));

function pokemonTruth(mon, order) {
	const entry = mon.getSwitchRequestData();
	return {
		name: mon.name, species: mon.species.id, base_species: mon.baseSpecies.id, base_form: sim.toID(mon.baseSpecies.baseSpecies), level: mon.level,
		ability: mon.ability, base_ability: mon.baseAbility, item: mon.item,
		moves: entry.moves, base_moves: mon.baseMoves, slots: mon.moveSlots.map(({ id, pp, maxpp }) => [id, pp, maxpp]),
		base_slots: mon.baseMoveSlots.map(({ id, pp, maxpp }) => [id, pp, maxpp]),
		types: mon.getTypes(), added_type: mon.addedType, tera_type: mon.teraType ?? '', terastallized: mon.terastallized ?? '',
		hp: mon.hp, max_hp: mon.maxhp, shared_hp: mon.getHealth().shared, fainted: mon.fainted, active: mon.isActive,
		position: mon.position, status: mon.status, status_state: plain(mon.statusState), resting: byRest.has(mon.statusState), slept: sleptTurns(mon),
		stats: ['atk', 'def', 'spa', 'spd', 'spe'].map(stat => mon.storedStats[stat]), boosts: mon.boosts,
		volatiles: states(mon.volatiles), last_moves: lastUsed.get(mon)?.ids ?? [], powered: lastUsed.get(mon)?.powered ?? false, active_turns: mon.activeTurns,
		transformed: mon.transformed || copies.has(mon), illusion: mon.illusion ? order.indexOf(mon.illusion) : -1,
		disguised: disguised.has(mon), flinched: flinched.has(mon),
		swapped: swapped.has(mon), mixed: mixed.has(mon),
	};
}

function sideTruth(side, order) {
	for (const mon of side.pokemon) {
		if (mon.ability === 'pressure' && mon.previouslySwitchedIn) (mon.baseAbility === 'pressure' ? pressing : borrowing).add(side);
	}
	if (borrowing.has(side)) pressing.add(side);
	return {
		pokemon: order.map(mon => pokemonTruth(mon, order)),
		appeared: [...appeared.get(side) ?? []].map(mon => order.indexOf(mon)),
		slots: side.active.map(mon => mon ? order.indexOf(mon) : -1), // who stands where
		line_up: side.pokemon.map(mon => order.indexOf(mon)), // as commands number them
		conditions: states(side.sideConditions),
		spent: spent.has(side),
		terastallized: terastallized.has(side),
		powers: powering.has(side),
		presses: pressing.has(side), // one of them has Pressure, or has had it
		borrows_pressure: borrowing.has(side), // and it was another one's
	};
}

/** Whether the simulator takes a choice; the side is as before afterwards. */
function accepts(side, choice) {
	const flags = side.active.map(mon => mon?.switchFlag);
	side.clearChoice();
	side.emitChoiceError = message => {
		side.choice.error = message;
		return false;
	};
	side.send = () => {};
	const accepted = side.choose(choice);
	delete side.emitChoiceError;
	delete side.send;
	side.active.forEach((mon, slot) => { if (mon) mon.switchFlag = flags[slot]; }); // a revival takes it back
	side.clearChoice();
	return accepted;
}

/** The slot that is asked first; a slot that cannot act passes by itself. */
const askedSlot = side => Math.max(side.active.findIndex(mon => side.requestState === 'switch' ? mon?.switchFlag :
	mon && !mon.fainted && !mon.volatiles.commanding), 0);

/** The one thing that a slot can do where the simulator leaves no choice of moves, '' otherwise. */
function lockOf(side, slot) {
	const mon = side.active[slot];
	if (side.requestState !== 'move') return '';
	const { moves } = mon.getMoveRequestData();
	return moves.length === 1 && (mon.getLockedMove() || !mon.getMoves().length || moves[0].id !== mon.moveSlots[0].id ||
		mon.moveSlots.length > 1) ? moves[0].id : '';
}

/** All that the slot could say. What a locked or dynamaxed Pokemon says of a gimmick is not heard. */
function words(side, slot) {
	const targets = side.active.length > 1 ? TARGETS : [''], mon = side.active[slot];
	const gimmicks = lockOf(side, slot) ? [''] : GIMMICKS.filter(word => word !== ' dynamax' || !mon.volatiles.dynamax);
	const found = side.pokemon.map((_, place) => `switch ${place + 1}`);
	for (let move = 1; move <= 4; move++) {
		for (const gimmick of gimmicks) for (const target of targets) found.push(`move ${move}${target}${gimmick}`);
	}
	return side.active.length > 1 ? ['pass', ...found] : found;
}

/** What the simulator takes from a slot; `before`: what the left one has chosen, '' where that is asked. */
const legal = (side, slot, before) => words(side, slot).filter(choice => accepts(side, before ? `${before}, ${choice}` : choice));

class Seat {
	constructor() {
		this.told = null; // [request number, lines, request] of an open request
		this.view = null;
	}
}

function play(job, tables) {
	const seats = [new Seat(), new Seat()];
	const outbox = {
		record: (id, seat, number, lines, request) => { seats[seat].told = request && [number, lines, request]; },
		error: (id, seat, number, kind) => {
			if (kind !== 'unavailable') throw new Error(`${kind} choice in ${JSON.stringify(job)}`);
		},
		end() {},
		unparsed() {},
	};
	const command = { b: 0, format: job.format, seed: job.seed, team_seeds: job.team_seeds, teams: job.teams };
	const hosted = new HostedBattle(sim, command, outbox);
	const { battle } = hosted;
	noteMoves(battle);
	const random = seededRandom(job.seed.reduce((mixed, part) => Math.imul(mixed, 31) + part, 7));
	const orders = [null, null];
	seats.forEach((seat, index) => { seat.view = new SeatView(tables, index); });
	while (!hosted.ended && battle.turn <= job.turns) {
		const asked = seats.map((seat, index) => ({ seat, index })).filter(({ seat }) => seat.told);
		if (!asked.length) throw new Error(`no seat is asked for a choice in ${JSON.stringify(job)}`);
		battle.sides.forEach((side, n) => { if (!side.activeRequest?.teamPreview) orders[n] ??= [...side.pokemon]; });
		const choices = asked.map(({ seat, index }) => {
			const [number, lines, request] = seat.told;
			const script = job.choices?.[`p${index + 1}`];
			const chosen = script ? script[number - 1] ?? 'default' : null;
			const shown = request.teamPreview ? preview(battle, seat, index, chosen, random) :
				turn(battle, seat, index, orders, chosen, random);
			const { choice, ...record } = shown;
			process.stdout.write(`${JSON.stringify({ seat: index, lines, request, ...record })}\n`);
			return choice;
		});
		asked.forEach(({ seat, index }, place) => {
			const [number] = seat.told;
			seat.told = null;
			hosted.choose(index, number, choices[place]);
		});
	}
	for (const { view } of seats) {
		if (view.tracker.parseErrors.size) throw new Error(`lines not taken: ${[...view.tracker.parseErrors.keys()]}`);
	}
	process.stdout.write(`${JSON.stringify({ end: battle.turn })}\n`);
	hosted.destroy();
}

/** A random choice, half of the time with a gimmick where one is possible; it switches only now and then. */
function chosenOf(request, accepted, singles, random) {
	if (!singles) return randomChoice(request, random);
	const pick = choices => choices[Math.floor(random() * choices.length)];
	const switches = accepted.filter(choice => choice.startsWith('switch'));
	const moves = accepted.filter(choice => choice.startsWith('move'));
	if (!moves.length || (switches.length && random() < SWITCH_SHARE)) return pick(switches);
	const special = moves.filter(choice => choice.split(' ').length > 2);
	return pick(special.length && random() < 0.5 ? special : moves);
}

const encoded = view => Buffer.from(view.shown.bytes).toString('base64');

/** Picks of a team preview, in the order of `choice`, "team 3,1,..." or null: at random. */
function preview(battle, seat, index, choice, random) {
	const [, lines, request] = seat.told, { view } = seat;
	choice = choice?.startsWith('team') ? choice : randomChoice(request, random);
	const picks = choice.slice('team '.length).split(',').map(place => place - 1);
	const orders = battle.sides.map(side => [...side.pokemon]);
	const truths = [stateOf(battle, index, orders)], rows = [];
	view.see(lines.split('\n'), request);
	for (let n = 0; view.preview.picks.length < view.preview.wanted; n++) {
		rows.push([0, encoded(view)]);
		choice = view.command(view.kind.firstAction + picks[n]) || choice;
	}
	return { choice, truths, rows, picks };
}

/** One decision, or those of both slots where both have a choice; `choice` null: at random. */
function turn(battle, seat, index, orders, choice, random) {
	const [, lines, request] = seat.told, { view } = seat, side = battle.sides[index], slot = askedSlot(side);
	view.see(lines.split('\n'), request);
	const state = stateOf(battle, index, orders);
	const asked = (slot, before) => ({ ...state, lock: lockOf(side, slot), legal: legal(side, slot, before),
		first: before, first_lock: before && lockOf(side, 0) });
	const truths = [asked(slot, '')], rows = [[view.steps.slot ?? 0, encoded(view)]];
	choice ??= chosenOf(request, truths[0].legal, side.active.length === 1, random);
	const picks = choice.split(', ');
	if (slot === 0 && picks.length === 2 && accepts(side, picks[0])) {
		truths.push(asked(1, picks[0]));
		const words = view.command(actionOf(view, picks[0]));
		if (words === null) throw new Error(`no action is called ${picks[0]}`);
		if (words === '') rows.push([view.steps.slot, encoded(view)]);
	}
	return { choice, truths, rows, picks };
}

/** The action that these words of a slot stand for. */
const actionOf = ({ choices }, words) =>
	choices.mask.findIndex((legal, action) => legal === 1 && choices.command(action) === words);

function stateOf(battle, index, orders) {
	return {
		turn: battle.turn, seat: index, weather: battle.field.weather, weather_state: plain(battle.field.weatherState),
		terrain: battle.field.terrain, terrain_state: plain(battle.field.terrainState),
		rooms: states(battle.field.pseudoWeather), last: turns.get(battle) ?? null, sides: battle.sides.map((side, n) => sideTruth(side, orders[n])),
	};
}

let tables = null;
for await (const line of createInterface({ input: process.stdin })) {
	const job = JSON.parse(line);
	if (job.tables) tables = new EncoderTables(job.tables);
	else play(job, tables);
	if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain'); // a slow reader: no battle piles up
}
