// Reads the log of a battle (Pokémon Showdown's protocol, sim/SIM-PROTOCOL.md) as steps: a sentence, and the state after it.
// Part of every replay page (page.py), therefore without imports. A state is never changed in place, so steps share its parts.

/**
 * @typedef {{side: string, name: string, species: string, level: number, gender: string, hp: number, status: string,
 *   boosts: Object<string, number>, effects: Object<string, string>}} Pokemon hp: percent
 * @typedef {{name: string, teamSize: number, conditions: Object<string, number>}} Side conditions: layers by name
 * @typedef {{turn: number, weather: string, field: string[], sides: Object<string, Side>,
 *   active: Object<string, string>, pokemon: Object<string, Pokemon>}} State active: key of `pokemon` by position (p1a)
 * @typedef {{turn: number, text: string, minor: boolean, state: State}} Step
 */

// Without a prototype: a log may name `constructor`.
const STATUS = { __proto__: null, brn: 'burn', par: 'paralysis', slp: 'sleep', frz: 'freeze', psn: 'poison', tox: 'bad poison' };
const AFFLICTED = {
	__proto__: null,
	brn: 'is burned', par: 'is paralysed', slp: 'falls asleep', frz: 'is frozen', psn: 'is poisoned', tox: 'is badly poisoned',
};
const STATS = {
	__proto__: null,
	atk: 'Attack', def: 'Defense', spa: 'Special Attack', spd: 'Special Defense', spe: 'Speed', accuracy: 'accuracy',
	evasion: 'evasiveness',
};
const WEATHER = {
	__proto__: null,
	RainDance: 'Rain', PrimordialSea: 'Heavy rain', SunnyDay: 'Sun', DesolateLand: 'Extreme sun', Sandstorm: 'Sandstorm',
	Hail: 'Hail', Snow: 'Snow', Snowscape: 'Snow', DeltaStream: 'Strong winds',
};
const UNABLE = {
	__proto__: null,
	par: 'fully paralysed', slp: 'asleep', frz: 'frozen', flinch: 'flinched', recharge: 'it must recharge',
	nopp: 'no PP is left', partiallytrapped: 'trapped',
};
const PASSED_ON = ['aquaring', 'confusion', 'curse', 'embargo', 'focusenergy', 'healblock', 'ingrain', 'leechseed',
	'magnetrise', 'perish', 'powertrick', 'substitute', 'telekinesis'];
const MOST_ENTRIES = 48; // of each map of a state, which every step copies: Pokémon, sides, effects, ...
// Without content for a spectator, of other rooms, or HTML.
const WITHOUT_TEXT = new Set(['', '-anim', ':', 'J', 'L', 'N', 'askreg', 'clearpoke', 'controlshtml', 'debug', 'deinit',
	'expire', 'fieldhtml', 'html', 'init', 'inputlog', 'j', 'l', 'n', 'name', 'noinit', 'notify', 'pagehtml', 'rated', 'raw',
	'refresh', 'request', 'rule', 'selectorhtml', 'sentchoice', 'showteam', 'split', 'start', 't:', 'teampreview',
	'tempnotify', 'tempnotifyoff', 'title', 'uhtml', 'uhtmlchange', 'unlink', 'updatepoke', 'upkeep', 'usercount', 'users']);

export class BattleLog {
	/** @param {string[]} lines of the protocol, each with its leading `|` */
	constructor(lines) {
		/** @type {Step[]} */
		this.steps = [];
		/** @type {string[]} lines of a kind that is not known, that lack a part, or that are too many of their kind */
		this.unread = [];
		this.gen = 0;
		this.format = '';
		this.result = '';
		/** @type {State} */
		this.state = { turn: 0, weather: '', field: [], sides: {}, active: {}, pokemon: {} };
		for (const line of lines) this.read(line);
	}

	/** One line: a change of state, and a step where it has a sentence. */
	read(line) {
		if (!line.startsWith('|')) {
			if (line && !line.startsWith('>')) this.add(line, true);
			return;
		}
		const [, kind, ...rest] = line.split('|');
		if (WITHOUT_TEXT.has(kind)) return;
		const handler = Object.hasOwn(HANDLERS, kind) ? HANDLERS[kind] : null;
		if (!handler) {
			this.unread.push(line);
			return;
		}
		const { parts, tags } = split(rest), before = this.state;
		let text;
		try {
			text = handler(this, parts, tags, kind, rest);
		} catch (error) {
			if (!(error instanceof TypeError)) throw error;
			this.unread.push(line); // a part is missing
			this.state = before;
			return;
		}
		if (text && !('silent' in tags)) this.add(text, kind.startsWith('-'));
	}

	add(text, minor) {
		this.steps.push({ turn: this.state.turn, text, minor, state: this.state });
	}

	set(fields) {
		this.state = { ...this.state, ...bounded(fields) };
	}

	/** The Pokémon that an ident (`p1a: Name`) means: the one at its position, else the one with its name. */
	key(ident) {
		const position = positionOf(ident);
		const active = this.state.active[position];
		return position.length > 2 && active ? active : `${position.slice(0, 2)}: ${nameOf(ident)}`;
	}

	pokemon(ident) {
		return this.state.pokemon[this.key(ident)] ?? unseen(ident);
	}

	/** Change fields of the Pokémon that an ident means. */
	change(ident, fields) {
		const key = this.key(ident);
		this.set({ pokemon: { ...this.state.pokemon, [key]: { ...this.pokemon(ident), ...bounded(fields) } } });
	}

	side(text) {
		return this.state.sides[text.slice(0, 2)] ?? { name: text.slice(0, 2), teamSize: 0, conditions: {} };
	}

	changeSide(text, fields) {
		this.set({ sides: { ...this.state.sides, [text.slice(0, 2)]: { ...this.side(text), ...bounded(fields) } } });
	}

	changeEffects(ident, change) {
		const effects = { ...this.pokemon(ident).effects };
		change(effects);
		this.change(ident, { effects });
	}

	changeBoosts(ident, change) {
		const boosts = { ...this.pokemon(ident).boosts };
		change(boosts);
		for (const stat of Object.keys(boosts)) if (!boosts[stat]) delete boosts[stat];
		this.change(ident, { boosts });
	}

	/** `Ann's Pikachu` */
	whose(ident) {
		return `${this.side(ident).name}'s ${this.pokemon(ident).name}`;
	}

	/** ` (Leech Seed of Ann's Tangela)`, from the tags of a line; empty without any. */
	cause(tags) {
		if (!tags.from) return '';
		return ` (${effectName(tags.from)}${tags.of ? ` of ${this.whose(tags.of)}` : ''})`;
	}

	/**
	 * A new Pokémon at a position: the old one loses what leaving the field ends.
	 * @param {(name: string) => boolean} keep effects that the new one takes over, and `boosts`
	 * @param {boolean} disguised the old one was never there: an Illusion ends
	 */
	enter(ident, details, condition, keep, disguised = false) {
		const position = positionOf(ident), oldKey = this.state.active[position], old = this.pokemon(ident);
		if (oldKey) this.change(ident, { boosts: {}, effects: {}, species: speciesOf(old) });
		const { [position]: _, ...others } = this.state.active;
		const key = this.keyOf(ident, described(details), Object.values(others));
		const before = this.state.pokemon[key];
		this.set({ active: { ...others, [position]: key } });
		const effects = keep ? Object.entries(old.effects).filter(([name]) => keep(name)) : [];
		const tera = /, tera:(\w+)/.exec(details);
		if (tera) effects.push(['terastal', `Tera ${tera[1]}`]);
		this.change(ident, {
			...described(details), ...conditionOf(condition), boosts: keep?.('boosts') ? old.boosts : {},
			effects: Object.fromEntries(effects), before: before ? { hp: before.hp, status: before.status } : null,
		});
		if (disguised) { // what was done to the old one was done to the new one
			const { [oldKey]: disguise, ...real } = this.state.pokemon;
			const kept = disguise?.before ? { [oldKey]: { ...disguise, ...disguise.before } } : {};
			this.set({ pokemon: { ...real, ...kept } });
		}
	}

	/** Key of a Pokémon that enters; several of a side may have the same name. */
	keyOf(ident, { level, gender }, activeKeys) {
		const key = `${ident.slice(0, 2)}: ${nameOf(ident)}`;
		for (let number = 1; ; number++) {
			const numbered = number === 1 ? key : `${key}#${number}`, known = this.state.pokemon[numbered];
			const other = known && (known.status === 'fnt' || known.level !== level || known.gender !== gender);
			if (!other && !activeKeys.includes(numbered)) return numbered;
		}
	}
}

function split(rest) {
	const parts = [], tags = {};
	for (const part of rest) {
		const tag = /^\[([a-z]+)\] ?(.*)$/.exec(part);
		if (tag) tags[tag[1]] = tag[2];
		else parts.push(part);
	}
	return { parts, tags };
}

/** @throws {TypeError} a map among the fields has more entries than a battle makes */
function bounded(fields) {
	for (const value of Object.values(fields)) {
		if (value && typeof value === 'object' && Object.keys(value).length > MOST_ENTRIES) throw new TypeError('too many entries');
	}
	return fields;
}

const positionOf = ident => ident.split(':', 1)[0];
const nameOf = ident => ident.slice(ident.indexOf(':') + 1).trim();
const idOf = text => text.toLowerCase().replace(/[^a-z0-9]+/g, '');
const percent = hp => `${Math.round(hp * 10) / 10}%`;
const speciesOf = pokemon => pokemon.base ?? pokemon.species;

function unseen(ident) {
	return {
		side: ident.slice(0, 2), name: nameOf(ident), species: nameOf(ident), level: 100, gender: '', hp: 100, status: '',
		boosts: {}, effects: {},
	};
}

/** `Deoxys-Speed, L80, F, shiny, tera:Water` */
function described(details) {
	const [species, ...others] = details.split(', ');
	const level = others.find(part => /^L\d+$/.test(part));
	return {
		species, base: species, level: level ? Number(level.slice(1)) : 100,
		gender: others.includes('M') ? '♂' : others.includes('F') ? '♀' : '',
	};
}

/** `57/100 par`, `0 fnt`; in percent. Empty where a line has none. */
function conditionOf(text) {
	if (!text) return {};
	const [numbers, status = ''] = text.split(' ');
	const [hp, full] = numbers.split('/').map(number => Number.parseFloat(number));
	if (!Number.isFinite(hp)) throw new TypeError(`no hp: ${text}`);
	return { hp: full ? Math.max(0, Math.min(100, 100 * hp / full)) : 0, status: hp === 0 ? 'fnt' : status };
}

/** `move: Leech Seed` to `Leech Seed`, `psn` to `poison`. */
function effectName(text) {
	return STATUS[text] ?? WEATHER[text] ?? text.replace(/^(move|ability|item): ?/, '');
}

/** Counted effects (perish3, stockpile2, fallen1) have one name. */
const effectId = text => idOf(effectName(text)).replace(/\d+$/, '');

function setHp(log, [ident, condition], tags) {
	if (!condition) throw new TypeError('no hp');
	const before = log.pokemon(ident).hp;
	log.change(ident, conditionOf(condition));
	const { hp } = log.pokemon(ident), change = hp - before;
	const did = change < 0 ? `loses ${percent(-change)}` : change > 0 ? `gains ${percent(change)}` : 'keeps its hp';
	return `${log.whose(ident)} ${did}${log.cause(tags)}: ${percent(hp)} left`;
}

/** @throws {TypeError} no battle has such a stat */
function checkStats(names) {
	for (const name of names) if (!Object.hasOwn(STATS, name)) throw new TypeError(`no stat: ${name}`);
}

function boost(log, [ident, stat, amount], tags, kind) {
	checkStats([stat]);
	const steps = Number(amount), sign = kind === '-boost' ? 1 : -1;
	log.changeBoosts(ident, boosts => {
		boosts[stat] = Math.max(-6, Math.min(6, (boosts[stat] ?? 0) + sign * steps));
	});
	const how = steps ? `${sign > 0 ? 'rises' : 'falls'} by ${steps}` : `cannot go ${sign > 0 ? 'higher' : 'lower'}`;
	return `${log.whose(ident)}: ${STATS[stat]} ${how}${log.cause(tags)}`;
}

function clearBoosts(cleared, what) {
	return (log, [ident], tags) => {
		log.changeBoosts(ident, boosts => {
			for (const stat of Object.keys(boosts)) if (cleared(boosts[stat])) delete boosts[stat];
		});
		return `${log.whose(ident)}: ${what}${log.cause(tags)}`;
	};
}

function switchIn(log, [ident, details, condition], tags, kind) {
	const from = tags.from ? idOf(effectName(tags.from)) : '';
	const keep = from === 'batonpass' ? name => name === 'boosts' || PASSED_ON.includes(name) :
		from === 'shedtail' ? name => name === 'substitute' : null;
	const replaced = kind === 'replace';
	const now = replaced ? log.pokemon(ident) : null;
	log.enter(ident, details, condition ?? (now ? `${now.hp}/100 ${now.status}`.trim() : ''),
		replaced ? () => true : keep, replaced);
	const { name, species } = log.pokemon(ident), { name: owner } = log.side(ident);
	const full = name === species ? name : `${name} (${species})`;
	if (replaced) return `${owner}'s ${full} was in disguise`;
	return kind === 'drag' ? `${owner}'s ${full} is dragged out` : `${owner} sends out ${full}${log.cause(tags)}`;
}

function newForme(log, [ident, details, condition], tags, kind) {
	const { species, base, ...others } = described(details);
	const lasting = kind === 'detailschange' ? { base, ...others } : {};
	log.change(ident, { species, ...lasting, ...conditionOf(condition) });
	return `${log.whose(ident)} becomes ${species}${log.cause(tags)}`;
}

function startEffect(log, [ident, effect, ...more], tags) {
	const name = effectName(effect), id = effectId(effect);
	if (id === 'typechange' || id === 'typeadd') {
		const types = more[0] ?? 'another';
		log.changeEffects(ident, effects => {
			effects[id] = id === 'typeadd' ? `+ ${types} type` : `${types} type`;
		});
		return `${log.whose(ident)} ${id === 'typeadd' ? 'also has' : 'now has'} the type ${types}${log.cause(tags)}`;
	}
	const label = id === 'perish' ? `Perish in ${name.slice(-1)}` : name;
	log.changeEffects(ident, effects => {
		effects[id] = label;
	});
	const detail = more.length ? ` (${more.map(effectName).join(', ')})` : '';
	return `${log.whose(ident)}: ${label}${detail} starts${log.cause(tags)}`;
}

function endEffect(log, [ident, effect], tags) {
	const id = effectId(effect);
	log.changeEffects(ident, effects => {
		for (const name of Object.keys(effects)) if (name.startsWith(id)) delete effects[name];
	});
	return `${log.whose(ident)}: ${effectName(effect)} ends${log.cause(tags)}`;
}

function startSide(log, [side, condition], tags) {
	const name = effectName(condition), { conditions } = log.side(side);
	log.changeSide(side, { conditions: { ...conditions, [name]: (Object.hasOwn(conditions, name) ? conditions[name] : 0) + 1 } });
	return `${name} on ${log.side(side).name}'s side${log.cause(tags)}`;
}

function endSide(log, [side, condition], tags) {
	const name = effectName(condition), { [name]: _, ...conditions } = log.side(side).conditions;
	log.changeSide(side, { conditions });
	return `${name} leaves ${log.side(side).name}'s side${log.cause(tags)}`;
}

function weather(log, [name], tags) {
	if ('upkeep' in tags) return '';
	const before = log.state.weather;
	log.set({ weather: name === 'none' ? '' : WEATHER[name] ?? name });
	return name === 'none' ? `${before || 'The weather'} ends` : `${log.state.weather} starts${log.cause(tags)}`;
}

function swapBoosts(log, [first, second, stats = ''], tags) {
	const names = stats ? stats.split(',').map(stat => stat.trim()) : Object.keys(STATS);
	checkStats(names);
	const [one, two] = [log.pokemon(first).boosts, log.pokemon(second).boosts];
	for (const [ident, theirs] of [[first, two], [second, one]]) {
		log.changeBoosts(ident, boosts => {
			for (const stat of names) boosts[stat] = theirs[stat] ?? 0;
		});
	}
	return `${log.whose(first)} and ${log.whose(second)} exchange stat changes${log.cause(tags)}`;
}

function swapPositions(log, [ident, where]) {
	const from = positionOf(ident), side = from.slice(0, 2);
	const to = /^\d$/.test(where) ? side + 'abc'[Number(where)] : positionOf(where ?? ident);
	const words = `${log.whose(ident)} changes its position`;
	const { [from]: first, [to]: second, ...others } = log.state.active;
	const active = { ...others, [to]: first, ...(second && from !== to ? { [from]: second } : {}) };
	log.set({ active: Object.fromEntries(Object.entries(active).sort()) });
	return words;
}

function swapSides(log) {
	const { p1, p2, ...others } = log.state.sides;
	log.set({ sides: {
		p1: { ...p1, conditions: p2.conditions }, p2: { ...p2, conditions: p1.conditions }, ...others,
	} });
	return 'The sides exchange their conditions';
}

function gone(log, [ident, item], tags) {
	const how = 'eat' in tags ? 'eats its' : tags.from ? 'loses its' : 'uses its';
	return `${log.whose(ident)} ${how} ${item}${log.cause(tags)}`;
}

function move(log, [ident, name, target], tags) {
	const at = target && positionOf(target).length > 2 && positionOf(target) !== positionOf(ident);
	const missed = 'miss' in tags || 'notarget' in tags ? ', without a hit' : '';
	return `${log.whose(ident)} uses ${name}${at ? ` on ${log.whose(target)}` : ''}${missed}${log.cause(tags)}`;
}

function activate(log, [ident, effect = '', ...more], tags) {
	const detail = more.filter(Boolean).map(effectName).join(', ');
	const words = `${effectName(effect || ident)}${detail ? ` (${detail})` : ''}`;
	return effect && ident ? `${log.whose(ident)}: ${words}${log.cause(tags)}` : `${words}${log.cause(tags)}`;
}

/** @returns a handler: the Pokémon, then these words, an effect named by `{}`. */
function says(words) {
	return (log, [ident, effect = ''], tags) => (
		`${ident ? log.whose(ident) : 'A Pokémon'}${words.replace('{}', () => effectName(effect))}${log.cause(tags)}`);
}

const message = (log, parts, tags, kind, rest) => rest.join('|');
const chat = (log, parts, tags, kind, rest) => `${rest[0]}: ${rest.slice(1).join('|')}`;

const HANDLERS = {
	player: (log, [side, name]) => void (name && log.changeSide(side, { name })),
	teamsize: (log, [side, size]) => void log.changeSide(side, { teamSize: Number(size) }),
	gametype: () => '',
	gen: (log, [gen]) => void (log.gen = Number(gen)),
	tier: (log, [format]) => void (log.format = format),
	poke: (log, [side, details]) => `${log.side(side).name} brings ${details}`,
	turn: (log, [number]) => {
		log.set({ turn: Number(number) });
		return `Turn ${Number(number)}`;
	},
	win: (log, [name]) => (log.result = `${name} wins`),
	tie: log => (log.result = 'A tie'),

	move, switch: switchIn, drag: switchIn, replace: switchIn, detailschange: newForme, '-formechange': newForme,
	swap: swapPositions,
	'-center': () => 'The Pokémon move to the centre',
	cant: (log, [ident, reason, name]) => (
		`${log.whose(ident)} cannot ${name ? `use ${name}` : 'move'} (${UNABLE[reason] ?? effectName(reason)})`),
	faint: (log, [ident]) => {
		log.change(ident, { hp: 0, status: 'fnt', boosts: {}, effects: {} });
		return `${log.whose(ident)} faints`;
	},

	'-damage': setHp, '-heal': setHp,
	'-sethp': (log, parts, tags) => {
		const words = [];
		for (let i = 0; i + 1 < parts.length; i += 2) words.push(setHp(log, parts.slice(i, i + 2), tags));
		return words.join('; ');
	},
	'-status': (log, [ident, status], tags) => {
		log.change(ident, { status });
		return `${log.whose(ident)} ${AFFLICTED[status] ?? `has ${status}`}${log.cause(tags)}`;
	},
	'-curestatus': (log, [ident, status], tags) => {
		if (status !== 'confusion') log.change(ident, { status: '' });
		return `${log.whose(ident)} recovers from ${effectName(status)}${log.cause(tags)}`;
	},
	'-cureteam': (log, [ident], tags) => {
		const pokemon = Object.entries(log.state.pokemon).map(([key, one]) => (
			[key, one.side === ident.slice(0, 2) && one.status !== 'fnt' ? { ...one, status: '' } : one]));
		log.set({ pokemon: Object.fromEntries(pokemon) });
		return `${log.side(ident).name}'s team recovers${log.cause(tags)}`;
	},

	'-boost': boost, '-unboost': boost, '-swapboost': swapBoosts,
	'-setboost': (log, [ident, stat, amount], tags) => {
		checkStats([stat]);
		log.changeBoosts(ident, boosts => {
			boosts[stat] = Number(amount);
		});
		return `${log.whose(ident)}: ${STATS[stat]} is now at ${Number(amount)}${log.cause(tags)}`;
	},
	'-invertboost': (log, [ident], tags) => {
		log.changeBoosts(ident, boosts => {
			for (const stat of Object.keys(boosts)) boosts[stat] = -boosts[stat];
		});
		return `${log.whose(ident)}: stat changes are inverted${log.cause(tags)}`;
	},
	'-copyboost': (log, [ident, other], tags) => {
		const { boosts } = log.pokemon(other);
		log.change(ident, { boosts });
		return `${log.whose(ident)} copies the stat changes of ${log.whose(other)}${log.cause(tags)}`;
	},
	'-clearboost': clearBoosts(() => true, 'stat changes end'),
	'-clearpositiveboost': clearBoosts(amount => amount > 0, 'raised stats fall back'),
	'-clearnegativeboost': clearBoosts(amount => amount < 0, 'lowered stats come back'),
	'-clearallboost': (log, parts, tags) => {
		const pokemon = Object.entries(log.state.pokemon).map(([key, one]) => [key, { ...one, boosts: {} }]);
		log.set({ pokemon: Object.fromEntries(pokemon) });
		return `All stat changes end${log.cause(tags)}`;
	},

	'-weather': weather,
	'-fieldstart': (log, [condition], tags) => {
		const name = effectName(condition);
		log.set({ field: [...log.state.field.filter(other => other !== name), name] });
		return `${name} starts${log.cause(tags)}`;
	},
	'-fieldend': (log, [condition], tags) => {
		const name = effectName(condition);
		log.set({ field: log.state.field.filter(other => other !== name) });
		return `${name} ends${log.cause(tags)}`;
	},
	'-fieldactivate': (log, [condition], tags) => `${effectName(condition)}${log.cause(tags)}`,
	'-sidestart': startSide, '-sideend': endSide, '-swapsideconditions': swapSides,
	'-start': startEffect, '-end': endEffect,
	'-singleturn': says(': {} for this turn'), '-singlemove': says(': {} until its next move'),

	'-crit': says(': a critical hit'), '-supereffective': says(': super effective'),
	'-resisted': says(': not very effective'), '-immune': says(' is immune'), '-miss': (log, [ident, target]) => (
		`${log.whose(ident)} misses${target ? ` ${log.whose(target)}` : ''}`),
	'-ohko': () => 'A one-hit KO',
	'-fail': (log, [ident, effect], tags) => {
		const what = effect && effect !== 'move' ? ` (${effectName(effect)})` : '';
		return `${ident ? `${log.whose(ident)}: it` : 'It'} fails${what}${log.cause(tags)}`;
	},
	'-block': (log, [ident, effect = '', name = ''], tags) => (
		`${log.whose(ident)} is protected by ${effectName(effect)}${name ? ` from ${name}` : ''}${log.cause(tags)}`),
	'-notarget': () => 'There is no target',
	'-nothing': () => 'Nothing happens',
	'-hitcount': (log, [ident, count]) => `${Number(count)} ${Number(count) === 1 ? 'hit' : 'hits'}`,
	'-prepare': says(' prepares {}'),
	'-mustrecharge': says(' must recharge'),
	'-waiting': (log, [ident, other]) => `${log.whose(ident)} waits for ${log.whose(other)}`,
	'-combine': () => 'The two moves are combined',

	'-item': says(' has the item {}'), '-enditem': gone,
	'-ability': says(' has the ability {}'),
	'-endability': (log, [ident, ability], tags) => (
		`${log.whose(ident)}: ${ability ? `the ability ${effectName(ability)}` : 'its ability'} is suppressed${log.cause(tags)}`),
	'-transform': (log, [ident, other], tags) => {
		const { species, boosts } = log.pokemon(other);
		log.change(ident, { species, boosts });
		return `${log.whose(ident)} transforms into ${species}${log.cause(tags)}`;
	},
	'-mega': (log, [ident, , stone]) => `${log.whose(ident)} Mega Evolves${stone ? ` (${stone})` : ''}`,
	'-primal': says(' returns to its primal form'),
	'-burst': says(' uses Ultra Burst'),
	'-zpower': says(' uses its Z-Power'),
	'-zbroken': says(' is hit through its protection'),
	'-candynamax': (log, [side]) => `${log.side(side).name} can Dynamax`,
	'-terastallize': (log, [ident, type]) => {
		log.changeEffects(ident, effects => {
			effects.terastal = `Tera ${type}`;
		});
		return `${log.whose(ident)} terastallizes: type ${type}`;
	},
	'-activate': activate,

	'-message': message, message, '-hint': message, inactive: message, inactiveoff: message, error: message,
	bigerror: message, warning: message, c: chat, chat, 'c:': (log, parts, tags, kind, rest) => chat(log, parts, tags, kind, rest.slice(1)),
};
