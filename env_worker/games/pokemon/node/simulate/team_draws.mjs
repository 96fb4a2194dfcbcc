// Teams of formats that draw them. A seed names a team: the same one gives the same team, in every battle and process.

const MOST_KEPT = 1024; // about 1.5 KB each
const STATELESS = /^gen[4-9]$/; // before, and in factories, what one seat has drawn narrows what the other may draw

/** Whether a seed alone names a team of a format. */
export function keepsTeams(format) {
	return format.team === 'random' && STATELESS.test(format.mod);
}

export class TeamDraws {
	constructor(sim) {
		this.sim = sim;
		this.generators = new Map(); // by format: building one takes as long as a fifth of a team
		this.kept = new Map(); // format and seed: JSON, the oldest first
	}

	/**
	 * @param {string} seed
	 * @param {boolean} keep whether it will be asked for again
	 * @returns {object[] | undefined} sets of its own for each caller; undefined: the battle must draw for itself
	 */
	draw(format, seed, keep) {
		if (!keepsTeams(format)) return undefined;
		if (!keep) return this.generate(format, seed);
		const name = `${nameOf(format)}/${seed}`;
		let team = this.kept.get(name);
		if (team === undefined) {
			team = JSON.stringify(this.generate(format, seed));
			this.kept.set(name, team);
			if (this.kept.size > MOST_KEPT) this.kept.delete(this.kept.keys().next().value);
		}
		return JSON.parse(team);
	}

	generate(format, seed) {
		const name = nameOf(format);
		let generator = this.generators.get(name);
		if (generator) generator.setSeed(seed);
		else this.generators.set(name, generator = this.sim.Teams.getGenerator(format, seed));
		return generator.getTeam({ seed });
	}
}

function nameOf({ id, customRules }) {
	return customRules ? `${id}@@@${customRules}` : id;
}
