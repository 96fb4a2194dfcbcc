// Opens a replay page in jsdom, works its controls and says what it shows.
//   node open_page.mjs [#turn=N] < page.html
// Prints {"title", "heading", "images", "scripts", "requests": [url,...], "errors": [text,...], "format", "unread", "turns",
// "steps", "text",
// "views": {name: {"count", "now", "current", "future", "bars": [percent,...], "chips", "statuses", "play"}}}

import { readFileSync } from 'node:fs';

import { JSDOM, ResourceLoader, VirtualConsole } from 'jsdom';

const requests = [], errors = [], views = {};

class Refusing extends ResourceLoader {
	fetch(url) {
		requests.push(url);
		return Promise.resolve(Buffer.from(''));
	}
}

const virtualConsole = new VirtualConsole();
virtualConsole.on('jsdomError', error => errors.push(String(error.detail ?? error.message)));
const timers = [];
const { window } = new JSDOM(readFileSync(0, 'utf8'), {
	url: `file:///replay.html${process.argv[2] ?? ''}`, runScripts: 'dangerously', resources: new Refusing(), virtualConsole,
	beforeParse(opened) { // time stands still: a test fires what is due
		opened.setTimeout = callback => timers.push(callback);
		opened.clearTimeout = number => {
			if (number !== null) timers[number - 1] = null;
		};
	},
});
const { document } = window;
const byId = id => document.getElementById(id);

function look(name) {
	const rows = [...byId('log').children];
	views[name] = {
		count: byId('count').textContent, now: byId('now').textContent, play: byId('play').textContent,
		current: rows.findIndex(row => row.classList.contains('current')),
		future: rows.filter(row => row.classList.contains('future')).length,
		bars: [...document.querySelectorAll('.fill')].map(fill => Number.parseFloat(fill.style.width)),
		chips: [...document.querySelectorAll('.pokemon .chip')].map(chip => chip.textContent),
		statuses: [...document.querySelectorAll('.status')].map(status => status.textContent),
	};
}

function fireTimers() {
	for (const callback of timers.splice(0)) callback?.();
}

look('opened');
byId('next').click();
look('next');
byId('back').click();
byId('back').click();
look('back');
byId('turn').value = byId('turn').max;
byId('turn').dispatchEvent(new window.Event('input'));
look('slid');
byId('log').lastElementChild.click();
look('end');
byId('play').click();
look('playing');
fireTimers();
fireTimers();
look('played');
byId('play').click();
fireTimers();
look('paused');
document.dispatchEvent(new window.KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
look('key');
process.stdout.write(JSON.stringify({
	title: document.title, heading: document.querySelector('h1').textContent, images: document.images.length,
	scripts: document.scripts.length, requests, errors, views, format: byId('format').textContent,
	unread: byId('unread').textContent, turns: Number(byId('turn').max), steps: byId('log').children.length,
	text: document.querySelector('main').textContent,
}));
