// Battles that are simulated in this process: the commands `start`, `choose`, `spectate`, `stop` and `format` of host.mjs.

import { Battles } from '../battles.mjs';
import { checkFormat } from './formats.mjs';
import { HostedBattle } from './hosted_battle.mjs';
import { loadSimulator } from './simulator.mjs';
import { TeamDraws } from './team_draws.mjs';

/** @returns {{battles: HostedBattles, hello: object}} `hello`: what the greeting says of the simulator */
export function hostedBattles(outbox, wantAccelerated) {
	const { sim, version, accelerated, note } = loadSimulator(wantAccelerated);
	if (wantAccelerated && !accelerated) process.stderr.write(`the simulator runs plain: ${note}\n`);
	return { battles: new HostedBattles(outbox, sim), hello: { showdown: version, accelerated, note } };
}

class HostedBattles extends Battles {
	constructor(outbox, sim) {
		super(outbox);
		this.sim = sim;
		this.draws = new TeamDraws(sim);
	}

	/** @returns {boolean} false: no such command */
	execute(command, tables) {
		switch (command.c) {
		case 'choose': this.choose(command); return true;
		case 'start': this.start(command, tables); return true;
		case 'spectate': this.spectate(command); return true;
		case 'stop': this.stop(command.b); return true;
		case 'format': this.outbox.format = checkFormat(this.sim, command.format, command.teams); return true;
		default: return false;
		}
	}

	start(command, tables) {
		if (this.running.has(command.b)) {
			this.outbox.error(command.b, null, null, 'malformed', 'this battle is already running');
			return;
		}
		this.guard(command.b, () => {
			const battle = new HostedBattle(this.sim, command, this.outbox, tables, this.draws);
			this.add(battle);
			battle.playBots();
			this.collect(battle);
		});
	}

	choose(command) {
		const battle = this.running.get(command.b);
		if (!battle) {
			this.outbox.error(command.b, command.s, command.r, 'stale', 'no such battle');
			return;
		}
		this.guard(command.b, () => {
			battle.choose(command.s, command.r, command.choice, command.a);
			this.collect(battle);
		});
	}

	/** A battle that is over already is watched no more. */
	spectate(command) {
		const battle = this.running.get(command.b);
		if (!battle) return;
		battle.spectated = command.on;
		this.collect(battle);
	}

	stop(id) {
		const battle = this.running.get(id);
		if (!battle) return;
		battle.giveLog();
		battle.giveBots();
		this.outbox.end(id, null, battle.turn, 'stopped');
		this.forget(id);
	}

	collect(battle) {
		if (battle.ended) this.forget(battle.id);
		else if (battle.spectated) battle.showLog();
	}
}
