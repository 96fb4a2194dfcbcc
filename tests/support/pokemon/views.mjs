// What the host's views make of what tests tell them: commands as JSON, one a line; see views.py.
//   {"tables": name, "value": encoder_tables(...)}
//   {"open": id, "tables": name, "seat": 0|1, "free_switches": n|null, "seed": n}
//   {"view": id, "lines": text, "request": request|null, "refused": bool, "actions": [action, ...]|"random"|null, "anew": bool}
//     refused: the simulator has called the last choice unavailable; null actions: nothing is answered yet
//   {"view": id, "act": action}
//   {"view": id, "refuse": true}
//   {"close": id}
// Those of a view are answered, one a line: {"decisions": [...], "words", "errors", "turn", "final", "crashed"}.

import { createInterface } from 'node:readline';

import { EncoderTables } from '../../../env_worker/games/pokemon/node/encoder/host_tables.mjs';
import { SeatView } from '../../../env_worker/games/pokemon/node/follow/seat_view.mjs';
import { oneOf, seededRandom } from '../../../env_worker/games/pokemon/node/random.mjs';

const tables = new Map(), views = new Map();

class TestedView {
	constructor({ tables: name, seat, free_switches: freeSwitches, seed }) {
		this.view = new SeatView(tables.get(name), seat, freeSwitches);
		this.random = seededRandom(seed);
	}

	take(command) {
		if (command.act !== undefined) return this.act(command.act);
		if (command.refuse) return { decisions: this.view.refuse() ? [this.decision()] : [] };
		return this.see(command);
	}

	see({ lines, request, refused, actions, anew }) {
		const { view } = this, told = lines.split('\n');
		if (refused) view.unavailable();
		if (request === null) {
			view.hear(told, null);
			return { decisions: [], final: view.final() };
		}
		view.see(told, request);
		if (actions === null) return { decisions: [this.decision()], anew: anew ? this.writtenAnew(request) : undefined };
		const decisions = [];
		let words = '';
		for (let n = 0; actions === 'random' ? words === '' : n < actions.length; n++) {
			decisions.push(this.decision());
			words = this.answer(actions === 'random' ? oneOf(this.legal(), this.random) : actions[n]);
		}
		return { decisions, words };
	}

	act(action) {
		const words = this.answer(action);
		return { decisions: words === '' ? [this.decision()] : [], words };
	}

	answer(action) {
		const words = this.view.command(action);
		if (words === null) throw new Error(`${action} is not legal`);
		return words;
	}

	legal() {
		return [...this.view.shown.choices.mask.keys()].filter(action => this.view.shown.choices.mask[action] === 1);
	}

	decision() {
		const { shown } = this.view, counts = shown.tally?.counts ?? [0, 0, 0, 0];
		return [Buffer.from(shown.bytes).toString('base64'), shown.choices.mask.join(''), [...shown.encoder.standing],
			shown.tracker.turn, [...counts], shown.pick];
	}

	/** Whether an encoder that has seen nothing before writes the same. */
	writtenAnew(request) {
		const { view } = this, encoder = new view.kind.Encoder(view.tracker, view.tables);
		encoder.encode(request, view.tables.doubles ? view.steps : view.choices);
		return Buffer.compare(new Uint8Array(encoder.observation.buffer), view.bytes) === 0;
	}
}

function answered(tested, command) {
	let answer;
	try {
		answer = tested.take(command);
	} catch (error) {
		answer = { decisions: [], crashed: error.stack };
	}
	const { tracker } = tested.view;
	return { ...answer, errors: Object.fromEntries(tracker.parseErrors), turn: tracker.turn };
}

for await (const line of createInterface({ input: process.stdin })) {
	const command = JSON.parse(line);
	if (command.value) tables.set(command.tables, new EncoderTables(command.value));
	else if (command.open !== undefined) views.set(command.open, new TestedView(command));
	else if (command.close !== undefined) views.delete(command.close);
	else process.stdout.write(`${JSON.stringify(answered(views.get(command.view), command))}\n`);
}
