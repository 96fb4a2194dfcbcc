// What a Pokemon is: species, details, forme changes, Transform.

import { toId } from './dex.mjs';

const FIRST_GEN_WITH_ABILITIES = 3;

/** The species' data; `store` false = a forme that the Pokemon takes on without being of that species. */
export function setSpecies(mon, name, store) {
	const id = toId(name);
	if (store) mon.returnsTo = '';
	const species = mon.dex.species(id);
	const [type1, type2 = 0] = species.types;
	if ((store && id !== mon.species) || type1 !== mon.type1 || type2 !== mon.type2) mon.profileChanged();
	if (store) mon.species = id;
	mon.type1 = type1;
	mon.type2 = type2;
	mon.speciesStats = species.baseStats;
	mon.statsChanged();
	if (species.formeAbility !== null) {
		mon.formeAbility = species.formeAbility;
	} else if (mon.formeAbility === null) {
		if (species.abilities.length === 1 && mon.dex.gen >= FIRST_GEN_WITH_ABILITIES) mon.innateAbility = species.abilities[0];
	} else {
		mon.formeAbility = null;
	}
	mon.abilityChanged();
}

/** "Zoroark-Hisui, L80, M, shiny, tera:Fire"; all but the species may be missing. */
export function readDetails(mon, details) {
	if (details === mon.lastDetails) return;
	mon.lastDetails = details;
	const parts = details.replaceAll(', shiny', '').split(', ');
	const tera = parts.findIndex(part => part.startsWith('tera:'));
	if (tera >= 0) {
		setTeraType(mon, parts[tera].slice(5));
		parts.splice(tera, 1);
	}
	let level = 100, species = parts[0];
	if (parts.length === 3 || (parts.length === 2 && parts[1].startsWith('L'))) level = parseInt(parts[1].slice(1), 10);
	else if (parts.length !== 2) species = toId(species);
	if (level !== mon.level) {
		mon.level = level;
		mon.profileChanged();
	}
	if (mon.returnsTo !== '') mon.returnsTo = toId(species);
	// A name is compared with an id: only a bare species can be found the same.
	else if (species !== mon.species) setSpecies(mon, species, true);
}

/**
 * A forme that lasts (mega evolution, a broken disguise); a copy, too, then has the stats of that forme.
 * @param {string} details as the protocol writes them
 */
export function changeForme(mon, details) {
	mon.copied = null;
	mon.setTemporaryStats(null);
	setSpecies(mon, details.split(',')[0], true);
	endTypeChanges(mon);
}

/** A forme has types of its own. */
function endTypeChanges(mon) {
	mon.setTemporaryTypes([]);
	mon.effects.delete('TYPECHANGE');
	mon.effects.delete('TYPEADD');
}

/** A forme that ends when the Pokemon leaves the field; a copy has no formes of its own. */
export function takeForme(mon, name) {
	const base = mon.returnsTo || mon.species;
	setSpecies(mon, name, !mon.transformed);
	endTypeChanges(mon);
	mon.returnsTo = base;
}

/** Ends the forme that ends when its Pokemon leaves. */
export function endForme(mon) {
	if (mon.returnsTo !== '') setSpecies(mon, mon.returnsTo, true);
}

function setTeraType(mon, name) {
	const type = mon.dex.type(name);
	if (type === mon.terastallizedType) return;
	mon.terastallizedType = type;
	mon.profileChanged();
}

export function terastallize(mon, name) {
	setTeraType(mon, name);
	if (!mon.terastallized) {
		mon.terastallized = true;
		mon.profileChanged();
	}
	if (name === 'Stellar') endAddedType(mon); // the others it keeps
	else mon.setTemporaryTypes([]);
	if (mon.returnsTo === 'morpeko') mon.returnsTo = ''; // it keeps the forme that it has then
}

/** It has fainted: it is revived as it was before. */
export function endTera(mon) {
	if (!mon.terastallized) return;
	mon.terastallized = false;
	mon.terastallizedType = 0;
	mon.profileChanged();
}

/** @returns {Move | null} null = one that is not stored */
export function addMove(mon, spelling) {
	const { moveSet } = mon;
	const before = moveSet.moves.size;
	const move = moveSet.add(spelling);
	if (moveSet.moves !== mon.moves || moveSet.moves.size !== before) mon.movesChanged();
	return move;
}

/** @param {string} [details] of the protocol's switch */
export function switchIn(mon, details = '') {
	mon.setActive(true);
	if (details) readDetails(mon, details);
	if (!mon.revealed) {
		mon.revealed = true;
		mon.bodyVersion++;
	}
}

export function primalReversion(mon) {
	setSpecies(mon, mon.species.endsWith('primal') ? mon.species : `${mon.species}primal`, false);
}

/** What a copy has of its model; its stats only the model's owner knows exactly. */
class Copied {
	constructor(model) {
		this.baseStats = model.baseStats;
		this.level = model.level;
		this.model = model;
		this.sharesInnate = model.ability === null && model.dex.gen >= FIRST_GEN_WITH_ABILITIES; // it has the model's own ability, which is not known yet
		this.entry = model.own && model.lastEntry ? model.lastEntry.stats : null; // none before the first request
		this.tricked = model.effects.has('POWER_TRICK'); // by Power Trick
	}

	/** Exact ones, null for a foe's. */
	get stats() {
		return this.entry ?? (this.model.own ? this.model.lastEntry?.stats : null) ?? null;
	}
}

/** Gives a copy's ability to its model, or the model's to the copy, once either has shown it. @returns {boolean} neither has */
export function shareAbility(mon) {
	const { copied } = mon;
	if (!copied?.sharesInnate) return false;
	const { model } = copied;
	if (mon.temporaryAbility !== '') {
		if (model.innateAbility === null) model.revealAbility(mon.temporaryAbility);
	} else if (model.innateAbility) {
		mon.setTemporaryAbility(model.innateAbility);
	} else {
		return true;
	}
	copied.sharesInnate = false;
	return false;
}

export function transform(mon, into) {
	mon.copied = into.copied ?? new Copied(into);
	mon.effects.delete('POWER_TRICK');
	if (mon.returnsTo !== '') mon.species = mon.returnsTo; // a forme of its own ends
	mon.setTemporaryStats(into.baseStats);
	mon.takeAbility(into.ability);
	mon.setTemporaryTypes(into.temporaryTypes.length > 0 ? into.temporaryTypes.slice() : bornTypes(into));
	mon.moveSet.copy(into.moveSet);
	mon.movesChanged();
	mon.boosts.copy(into.boosts);
}

/** Gives a copy from before the first request the moves of its model: that request is the first to name them. */
export function completeCopy(mon) {
	if (!mon.copied?.model.own) return;
	for (const id of mon.copied.model.moveSet.learned.keys()) addMove(mon, id);
}

export function bornTypes(mon) {
	return mon.type2 === 0 ? [mon.type1] : [mon.type1, mon.type2];
}

/** Trick-or-Treat, Forest's Curse: a type beside the others; a second one takes its place. */
export function addType(mon, name) {
	const types = mon.temporaryTypes.length > 0 ? mon.temporaryTypes.slice() : bornTypes(mon);
	if (mon.effects.has('TYPEADD') && types.length > 1) types.pop();
	types.push(mon.dex.type(name));
	mon.setTemporaryTypes(types);
}

function endAddedType(mon) {
	if (mon.effects.delete('TYPEADD')) mon.setTemporaryTypes(mon.temporaryTypes.slice(0, -1));
}

/** The types as they defend now. */
export function currentTypes(mon) {
	const temporary = mon.temporaryTypes;
	let first = temporary.length > 0 ? temporary[0] : mon.type1;
	if (mon.terastallized && mon.terastallizedType !== 0) first = mon.terastallizedType;
	if (mon.terastallized || temporary.length === 1) return [first];
	const second = temporary.length > 1 ? temporary[1] : mon.type2;
	return second === 0 ? [first] : [first, second];
}
