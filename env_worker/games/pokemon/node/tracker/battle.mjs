// One seat's view of a battle, from that seat's protocol lines and requests alone.
//
// The audit (tests/support/pokemon/audit) compares what is made of it with the simulator's own state.

import { readOffered } from './counters.mjs';
import { dexOf, ParseFailure, ValueFailure } from './dex.mjs';
import { endEffect } from './effects.mjs';
import { readEntryAndMoves, sameEntry, updateFromEntry, wasIllusion } from './entries.mjs';
import { EVENTS } from './events/events.mjs';
import { completeCopy, readDetails, setSpecies, shareAbility, switchIn } from './formes.mjs';
import { LastTurn } from './last_turn.mjs';
import { Mon } from './pokemon.mjs';
import { Health, Standing } from './standing.mjs';

const TEAM_SIZE = 6;
const MOST_UNPARSED = 10000; // lines of one battle; other battles wait while they are read

export class SeatTracker {
	/**
	 * @param {'p1' | 'p2'} role
	 * @param {object} tables `tracker_tables(gen)`; the same object for every battle of a host
	 */
	constructor(role, gen, tables) {
		if (tables.gen !== gen) throw new Error(`gen ${gen} needs its own tables, these are of gen ${tables.gen}`);
		this.role = role;
		this.dex = dexOf(tables);
		this.turn = 0;
		this.lastTurn = new LastTurn();
		this.team = new Map(); // ident -> Mon
		this.opponentTeam = new Map();
		this.weather = new Map(); // name -> first turn
		this.fields = new Map();
		this.sideConditions = new Map(); // name -> layers of what stacks, first turn of the rest
		this.opponentSideConditions = new Map();
		this.usedTera = this.usedMega = this.usedZ = this.usedDynamax = false;
		this.opponentUsedTera = this.opponentUsedMega = this.opponentUsedZ = this.opponentUsedDynamax = false;
		this.entries = []; // latest request entries in team order
		this.dirty = new Set(); // team positions whose entry changed since the encoder last looked
		this.unparsed = 0; // lines
		this.parseErrors = new Map(); // event -> of these
		this.positions = new Map(); // ident -> team position
		this.teamSizes = new Map(); // role -> number
		this.ownMons = []; // the teams' Pokemon in the order of the Maps
		this.foeMons = [];
		this.previewed = []; // opponents as team preview shows them
		this.mover = null; // who moved last
		this.moved = []; // how the last move line names it, the move and the target; what has hastened it
		this.usedUp = null; // [Mon, item id]: the last item that has ended since a Pokemon moved
		// Foes that fainted in a disguise and have never been seen without one; less than 0: that look as if they had
		// fainted, and another one has in their disguise, which was revived.
		this.hiddenFaints = 0;
		this.onField = new Map(); // "p1a: Name" -> Mon
		this.synced = []; // of one request, in its order
		this.copies = []; // whose ability is not known yet
	}

	/** Take the seat's protocol lines; those that cannot be read are counted. Throws where there are too many of them. */
	feed(lines) {
		const { skipped } = this.dex;
		for (let i = 0; i < lines.length; i++) {
			const line = lines[i];
			const first = line.indexOf('|');
			if (first < 0) continue;
			const second = line.indexOf('|', first + 1);
			const name = second < 0 ? line.slice(first + 1) : line.slice(first + 1, second);
			const handle = EVENTS.get(name);
			if (handle === undefined) {
				if (!skipped.has(name)) this.countUnparsed(name);
				continue;
			}
			try {
				handle(this, line.split('|'));
			} catch {
				this.countUnparsed(name);
			}
		}
	}

	countUnparsed(name) {
		if (++this.unparsed > MOST_UNPARSED) throw new Error(`more than ${MOST_UNPARSED} lines could not be read`);
		this.parseErrors.set(name, (this.parseErrors.get(name) ?? 0) + 1);
	}

	/** Pokemon the opponent brings; at a team preview those that it shows. */
	get foeTeamSize() {
		return this.teamSizes.get(this.role === 'p1' ? 'p2' : 'p1') ?? (this.previewed.length || TEAM_SIZE);
	}

	/**
	 * Opponents: those that have been out, in order of appearance; then those that only team preview has shown,
	 * unless all that were brought are known.
	 */
	foes() {
		const foes = [];
		for (const mon of this.opponentTeam.values()) if (foes.length < TEAM_SIZE) foes.push(mon);
		if (this.previewed.length === 0 || foes.length >= this.foeTeamSize) return foes;
		const base = mon => mon.dex.species(mon.species).base;
		const known = foes.map(base);
		for (const mon of this.previewed) {
			const at = known.indexOf(base(mon));
			if (at >= 0) known.splice(at, 1);
			else if (foes.length < TEAM_SIZE) foes.push(mon);
		}
		return foes;
	}

	/** Team position of an own Pokemon: the action that switches to it. */
	position(ident) {
		const position = this.positions.get(ident);
		if (position === undefined) throw new Error(`no request has named ${ident}`);
		return position;
	}

	/** Bring the own team in line with a request. */
	sync(request) {
		const side = request.side.pokemon, { synced } = this, seeming = this.outs(true);
		const first = this.positions.size === 0;
		let illusion = false;
		synced.length = 0;
		for (let i = 0; i < side.length; i++) {
			const entry = side[i];
			const mon = this.team.get(entry.ident) ?? this.findPokemon(entry.ident, entry.details, entry);
			synced.push(mon);
			if (entry.active !== mon.active) illusion = true;
			if (mon.position < 0) this.place(mon, entry);
		}
		if (first) this.orderTeam();
		if (illusion) this.correctActive(side, seeming, first);
		for (let i = 0; i < side.length; i++) {
			const entry = side[i], mon = synced[i];
			if (!entry.active && mon.lastDetails === entry.details && sameEntry(mon.lastEntry, entry) && !this.mistaken(mon)) continue;
			updateFromEntry(mon, entry);
			this.entries[mon.position] = entry;
			this.dirty.add(mon.position);
		}
		if (first) this.copies.forEach(completeCopy);
		if (this.copies.length > 0) this.copies = this.copies.filter(shareAbility);
		request.active?.forEach((asked, i) => {
			if (asked) readOffered(synced[i], asked.moves);
		});
	}

	/** Whether lines since the last request may have changed an own Pokemon that they did not mean. */
	mistaken() {
		return false;
	}

	place(mon, entry) {
		mon.position = this.positions.size;
		this.positions.set(entry.ident, mon.position);
		this.entries.push(entry);
		this.dirty.add(mon.position);
	}

	/** A lead in disguise was named before the request by another's name: the request's order is the team's. */
	orderTeam() {
		const place = ident => this.positions.get(ident) ?? this.positions.size;
		this.team = new Map([...this.team].sort(([a], [b]) => place(a) - place(b)));
		this.ownMons = [...this.team.values()];
	}

	/** Illusion: only the request knows who is really out, not `seeming`; a `first` one is the first that names them. */
	correctActive(side, seeming, first) {
		const before = seeming.map(mon => [mon, new Standing(mon), new Health(mon)]);
		const wrong = this.synced.filter((mon, i) => mon.active !== side[i].active);
		const left = wrong.filter(mon => mon.active), came = wrong.filter(mon => !mon.active);
		for (const mon of left) wasIllusion(mon, this.fields);
		for (const mon of came) mon.setActive(true); // the other side has seen its disguise, not it
		const out = first ? this.synced.filter((_, i) => side[i].active) : came;
		const disguises = before.filter(([mon]) => !mon.active || mon.twinOf !== null);
		const wearers = out.filter(mon => !seeming.includes(mon));
		if (disguises.length !== 1 || wearers.length !== 1) return;
		const [wearer] = wearers, { twinOf } = disguises[0][0];
		// The wearer may stand where the other one of that name seems to: then the twin is the real one.
		const twinIsReal = twinOf !== null && twinOf === this.seemed(this.synced.indexOf(wearer));
		const [disguise, standing, health] = twinIsReal ? before.find(([mon]) => mon === twinOf) : disguises[0];
		standing.giveAll(wearer);
		health.unmask(wearer);
		this.release(disguise, wearer);
		if (twinIsReal) {
			wasIllusion(disguise, this.fields);
			this.unmasked(disguise);
		} else {
			disguise.before?.giveCounters(disguise);
		}
	}

	/** Who seemed to stand where a request has an entry; null = it does not say where. */
	seemed() {
		return null;
	}

	/** One leaves the field: those that it trapped are free, or trapped by its heir. */
	release(left, heir) {
		for (const mons of [this.ownMons, this.foeMons]) {
			for (const mon of mons) {
				if (mon.trapper !== left) continue;
				mon.trapper = heir;
				if (heir === null) endEffect(mon, 'TRAPPED');
			}
		}
	}

	/** The Pokemon at the place of an identifier ("p1a: Name"), fainted or not; null = none. */
	out(identifier) {
		return this.activeOf(identifier.startsWith(this.role) ? this.ownMons : this.foeMons);
	}

	/** Who stands on one side, fainted or not. */
	outs(own) {
		const mon = this.activeOf(own ? this.ownMons : this.foeMons);
		return mon === null ? [] : [mon];
	}

	/** Who stands on the field at the end of a turn. */
	fighters() {
		return [...this.outs(true), ...this.outs(false)];
	}

	/** The Pokemon beside the place of an identifier; null = none. */
	partner() {
		return null;
	}

	/** The place that an identifier names is empty. */
	leave() {}

	/** Who switches into the place that an identifier names. */
	entrant(identifier, details) {
		return this.getPokemon(identifier, details);
	}

	/** A Pokemon that seemed to stand on the field was another one's disguise. */
	unmasked() {}

	/** A Pokemon switches into the place that an identifier names. */
	enter(mon, identifier, details) {
		switchIn(mon, details);
	}

	/** A Pokemon stands in the place that an identifier names. */
	occupy() {}

	/** Who keeps a Pokemon from leaving that is said to be trapped. */
	trapperOf(mon) {
		return this.activeOf(mon.own ? this.foeMons : this.ownMons);
	}

	/** Whose item Frisk tells, null = it does not matter. */
	frisked(frisker) {
		const own = this.activeOf(this.ownMons), foe = this.activeOf(this.foeMons);
		const mon = frisker === own ? foe : frisker === foe ? own : undefined;
		if (mon === null) throw new ParseFailure('nobody is out');
		return mon ?? null;
	}

	/** Two of a side change places. */
	swap() {}

	/** Whose Pokemon is on the field, null = none. */
	activeOf(mons) {
		for (let i = 0; i < mons.length; i++) if (mons[i].active) return mons[i];
		return null;
	}

	/** The own Pokemon of that name, not one in its disguise; undefined = none yet. */
	ownNamed(identifier) {
		return this.team.get(identifier.slice(0, 2) + identifier.slice(3));
	}

	/** The Pokemon an event names, made if it is new. */
	getPokemon(identifier, details = '') {
		const mon = this.onField.get(identifier);
		if (mon !== undefined && (!mon.own || mon.active)) return mon;
		return this.findPokemon(identifier, details, null);
	}

	/** @param {object | null} entry of a request: then the Pokemon is an own one */
	findPokemon(identifier, details, entry) {
		if (identifier.length < 4) throw new ParseFailure(identifier);
		let ident = identifier;
		if (identifier[3] !== ' ') {
			ident = identifier.slice(0, 2) + identifier.slice(3);
			const foe = this.opponentTeam.get(ident);
			if (foe !== undefined) return foe;
			const own = this.team.get(ident);
			if (own !== undefined) return this.throughIllusion(own, identifier);
		}
		const known = this.team.get(ident) ?? this.opponentTeam.get(ident);
		if (known !== undefined) return known;
		return this.created(ident, details, entry, ident.slice(0, 2) === this.role || entry !== null);
	}

	/** An event names an own Pokemon that is not out: the one that is may be the other one in disguise. */
	throughIllusion(named, identifier) {
		if (named.active || !identifier.startsWith(this.role)) return named;
		const out = this.activeOf(this.ownMons);
		return out?.innateAbility === 'illusion' ? out : named;
	}

	created(ident, details, entry, isOwn) {
		const mons = isOwn ? this.ownMons : this.foeMons, role = ident.slice(0, 2);
		if (this.teamSizes.size > 0) {
			const size = this.teamSizes.get(role);
			if (size === undefined) throw new ParseFailure(ident);
			if (mons.length >= size) throw new ValueFailure(`${ident} is one too many`);
		}
		const mon = new Mon(this.dex, isOwn);
		if (entry !== null) readEntryAndMoves(mon, entry);
		else if (details) readDetails(mon, details);
		else setSpecies(mon, ident.slice(4), true);
		(isOwn ? this.team : this.opponentTeam).set(ident, mon);
		mons.push(mon);
		this.nameOnField(ident, mon);
		return mon;
	}

	nameOnField(ident, mon) {
		this.onField.set(`${ident.slice(0, 2)}a${ident.slice(2)}`, mon);
	}
}
