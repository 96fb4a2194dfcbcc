// The player of a replay page: shows the steps of a BattleLog in the page's elements. All text becomes text nodes.

import { BattleLog } from './battle_log.mjs';
import { make, sideView } from './side_view.mjs';

const STEP_MS = 700; // at speed 1
const MOST_STEPS = 20000; // shown; a battle of 1,000 turns, the most that the simulator allows, has about as many

const byId = id => document.getElementById(id);

class Player {
	/** @param {string[]} lines of the log */
	constructor(lines) {
		this.log = new BattleLog(lines);
		this.steps = this.log.steps.length ? this.log.steps.slice(0, MOST_STEPS) : [
			{ turn: 0, text: 'The log is empty.', minor: true, state: this.log.state },
		];
		this.at = 0;
		this.timer = null;
		this.sides = Object.keys(this.steps.at(-1).state.sides).sort();
		this.rows = this.steps.map((step, index) => this.row(step, index));
		for (const row of this.rows) byId('log').append(row);
		byId('format').textContent = this.log.format;
		byId('unread').textContent = this.leftOut().join('. ');
		byId('turn').max = String(this.steps.at(-1).turn);
		this.listen();
		this.show(this.firstOf(Number(/^#turn=(\d+)$/.exec(location.hash)?.[1] ?? 1)));
	}

	/** What of the log is not shown, in words. */
	leftOut() {
		const { unread, steps } = this.log, words = [];
		if (steps.length > MOST_STEPS) words.push(`${steps.length - MOST_STEPS} steps after the first ${MOST_STEPS} are not shown`);
		if (unread.length) words.push(`${unread.length} lines of the log are not shown: ${unread[0]}`);
		return words;
	}

	/** A line of the text log; a click goes there. */
	row(step, index) {
		const kind = /^Turn \d+$/.test(step.text) ? 'turn' : step.minor ? 'minor' : 'major';
		const row = make('div', kind, step.text);
		row.addEventListener('click', () => this.show(index));
		return row;
	}

	listen() {
		byId('play').addEventListener('click', () => (this.timer === null ? this.play() : this.pause()));
		byId('back').addEventListener('click', () => this.seek(this.at - 1));
		byId('next').addEventListener('click', () => this.seek(this.at + 1));
		byId('turn').addEventListener('input', event => this.seek(this.firstOf(Number(event.target.value))));
		document.addEventListener('keydown', event => {
			if (['SELECT', 'INPUT', 'BUTTON'].includes(event.target.tagName)) return;
			if (event.key === 'ArrowLeft') this.seek(this.at - 1);
			else if (event.key === 'ArrowRight') this.seek(this.at + 1);
			else if (event.key === ' ') byId('play').click();
			else return;
			event.preventDefault();
		});
	}

	play() {
		if (this.at === this.steps.length - 1) this.show(0);
		byId('play').textContent = 'Pause';
		const tick = () => {
			this.show(this.at + 1);
			if (this.at === this.steps.length - 1) this.pause();
			else this.timer = setTimeout(tick, STEP_MS / Number(byId('speed').value));
		};
		this.timer = setTimeout(tick, STEP_MS / Number(byId('speed').value));
	}

	pause() {
		clearTimeout(this.timer);
		this.timer = null;
		byId('play').textContent = 'Play';
	}

	seek(index) {
		this.pause();
		this.show(index);
	}

	/** Index of the first step of a turn, or of the next turn that has one. */
	firstOf(turn) {
		const found = this.steps.findIndex(step => step.turn >= turn);
		return found < 0 ? this.steps.length - 1 : found;
	}

	/** Show the battle after one step. */
	show(index) {
		this.at = Math.max(0, Math.min(this.steps.length - 1, index));
		const { state, turn, text } = this.steps[this.at], last = this.steps.at(-1).turn;
		byId('turn').value = String(turn);
		byId('count').textContent = `Turn ${turn} of ${last}`;
		byId('now').textContent = text;
		byId('weather').textContent = [state.weather, ...state.field].filter(Boolean).join(', ') || 'No weather';
		byId('sides').replaceChildren(...this.sides.filter(side => Object.hasOwn(state.sides, side)).map(side => sideView(state, side)));
		this.rows.forEach((row, number) => {
			row.classList.toggle('future', number > this.at);
			row.classList.toggle('current', number === this.at);
		});
		const box = byId('log'), row = this.rows[this.at];
		if (row) box.scrollTop = row.offsetTop - box.offsetTop - box.clientHeight + 2 * row.offsetHeight;
	}
}

new Player(JSON.parse(byId('battle').textContent));
