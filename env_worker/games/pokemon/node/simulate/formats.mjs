// Whether a format can be played here, and whether teams are legal in it, as the simulator decides.

import { keepsTeams } from './team_draws.mjs';

const TEAM_SIZE = 6, MOVES = 4; // of an observation
const LONGEST_NAME = 20; // the simulator cuts names

/**
 * @param {string[]} teams as people write them (Showdown's export) or packed; none for formats that draw their own
 * @returns {{id: string, problem: string, rules: string, doubles: boolean, reusable: boolean, formats: string[],
 *            teams: string[], illegal: [number, string[]][]}}
 *    id: the format as the simulator spells it, without custom rules;
 *    problem: '' | 'unknown' (then `formats` lists what there is) | 'rules' (then `rules` is the simulator's objection)
 *    | 'players' | 'kind' | 'species' (it has some of its own) | 'size' (of the teams that it draws) | 'teams' (it needs
 *    some) | 'draws' (it needs none);
 *    reusable: a seed names the same drawn team in every battle;
 *    teams: packed; illegal: place of a team, and what the validator says of it or why no observation describes it
 */
export function checkFormat(sim, id, teams) {
	const format = sim.Dex.formats.get(id), rules = format.exists ? objectionToRules(sim, id) : '';
	const problem = rules ? 'rules' : problemOf(sim, format, teams), doubles = format.gameType === 'doubles';
	const answer = {
		id: format.id, problem, rules, doubles, reusable: keepsTeams(format), formats: [], teams: [], illegal: [],
	};
	if (problem === 'unknown') answer.formats = sim.Dex.formats.all().map(known => known.id);
	if (problem || format.team) return answer;
	const validator = sim.TeamValidator.get(format);
	teams.forEach((text, place) => {
		const team = sim.Teams.import(text);
		let objections = team?.length ? validator.validateTeam(team) : ['there is no team in it'];
		const packed = sim.Teams.pack(team);
		if (!objections?.length) objections = unobservable(sim, sim.Teams.unpack(packed));
		if (objections.length) answer.illegal.push([place, objections]);
		else answer.teams.push(packed);
	});
	return answer;
}

/** Custom rules stand behind `@@@`; a format that is asked for leaves out those that the simulator cannot take. */
function objectionToRules(sim, id) {
	if (!id.includes('@@@')) return '';
	try {
		sim.Dex.formats.validate(id);
		return '';
	} catch (error) {
		return error.message.replace(/\.$/, '');
	}
}

function problemOf(sim, format, teams) {
	if (!format.exists) return 'unknown';
	if (format.playerCount !== 2) return 'players';
	if (format.gameType !== 'singles' && format.gameType !== 'doubles') return 'kind';
	if (hasOwnSpecies(sim, format)) return 'species';
	if (!format.team) return teams.length ? '' : 'teams';
	if (teams.length) return 'draws';
	return sim.Dex.formats.getRuleTable(format).maxTeamSize > TEAM_SIZE ? 'size' : '';
}

/** Whether its mod has species that its generation does not have. */
function hasOwnSpecies(sim, format) {
	const dex = sim.Dex.forFormat(format), { Pokedex } = sim.Dex.mod(`gen${dex.gen}`).data;
	return Object.keys(dex.data.Pokedex).some(species => !(species in Pokedex));
}

/** Why no observation describes a team that the validator allows: custom games have next to no limits. */
function unobservable(sim, team) {
	const reasons = [], names = new Set();
	if (team.length > TEAM_SIZE) reasons.push(`it has ${team.length} Pokemon, ${TEAM_SIZE} can be observed.`);
	for (const set of team) {
		const name = nameInBattle(sim, set);
		if (set.moves.length > MOVES) reasons.push(`${name} has ${set.moves.length} moves, ${MOVES} can be chosen.`);
		if (names.has(name)) {
			reasons.push(`two of its Pokemon are called ${name}, and only names tell them apart: give one a nickname.`);
		}
		names.add(name);
	}
	return reasons;
}

/** By which lines and requests name it: see the constructor of the simulator's Pokemon. */
function nameInBattle(sim, { name, species }) {
	const own = name && name !== species ? name : sim.Dex.species.get(species || name).baseSpecies;
	return own.slice(0, LONGEST_NAME);
}
