// Uniformly random legal choices, for measurements and tests.

/** One choice string for a request that is not a wait, for any number of active Pokemon. */
export function randomChoice(request, random) {
	if (request.teamPreview) return randomTeamOrder(request, random);
	const taken = { slots: new Set(), gimmick: false };
	const count = (request.forceSwitch ?? request.active).length;
	const parts = [];
	for (let position = 0; position < count; position++) {
		const options = request.forceSwitch ?
			forcedOptions(request, position, taken) : activeOptions(request, position, taken);
		const option = options[Math.floor(random() * options.length)];
		if (option.slot) taken.slots.add(option.slot);
		if (option.gimmick) taken.gimmick = true;
		parts.push(option.text);
	}
	return parts.join(', ');
}

function randomTeamOrder(request, random) {
	const order = request.side.pokemon.map((_, i) => i + 1);
	for (let i = order.length - 1; i > 0; i--) {
		const j = Math.floor(random() * (i + 1));
		[order[i], order[j]] = [order[j], order[i]];
	}
	return `team ${order.slice(0, request.maxChosenTeamSize ?? order.length).join(',')}`;
}

const isFainted = pokemon => pokemon.condition.endsWith(' fnt');
const PASS = [{ text: 'pass' }];

function switchOptions(request, taken, wantFainted) {
	const options = [];
	request.side.pokemon.forEach((pokemon, i) => {
		const slot = i + 1;
		if (!pokemon.active && isFainted(pokemon) === wantFainted && !taken.slots.has(slot)) {
			options.push({ text: `switch ${slot}`, slot });
		}
	});
	return options;
}

function forcedOptions(request, position, taken) {
	if (!request.forceSwitch[position]) return PASS;
	const reviving = !!request.side.pokemon[position].reviving;
	const options = switchOptions(request, taken, reviving);
	return options.length ? options : PASS;
}

function activeOptions(request, position, taken) {
	const active = request.active[position];
	const own = request.side.pokemon[position];
	if (!active || isFainted(own) || own.commanding) return PASS;
	const options = active.trapped ? [] : switchOptions(request, taken, false);
	addMoves(options, request, position, active.maxMoves && !active.canDynamax ?
		active.maxMoves.maxMoves : active.moves, '');
	if (!taken.gimmick) addGimmicks(options, request, position, active);
	return options.length ? options : [{ text: 'default' }];
}

function addGimmicks(options, request, position, active) {
	for (const [key, word] of [['canMegaEvo', 'mega'], ['canMegaEvoX', 'megax'], ['canMegaEvoY', 'megay'],
		['canUltraBurst', 'ultra'], ['canTerastallize', 'terastallize']]) {
		if (active[key]) addMoves(options, request, position, active.moves, word);
	}
	if (active.canZMove) addMoves(options, request, position, active.canZMove, 'zmove');
	if (active.canDynamax) {
		addMoves(options, request, position, active.maxMoves.maxMoves.map((move, i) => (
			{ ...move, disabled: active.moves[i].disabled })), 'dynamax');
	}
}

function addMoves(options, request, position, moves, gimmick) {
	moves.forEach((move, i) => {
		if (!move || move.disabled) return;
		for (const target of targetsOf(move, request, position)) {
			const text = [`move ${i + 1}`, target, gimmick].filter(Boolean).join(' ');
			options.push(gimmick ? { text, gimmick: true } : { text });
		}
	});
}

/** '' where no target is named: in singles and for moves that choose by themselves. */
function targetsOf(move, request, position) {
	const count = request.active.length;
	if (count < 2) return [''];
	const self = -(position + 1), ally = -((position ^ 1) + 1);
	const allyStands = request.active[position ^ 1] && !isFainted(request.side.pokemon[position ^ 1]);
	switch (move.target) {
	case 'normal': case 'any': return allyStands ? [1, 2, ally] : [1, 2];
	case 'adjacentFoe': return [1, 2];
	case 'adjacentAlly': return [ally];
	case 'adjacentAllyOrSelf': return allyStands ? [self, ally] : [self];
	default: return [''];
	}
}
