// Whether a format can be played here, and whether teams are legal in it, as the simulator decides.

/**
 * @param {string[]} teams as people write them (Showdown's export) or packed; none for formats that draw their own
 * @returns {{problem: string, doubles: boolean, formats: string[], teams: string[], illegal: [number, string[]][]}}
 *    problem: '' | 'unknown' (then `formats` lists what there is) | 'players' | 'kind' | 'teams' (it needs some)
 *    | 'draws' (it needs none);
 *    teams: packed; illegal: place of a team and what the validator says of it
 */
export function checkFormat(sim, id, teams) {
	const answer = { problem: '', doubles: false, formats: [], teams: [], illegal: [] };
	const format = sim.Dex.formats.get(id);
	answer.doubles = format.gameType === 'doubles';
	if (!format.exists) {
		answer.problem = 'unknown';
		answer.formats = sim.Dex.formats.all().map(known => known.id);
	} else if (format.playerCount !== 2) {
		answer.problem = 'players';
	} else if (format.gameType !== 'singles' && format.gameType !== 'doubles') {
		answer.problem = 'kind';
	} else if (!format.team && !teams.length) {
		answer.problem = 'teams';
	} else if (format.team && teams.length) {
		answer.problem = 'draws';
	}
	if (answer.problem || format.team) return answer;
	const validator = sim.TeamValidator.get(format);
	teams.forEach((text, place) => {
		const team = sim.Teams.import(text);
		const objections = team?.length ? validator.validateTeam(team) : ['there is no team in it'];
		if (objections?.length) answer.illegal.push([place, objections]);
		else answer.teams.push(sim.Teams.pack(team));
	});
	return answer;
}
