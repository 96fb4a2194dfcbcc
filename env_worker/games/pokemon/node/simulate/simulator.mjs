// Loads the pinned simulator, accelerated if that is asked for and this is the version it is made for.

import { createRequire } from 'node:module';
import path from 'node:path';

import { accelerate } from './accelerate/accelerate.mjs';

const require = createRequire(import.meta.url);

/** @returns {{sim: object, version: string, accelerated: boolean, note: string}} */
export function loadSimulator(wantAccelerated = true) {
	const entry = require.resolve('pokemon-showdown');
	const packageFolder = path.resolve(path.dirname(entry), '..', '..');
	const { version } = require(path.join(packageFolder, 'package.json'));
	const sim = require(entry);
	globalThis.Dex ??= sim.Dex; // rules of some formats read it there, as in Showdown's server
	if (!wantAccelerated) return { sim, version, accelerated: false, note: 'acceleration is off' };
	const { accelerated, note } = accelerate(sim, path.dirname(entry));
	return { sim, version, accelerated, note };
}
