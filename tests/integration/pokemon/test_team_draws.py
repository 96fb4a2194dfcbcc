"""The teams that the host draws for its battles are those that the simulator would draw, kept or not."""

import subprocess

import orjson
import pytest

from simul.env_worker.games.pokemon.install.folder import HOST_FOLDER
from simul.env_worker.games.pokemon.install.node import find_node

FORMATS = [*(f"gen{gen}randombattle" for gen in range(1, 10)), "gen9randomdoublesbattle", "gen8battlefactory", "gen9ou"]
COMPARE = """
import { loadSimulator } from './simulator.mjs';
import { keepsTeams, TeamDraws } from './team_draws.mjs';
const { sim } = loadSimulator();
const draws = new TeamDraws(sim);
const found = {};
const keeps = [];
for (const id of JSON.parse(process.argv[1])) {
	const format = sim.Dex.formats.get(id);
	if (keepsTeams(format)) keeps.push(id);
	const same = [];
	for (let battle = 0; battle < 6; battle++) {
		const seeds = [0, 1].map(seat => [battle, seat, 7, 7].join(','));
		const ours = [false, true, true].map(keep => seeds.map(seed => draws.draw(format, seed, keep)));
		if (ours.flat().every(team => team === undefined)) continue;
		const generator = sim.Teams.getGenerator(format, seeds[0]);
		const theirs = seeds.map(seed => (generator.setSeed(seed), generator.getTeam({ seed })));
		same.push(ours.every(teams => JSON.stringify(teams) === JSON.stringify(theirs)) && ours[1][0] !== ours[2][0]);
	}
	found[id] = same;
}
process.stdout.write(JSON.stringify({ found, keeps, kept: draws.kept.size }));
"""


KEPT = {*(f"gen{gen}randombattle" for gen in range(4, 10)), "gen9randomdoublesbattle"}


def test_the_host_says_whose_teams_it_keeps(host):
    assert [host.check_format(name, [])["reusable"] for name in ("gen9randombattle", "gen9ou")] == [True, False]


@pytest.mark.slow  # .ci/long runs it
def test_the_teams_are_the_simulators_own():
    command = [str(find_node().path), "--input-type=module", "-e", COMPARE, orjson.dumps(FORMATS).decode()]
    done = subprocess.run(command, capture_output=True, check=True, cwd=HOST_FOLDER / "simulate")
    answer = orjson.loads(done.stdout)
    drawn = {name for name, same in answer["found"].items() if same}
    assert drawn == set(answer["keeps"]) == KEPT
    assert all(answer["found"][name] == [True] * 6 for name in drawn)
    assert answer["kept"] == len(drawn) * 12
