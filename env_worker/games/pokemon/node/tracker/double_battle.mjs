// One seat's view of a battle of doubles: two places on each side.

import { SeatTracker } from './battle.mjs';
import { ParseFailure } from './dex.mjs';
import { readDetails, switchIn } from './formes.mjs';
import { Mon } from './pokemon.mjs';
import { Health, Standing } from './standing.mjs';

const LETTERS = ['a', 'b'];

export class DoubleTracker extends SeatTracker {
	constructor(role, gen, tables) {
		super(role, gen, tables);
		this.places = new Map(); // "p1a" -> Mon, fainted or not
		this.ownPlaces = LETTERS.map(letter => role + letter);
		this.foePlaces = LETTERS.map(letter => (role === 'p1' ? 'p2' : 'p1') + letter);
		this.readVersions = []; // by team position: the bodyVersion behind the last request
	}

	/** [left, right] of the own side as the last request says, null where none is able to act. */
	get ownPair() {
		return this.ownPlaces.map(place => living(this.places.get(place)));
	}

	/** The same of the foes, as lines say. */
	get foePair() {
		return this.foePlaces.map(place => able(this.places.get(place)));
	}

	/** Bring the own team in line with a request; its first two entries are the left and the right place. */
	sync(request) {
		super.sync(request);
		for (const mon of this.ownMons) this.readVersions[mon.position] = mon.bodyVersion;
		if (request.teamPreview) return;
		this.ownPlaces.forEach((place, i) => {
			if (i < this.synced.length) this.places.set(place, this.synced[i]);
		});
	}

	/** @param {number} index of the entry: the first two have the places */
	seemed(index) {
		return this.places.get(this.ownPlaces[index]) ?? null;
	}

	/** A partner in disguise is called by another's name. */
	mistaken(mon) {
		return this.readVersions[mon.position] !== mon.bodyVersion;
	}

	out(identifier) {
		return this.places.get(identifier.slice(0, 3)) ?? null;
	}

	outs(own) {
		const mons = [];
		for (const place of own ? this.ownPlaces : this.foePlaces) {
			const mon = this.places.get(place);
			if (mon !== undefined) mons.push(mon);
		}
		return mons;
	}

	fighters() {
		return [...this.outs(true), ...this.outs(false)].filter(mon => able(mon) !== null);
	}

	partner(identifier) {
		return able(this.places.get(identifier.slice(0, 2) + (identifier[2] === 'a' ? 'b' : 'a')));
	}

	leave(identifier) {
		this.places.delete(identifier.slice(0, 3));
	}

	/** Illusion: one that looks like its partner has a Mon of its own as long as one of the two is in disguise. */
	entrant(identifier, details) {
		const mon = this.getPokemon(identifier, details);
		if (!this.outs(mon.own).includes(mon) || able(mon) === null) return mon;
		const twin = new Mon(this.dex, mon.own);
		readDetails(twin, details);
		twin.twinOf = mon;
		return twin;
	}

	/** One was another's disguise: then its twin is it. */
	unmasked(mon) {
		for (const [place, twin] of this.places) {
			if (twin.twinOf !== mon) continue;
			this.places.set(place, mon);
			switchIn(mon);
			new Standing(twin).giveAll(mon);
			new Health(twin).give(mon);
		}
	}

	/** Of one that is known, the details are not read again. */
	enter(mon, identifier) {
		switchIn(mon);
		this.occupy(identifier, mon);
	}

	occupy(identifier, mon) {
		this.places.set(identifier.slice(0, 3), mon);
	}

	/** Who has just moved, or its target (Jaw Lock). */
	trapperOf(mon) {
		const [user, , target = ''] = this.moved;
		for (const identifier of [user ?? '', target]) {
			const other = this.out(identifier);
			if (other !== null && other !== mon) return other;
		}
		return null;
	}

	frisked(frisker, identifier) {
		return this.getPokemon(identifier);
	}

	/** @param {string} place '0' or '1', where the named one stands from now on */
	swap(identifier, place) {
		const places = [0, 1].map(i => identifier.slice(0, 2) + LETTERS[i]);
		const [left, right] = places.map(name => this.places.get(name));
		if (left === undefined || right === undefined) throw new ParseFailure(identifier);
		if (left.status === 'FNT' || right.status === 'FNT') return;
		const mon = this.getPokemon(identifier);
		if ((place === '0' && mon === left) || (place === '1' && mon === right)) return;
		this.places.set(places[0], right).set(places[1], left);
	}

	getPokemon(identifier, details = '') {
		const mon = this.onField.get(identifier);
		if (mon === undefined) return this.findPokemon(identifier, details, null);
		const there = this.out(identifier);
		if (there !== null && there.twinOf === mon) return there;
		return mon.own ? this.throughIllusion(mon, identifier) : mon;
	}

	throughIllusion(named, identifier) {
		const out = identifier.startsWith(this.role) ? able(this.out(identifier)) : null;
		return out?.innateAbility === 'illusion' ? out : named;
	}

	nameOnField(ident, mon) {
		for (const letter of LETTERS) this.onField.set(`${ident.slice(0, 2)}${letter}${ident.slice(2)}`, mon);
	}
}

function living(mon) {
	return mon === undefined || mon.status === 'FNT' ? null : mon;
}

/** Who is on the field and has not fainted, null otherwise. */
function able(mon) {
	return mon?.active ? living(mon) : null;
}
