// Writes a slot's decision of doubles into the layout: float16.

import { TARGETS, meaning } from './double_actions.mjs';
import { TeamBlocks } from './blocks.mjs';
import { writeActive, writeAsked, writeField, writeSides } from './global_block.mjs';
import { ASKED, DOUBLES_GLOBAL, DOUBLES_MOVE, DOUBLES_POKEMON, FIRST } from './layout.mjs';
import { MoveBlocks } from './move_features.mjs';
import { BattleEncoder, firstSix } from './survey.mjs';

const PAIRS = [DOUBLES_POKEMON.at.left, DOUBLES_POKEMON.at.right];
const TERASTALLIZE = 3; // of can_gimmick
const AGAINST = [DOUBLES_MOVE.at.left, DOUBLES_MOVE.at.right];

export class DoubleEncoder extends BattleEncoder {
	/** @param {object} battle a DoubleTracker */
	constructor(battle, tables) {
		super(battle, tables);
		const { observation } = this, { layout } = tables;
		this.teams = new TeamBlocks(observation, tables, DOUBLES_POKEMON, PAIRS);
		this.moves = [layout.move_start, layout.partner_move_start]
			.map(start => new MoveBlocks(observation, tables, DOUBLES_MOVE, start, AGAINST));
	}

	/**
	 * Brings `observation` and `standing` up to date; the battle must be in sync with the request.
	 * @param {object} asked the slot that decides (0 left, 1 right), its `choices`, the `others`, and `first`: the left
	 * one's action once it is made
	 */
	encode(request, asked) {
		const { battle, fieldState, observation: out, standing, teams } = this, { at, scale } = DOUBLES_GLOBAL;
		const own = firstSix(battle.team), foes = battle.foes();
		this.survey(own, foes);
		const { foePair } = battle;
		const ownOut = placesIn(own, battle.ownPair), foeOut = placesIn(foes, foePair);
		for (const i of ownOut) if (i >= 0) battle.dirty.add(i);
		teams.writeOwnBodies(battle, own);
		teams.writeFoeBodies(foes, this.met);
		this.writeSlots(this.tables.layout.own_start, own.length, ownOut);
		this.writeSlots(this.tables.layout.foe_start, foes.length, foeOut);
		fieldState.read(this.tables, battle);
		teams.stand(fieldState, own, foes, ownOut, foeOut);
		teams.writePairs(fieldState, own, foes);
		out[at.turn] = Math.min(battle.turn / scale.turn, 1);
		writeField(out, at, fieldState);
		writeSides(out, at, fieldState, battle, standing);
		writeActive(out, at.left_foe_active, this.tables, foePair[0]);
		writeActive(out, at.right_foe_active, this.tables, foePair[1]);
		this.encodeSlot(request, asked);
	}

	/** Writes what differs between the decisions of one request. */
	encodeSlot(request, asked) {
		const { observation: out, tables, teams: { ownFighters } } = this, { at } = DOUBLES_GLOBAL;
		const { slot, choices, others, first } = asked;
		out[at.right] = slot;
		out[at.reviving] = choices.reviving ? 1 : 0;
		writeAsked(out, at.self, ASKED.at, request.forceSwitch?.[slot], request.active?.[slot]);
		writeAsked(out, at.partner, ASKED.at, request.forceSwitch?.[1 - slot], request.active?.[1 - slot]);
		const { spent } = choices;
		if (spent > 0) out[at.self + ASKED.at.can_gimmick + spent - 1] = 0; // one of a side may use it
		this.writeFirst(first, others);
		writeActive(out, at.self_active, tables, ownFighters[slot].mon);
		writeActive(out, at.partner_active, tables, ownFighters[1 - slot].mon);
		this.writeMoves(this.moves[0], request, slot, choices, at.self);
		this.writeMoves(this.moves[1], request, 1 - slot, others, at.partner);
		out.set(choices.mask, tables.layout.mask_start);
	}

	/** Who stands left and who right, by place in the team; the fainted do not stand. */
	writeSlots(start, count, [left, right]) {
		const { observation: out } = this, { at, width } = DOUBLES_POKEMON;
		for (let i = 0; i < count; i++) {
			const to = start + i * width;
			out[to + at.active] = i === left || i === right ? 1 : 0;
			out[to + at.slot] = i === left ? 1 : 0;
			out[to + at.slot + 1] = i === right ? 1 : 0;
		}
	}

	/** What the left slot has chosen. @param {number | null} action */
	writeFirst(action, left) {
		const { observation: out, tables } = this, start = DOUBLES_GLOBAL.at.first, { at } = FIRST;
		out.fill(0, start, start + FIRST.width);
		if (action === null) return;
		const { member, move, target, gimmick } = meaning(action);
		out[start + at.made] = 1;
		if (member >= 0) out[start + at.switch + member] = 1;
		if (gimmick > 0) out[start + at.gimmick + gimmick - 1] = 1;
		if (move < 0) return;
		const entry = left.moveEntries[move];
		out[start + at.move] = entry === null ? 0 : tables.moveRow(entry.id);
		out[start + at.target + TARGETS.indexOf(target)] = 1;
	}

	/** @param {number} asked where it has been written what the request says of the slot */
	writeMoves(blocks, request, slot, choices, asked) {
		const { observation: out, teams: { ownFighters, foeFighters } } = this, user = ownFighters[slot];
		if (user.mon === null || !request.active) {
			blocks.clear();
			return;
		}
		const known = request.side.pokemon[slot].moves;
		const terastallizes = out[asked + ASKED.at.can_gimmick + TERASTALLIZE] === 1;
		blocks.write(this.fieldState, user, foeFighters, known, choices, terastallizes);
	}
}

/** Team places of [left, right], -1 = none, and of one that looks like its partner. */
function placesIn(team, [left, right]) {
	return [team.indexOf(left), team.indexOf(right)];
}
