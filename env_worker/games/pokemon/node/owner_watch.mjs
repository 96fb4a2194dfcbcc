// A thread beside the host's: ends the process when its owner is gone, whatever the host is doing. The host
// itself notices only at its next read or write, which a battle that never ends would never reach.

import { workerData } from 'node:worker_threads';

const LOOK_EVERY_MS = 1000;

setInterval(() => {
	if (process.ppid !== workerData.owner) process.kill(process.pid, 'SIGKILL');
}, LOOK_EVERY_MS);
