// What a Pokemon is: species, details, forme changes, Transform.

import { toId } from './dex.mjs';

/** The species' data; `store` false = a forme that the Pokemon takes on without being of that species. */
export function setSpecies(mon, name, store) {
	const id = toId(name);
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
		if (species.abilities.length === 1 && mon.dex.gen >= 3) mon.innateAbility = species.abilities[0];
	} else {
		mon.formeAbility = null;
	}
	mon.abilityChanged();
}

/** Whether a species' name means this Pokemon; a hyphenated name also means what stands between its hyphens. */
export function identifiesAs(mon, name) {
	const { base } = mon.dex.species(mon.species);
	return base === toId(name) || name.split('-').some(part => toId(part) === base);
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
	// poke-env compares a name with an id here, so that only a bare species can be found the same.
	if (species !== mon.species) setSpecies(mon, species, true);
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
	mon.setTemporaryTypes([]);
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

export function megaEvolve(mon, stone) {
	const mega = mon.species.endsWith('mega') ? mon.species : `${mon.species}mega`;
	mon.setTemporaryAbility(null);
	if (mon.dex.speciesById.has(mega)) setSpecies(mon, mega, false);
	else if (/[XYxy]$/.test(stone)) setSpecies(mon, mega + stone.at(-1).toLowerCase(), false);
}

export function primalReversion(mon) {
	setSpecies(mon, mon.species.endsWith('primal') ? mon.species : `${mon.species}primal`, false);
}

export function transform(mon, into) {
	const species = mon.dex.species(into.species);
	mon.setTemporaryStats(species.baseStats);
	if (into.ability !== null) mon.setTemporaryAbility(into.ability);
	mon.setTemporaryTypes(species.types.slice());
	mon.moveSet.copy(into.moveSet);
	mon.movesChanged();
	mon.boosts.copy(into.boosts);
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
