// Showdown's config/config.js for a server that an env worker runs for itself: this machine only.
// The worker gives it in the environment; what is not here is as in config-example.js.

'use strict';

const LOOK_EVERY_MS = 1000;

exports.port = Number(process.env.SIMUL_SHOWDOWN_PORT);
exports.bindaddress = '127.0.0.1';
exports.repl = false;
exports.crashguard = false;
exports.autosavereplays = false;
exports.logchallenges = process.env.SIMUL_SHOWDOWN_LOG === '1';
const subprocesses = JSON.parse(process.env.SIMUL_SHOWDOWN_SUBPROCESSES || '{}');
exports.subprocesses = subprocesses && { ...require('./config-example').subprocesses, ...subprocesses };

if (!process.send) { // the main process, not one of its children
	const owner = process.ppid;
	setInterval(() => {
		if (process.ppid !== owner) process.exit(0); // whoever started it is gone
		if (exports.logchallenges) return; // a room that goes while its log is being written takes the server with it
		for (const room of global.Rooms?.rooms?.values() ?? []) { // Showdown keeps rooms for ten minutes
			if (room.battle?.ended && !room.userCount) room.destroy();
		}
	}, LOOK_EVERY_MS).unref();
}
