// The battles of one process by number: an error inside one ends that one only.

export class Battles {
	/** @param {Outbox} outbox */
	constructor(outbox) {
		this.outbox = outbox;
		this.running = new Map();
	}

	add(battle) {
		this.running.set(battle.id, battle);
	}

	guard(id, action) {
		try {
			action();
		} catch (error) {
			process.stderr.write(`battle ${id} crashed: ${error.stack}\n`);
			const turns = this.running.get(id)?.turn ?? 0;
			this.outbox.error(id, null, null, 'crashed', error.message);
			this.outbox.end(id, null, turns, 'crashed');
			this.forget(id);
		}
	}

	forget(id) {
		const battle = this.running.get(id);
		this.running.delete(id);
		try {
			battle?.destroy();
		} catch (error) {
			process.stderr.write(`battle ${id} was not freed cleanly: ${error.message}\n`);
		}
	}
}
