// The sides of a battle as text and hp bars, of a state that a BattleLog made. All text becomes text nodes.

const SHORT = { atk: 'Atk', def: 'Def', spa: 'SpA', spd: 'SpD', spe: 'Spe', accuracy: 'Acc', evasion: 'Eva' };

/** An element with a class and children: elements, or strings as text. */
export function make(tag, name, ...children) {
	const element = document.createElement(tag);
	if (name) element.className = name;
	element.append(...children);
	return element;
}

/** A side with its active Pokémon, conditions and team. */
export function sideView(state, id) {
	const side = state.sides[id];
	const active = Object.keys(state.active).filter(position => position.startsWith(id)).sort()
		.map(position => state.active[position]);
	const team = Object.entries(state.pokemon).filter(([, pokemon]) => pokemon.side === id);
	const chips = team.map(([key, pokemon]) => {
		const kind = pokemon.status === 'fnt' ? 'fainted' : active.includes(key) ? 'active' : '';
		return make('span', `chip ${kind}`, `${pokemon.name} ${Math.ceil(pokemon.hp)}%`);
	});
	const unseen = side.teamSize - team.length;
	if (unseen > 0) chips.push(make('span', 'chip unseen', `${unseen} not seen`));
	const conditions = Object.entries(side.conditions).map(([name, layers]) => (
		make('span', 'chip condition', layers > 1 ? `${name} ${layers}` : name)));
	return make(
		'section', 'side', make('h2', '', side.name), ...active.map(key => pokemonView(state.pokemon[key])),
		make('div', 'chips', ...conditions), make('div', 'chips team', ...chips),
	);
}

function pokemonView(pokemon) {
	const named = pokemon.name === pokemon.species ? pokemon.name : `${pokemon.name} (${pokemon.species})`;
	const fill = make('div', `fill ${pokemon.hp > 50 ? 'high' : pokemon.hp > 20 ? 'middle' : 'low'}`);
	fill.style.width = `${pokemon.hp}%`;
	const bar = make('div', 'bar', fill);
	bar.setAttribute('role', 'meter');
	bar.setAttribute('aria-label', `hp of ${pokemon.name}`);
	bar.setAttribute('aria-valuenow', String(Math.round(pokemon.hp)));
	const boosts = Object.entries(pokemon.boosts).map(([stat, amount]) => (
		make('span', `chip ${amount > 0 ? 'raised' : 'lowered'}`, `${amount > 0 ? '+' : '−'}${Math.abs(amount)} ${SHORT[stat]}`)));
	const effects = Object.values(pokemon.effects).map(name => make('span', 'chip', name));
	const status = pokemon.status ? [make('span', `status ${pokemon.status}`, pokemon.status.toUpperCase())] : [];
	return make(
		'article', 'pokemon',
		make('div', 'name', make('strong', '', named), ` L${pokemon.level} ${pokemon.gender} `, ...status,
			make('span', 'percent', `${Math.ceil(pokemon.hp)}%`)),
		bar, make('div', 'chips', ...boosts, ...effects),
	);
}
