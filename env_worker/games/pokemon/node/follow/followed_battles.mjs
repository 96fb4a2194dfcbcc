// Battles that run elsewhere: the commands `follow`, `see`, `hear`, `choose`, `refuse`, `end` and `stop` of host.mjs.

import { Battles } from '../battles.mjs';
import { FollowedBattle } from './followed_battle.mjs';

export class FollowedBattles extends Battles {
	/** @returns {boolean} false: no such command */
	execute(command, tables) {
		switch (command.c) {
		case 'follow': this.add(new FollowedBattle(command, this.outbox, tables)); return true;
		case 'see':
		case 'hear':
		case 'choose':
		case 'refuse':
		case 'end': this.pass(command); return true;
		case 'stop': this.stop(command.b); return true;
		default: return false;
		}
	}

	/** A battle that is gone is not told: its owner has heard of the end, or ended it. */
	pass(command) {
		const battle = this.running.get(command.b);
		if (!battle) return;
		this.guard(command.b, () => battle[command.c](command));
		if (battle.ended) this.forget(command.b);
	}

	stop(id) {
		this.running.get(id)?.giveCounts();
		this.forget(id);
	}
}
