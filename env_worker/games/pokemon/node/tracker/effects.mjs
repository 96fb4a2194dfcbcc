// Effects on a Pokemon, by poke-env's names, and what their start and end bring with them.

const STAT_EFFECTS = new Map([
	['QUARK_DRIVE', ['QUARKDRIVEATK', 'QUARKDRIVEDEF', 'QUARKDRIVESPA', 'QUARKDRIVESPD', 'QUARKDRIVESPE']],
	['PROTOSYNTHESIS', ['PROTOSYNTHESISATK', 'PROTOSYNTHESISDEF', 'PROTOSYNTHESISSPA', 'PROTOSYNTHESISSPD',
		'PROTOSYNTHESISSPE']],
]);

const CHANGE_STATS = new Set(['POWER_TRICK', 'DYNAMAX']);
const LONGEST_BIND = 5; // turns, in gen 1

/** @param {string} effect poke-env's name */
export function addEffect(mon, effect) {
	mon.effects.add(effect);
	if (CHANGE_STATS.has(effect)) mon.profileChanged();
}

/** @param {string} text as the protocol writes it */
export function startEffect(mon, text) {
	const effect = mon.dex.effect(text);
	addEffect(mon, effect);
	if (mon.dex.breaksProtect.has(effect)) mon.protectCounter = 0;
	return effect;
}

/** @param {string[]} names of types; those before one that does not exist are taken */
export function startTypeChange(mon, names) {
	startEffect(mon, 'typechange');
	mon.effects.delete('TYPEADD');
	const types = [];
	try {
		for (const name of names) types.push(mon.dex.type(name));
	} finally {
		mon.setTemporaryTypes(types);
	}
}

/** @param {string} effect poke-env's name */
export function endEffect(mon, effect) {
	mon.effects.delete(effect);
	if (effect === 'TYPECHANGE') mon.setTemporaryTypes([]);
	else if (effect === 'SKILL_SWAP') mon.setTemporaryAbility(null);
	else if (CHANGE_STATS.has(effect)) mon.profileChanged();
	else if (STAT_EFFECTS.has(effect)) for (const part of STAT_EFFECTS.get(effect)) mon.effects.delete(part);
}

export function clearEffects(mon) {
	const { effects } = mon;
	if (effects.size === 0) return;
	if (effects.has('TYPECHANGE')) mon.setTemporaryTypes([]);
	if (effects.has('SKILL_SWAP')) mon.setTemporaryAbility(null);
	for (const effect of CHANGE_STATS) if (effects.has(effect)) mon.profileChanged();
	effects.clear();
}

/** The turn's end for a Pokemon on the field. */
export function endTurn(mon, turn) {
	mon.activeTurns++;
	if (mon.preparing && mon.dex.gen > 1 && turn > mon.preparedTurn + 1) mon.preparing = false; // it had one turn
	if (mon.effects.size === 0) return;
	if (mon.dex.gen === 1 && (mon.boundTurn < turn - 1 || mon.boundTurns === LONGEST_BIND)) mon.effects.delete('PARTIALLY_TRAPPED');
	for (const effect of mon.effects) if (mon.dex.endsOnTurn.has(effect)) endEffect(mon, effect);
}
