// One seat's battle at one request, as the damage formula reads it: Pokemon that may attack or be hit.

import { wantsFallen, wantsFoesHp, wantsOwnHp } from '../damage/cache.mjs';
import { Condition, Surroundings } from '../damage/from_battle.mjs';
import { foeProfile, ownProfile } from '../encoder/expected_damage.mjs';
import { sameFighter } from '../encoder/pokemon_features.mjs';

export const MOVES = 4;

/** One Pokemon. */
export class Combatant {
	/**
	 * @param {string[]} names of its moves as requests spell them
	 * @param {boolean} out it is on the field
	 * @param {boolean} guess it may have unseen attacks of its types
	 */
	constructor(fighter, names, mon, out, guess) {
		this.fighter = fighter;
		this.names = names;
		this.guess = guess;
		this.hp = shareLeft(mon); // of its full hp
		this.aim = out ? mon.boosts.accuracy : 0; // stages
		this.evasion = out ? mon.boosts.evasion : 0;
		this.fresh = out && mon.activeTurns === 1; // it has had no turn since it came in
		this.asleep = mon.status === 'SLP';
	}

	/** A copy in which `changes` differ. */
	with(changes) {
		return Object.assign(Object.create(Combatant.prototype), this, changes);
	}
}

function shareLeft(mon) {
	return (mon.hp || 0) / (mon.maxHp || 1);
}

/** Of one Pokemon what is made anew only when it changes. */
class Known {
	constructor() {
		this.profile = null;
		this.profileVersion = -1;
		this.entry = null;
		this.condition = new Condition();
		this.fighter = null;
		this.out = false;
		this.down = 0;
	}

	/** @param {object} entry of the request */
	readOwn(tables, mon, entry) {
		const same = this.profileVersion === mon.profileVersion && sameFighter(this.entry, entry);
		this.entry = entry;
		if (!same) this.setProfile(mon, ownProfile(tables, mon, entry));
	}

	readFoe(tables, mon) {
		if (this.profileVersion !== mon.profileVersion) this.setProfile(mon, foeProfile(tables, mon));
	}

	setProfile(mon, profile) {
		this.profile = profile;
		this.profileVersion = mon.profileVersion;
		this.fighter = null;
	}

	/** The same object as long as nothing of it changes. */
	fighterNow(tables, mon, exactHp, out, down) {
		const changed = this.condition.read(tables, mon, this.profile, exactHp, out);
		if (changed || this.fighter === null || this.out !== out || this.down !== down) {
			this.fighter = this.condition.fighter(tables, mon, this.profile, out, down);
			this.out = out;
			this.down = down;
		}
		return this.fighter;
	}
}

/** What a seat knows of both sides at one request. */
export class View {
	/**
	 * @param {Combatant[]} bench the own team in the request's order
	 * @param {(Combatant | null)[]} foes that are out (left, right in doubles), null: empty
	 */
	constructor(around, bench, foes) {
		this.around = around;
		this.bench = bench;
		this.foes = foes;
		this.ownScreens = this.foeScreens = [];
		this.ownWind = this.foeWind = 1; // 2 behind a tailwind
		this.trickRoom = false;
	}

	/** A copy that faces others. */
	facing(foes) {
		return Object.assign(Object.create(View.prototype), this, { foes });
	}
}

/** Reads the views of one seat's battle. */
export class ViewReader {
	/** @param {object} tables an EncoderTables */
	constructor(tables) {
		this.tables = tables;
		this.known = new Map(); // Mon -> Known
		this.around = new Surroundings(); // the same object until they change
	}

	/** @param {SeatTracker} tracker in sync with the request */
	read(tracker, request) {
		const { damage } = this.tables, side = request.side.pokemon, out = foesOut(this.tables, tracker);
		const exact = side.some(entry => movesOf(damage, entry.moves).some(wantsFoesHp));
		this.lookAround(tracker, weatherCanceller(damage, side, out));
		const view = new View(this.around, side.map((entry, i) => this.own(tracker, tracker.synced[i], entry)),
			out.map(mon => mon && this.foe(tracker, mon, exact)));
		const { sideConditions: own, opponentSideConditions: theirs } = tracker;
		view.ownScreens = screensOf(damage, own);
		view.foeScreens = screensOf(damage, theirs);
		if (own.has('TAILWIND')) view.ownWind = 2;
		if (theirs.has('TAILWIND')) view.foeWind = 2;
		view.trickRoom = tracker.fields.has('TRICK_ROOM');
		return view;
	}

	/** @param {string} canceller an ability that suppresses the weather, '' for none */
	lookAround(tracker, canceller) {
		const around = new Surroundings();
		around.read(this.tables.damage, tracker, canceller, '');
		if (!around.equals(this.around)) this.around = around;
	}

	/** The foes that team preview shows. */
	previewed(tracker) {
		return tracker.previewed.map(mon => this.foe(tracker, mon, false));
	}

	own(tracker, mon, entry) {
		const { tables } = this, known = this.knownOf(mon), names = entry.moves.slice(0, MOVES);
		known.readOwn(tables, mon, entry);
		const moves = movesOf(tables.damage, names), down = moves.some(wantsFallen) ? fallen(tracker.ownMons) : 0;
		const fighter = known.fighterNow(tables.damage, mon, moves.some(wantsOwnHp), entry.active, down);
		return new Combatant(fighter, names, mon, entry.active, false);
	}

	foe(tracker, mon, exact) {
		const { tables } = this, known = this.knownOf(mon), names = [...mon.moves.keys()].slice(0, MOVES);
		known.readFoe(tables, mon);
		const moves = movesOf(tables.damage, names), down = moves.some(wantsFallen) ? fallen(tracker.foeMons) : 0;
		const fighter = known.fighterNow(tables.damage, mon, exact || moves.some(wantsOwnHp), mon.active, down);
		return new Combatant(fighter, names, mon, mon.active, known.profile.guess);
	}

	knownOf(mon) {
		let known = this.known.get(mon);
		if (known === undefined) {
			known = new Known();
			this.known.set(mon, known);
		}
		return known;
	}
}

function movesOf(damage, names) {
	return names.slice(0, MOVES).map(name => damage.move(name));
}

function fallen(mons) {
	return mons.filter(mon => mon.status === 'FNT').length;
}

/** One in singles, left and right in doubles; null: empty. */
function foesOut(tables, tracker) {
	if (tables.doubles) return tracker.foePair;
	const mon = tracker.activeOf(tracker.foeMons);
	return [mon !== null && mon.status !== 'FNT' ? mon : null];
}

function screensOf(damage, conditions) {
	let bits = 0;
	for (const name of conditions.keys()) bits |= damage.screenBits.get(name) ?? 0;
	return damage.screensOf(bits);
}

/** The ability of an active Pokemon that suppresses the weather, '' for none. */
function weatherCanceller(damage, side, foes) {
	const own = side.filter(entry => entry.active).map(entry => entry.ability || entry.baseAbility);
	return [...own, ...foes.map(mon => mon?.ability)].find(ability => damage.calm.has(ability)) ?? '';
}
