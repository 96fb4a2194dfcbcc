// Writes one seat's battle into the layout: float16.
//
// Reads a SeatTracker, so only what that seat has been told.

import { DamageBlock } from '../damage/writer.mjs';
import { TeamBlocks } from './blocks.mjs';
import { writeActive, writeAsked, writeField, writeLast, writeSides } from './global_block.mjs';
import { GLOBAL, MOVE, POKEMON } from './layout.mjs';
import { MoveBlocks } from './move_features.mjs';
import { SetBlocks } from './set_knowledge.mjs';
import { BattleEncoder, firstSix } from './survey.mjs';

export class SeatEncoder extends BattleEncoder {
	/** @param {object} battle a SeatTracker */
	constructor(battle, tables) {
		super(battle, tables);
		const { observation } = this, { layout } = tables;
		this.teams = new TeamBlocks(observation, tables, POKEMON, [POKEMON.at.deals]);
		this.damage = layout.attackers ? new DamageBlock(observation, tables) : null;
		this.sets = tables.sets ? new SetBlocks(observation, tables) : null;
		this.moves = new MoveBlocks(observation, tables, MOVE, layout.move_start, [MOVE.at.effectiveness], this.damage);
	}

	/** Brings `observation` and `standing` up to date; the battle must be in sync with the request. */
	encode(request, choices) {
		const { battle, fieldState, teams, mine, theirs } = this;
		const own = firstSix(battle.team), foes = battle.foes();
		this.survey(own, foes);
		if (mine.out >= 0) battle.dirty.add(mine.out);
		teams.writeOwnBodies(battle, own);
		teams.writeFoeBodies(foes, this.met);
		this.sets?.write(foes);
		fieldState.read(this.tables, battle);
		teams.stand(fieldState, own, foes, [mine.out], [theirs.out]);
		teams.writePairs(fieldState, own, foes);
		// At a team preview no Pokemon is active: the damage stays 0.
		if (this.damage && !request.teamPreview) this.damage.write(battle, teams, own, foes, mine.out, theirs.out);
		this.writeGlobal(request, choices.reviving);
		this.writeMoves(request, choices);
		this.observation.set(choices.mask, this.tables.layout.mask_start);
	}

	writeGlobal(request, reviving) {
		const { battle, observation: out, fieldState, standing, tables, teams } = this, { at, scale } = GLOBAL;
		out[at.turn] = Math.min(battle.turn / scale.turn, 1);
		out[at.reviving] = reviving ? 1 : 0;
		writeAsked(out, 0, at, request.forceSwitch, request.active?.[0]);
		writeField(out, at, fieldState);
		writeSides(out, at, fieldState, battle, standing);
		writeActive(out, at.own_active, tables, teams.ownFighters[0].mon);
		writeActive(out, at.foe_active, tables, teams.foeFighters[0].mon);
		writeLast(out, at.own_last, battle.lastTurn.own);
		writeLast(out, at.foe_last, battle.lastTurn.foe);
	}

	writeMoves(request, choices) {
		const { ownFighters: [user], foeFighters } = this.teams;
		if (user.mon === null || !request.active) {
			this.moves.clear();
			return;
		}
		const known = this.battle.entries[this.mine.out].moves;
		this.moves.write(this.fieldState, user, foeFighters, known, choices, !!request.active[0].canTerastallize);
	}
}
