// The blocks of the active Pokemon's moves: what each is, and what it would do now. The same as move_features.py.

import { FIRST_MOVE } from './actions.mjs';
import { PHYSICAL, SPECIAL } from './expected_damage.mjs';
import { NO_DAMAGE, moveDamage } from './expected_damage.mjs';
import { RAIN, STAGES, SUN } from './field_state.mjs';
import { MOVE, POKEMON } from './layout.mjs';

const { at: AT, width: WIDTH } = MOVE;
const MOVE_SLOTS = POKEMON.size.moves;

export class MoveBlocks {
	/** @param {Float16Array} buffer one seat's observation */
	constructor(buffer, tables) {
		this.buffer = buffer;
		this.tables = tables;
		this.fire = tables.types.get('FIRE');
		this.water = tables.types.get('WATER');
		this.shown = new Array(MOVE_SLOTS).fill(null); // whose numbers stand in a block, apart from the changing ones
	}

	clear() {
		const { move_start: start } = this.tables.layout;
		this.buffer.fill(0, start, start + MOVE_SLOTS * WIDTH);
		this.shown.fill(null);
	}

	/**
	 * @param {object} fieldState the field; `fieldState.own` is out
	 * @param {object} own, foe profiles of the two on the field; foe null where none is
	 * @param {object} user, target their Factors
	 * @param {string[]} known the Pokemon's own moves, by slot
	 */
	write(fieldState, own, foe, user, target, known, choices, canTera) {
		const { layout, chart } = this.tables;
		for (let slot = 0; slot < MOVE_SLOTS; slot++) {
			const at = layout.move_start + slot * WIDTH;
			const entry = choices.moveEntries[slot];
			if (slot >= known.length && entry === null) {
				this.buffer.fill(0, at, at + WIDTH);
				this.shown[slot] = null;
				continue;
			}
			let name = slot < known.length ? known[slot] : '';
			let info = own.moves[slot] ?? null;
			let dealt = foe === null ? NO_DAMAGE : null;
			let pp = 0;
			if (entry !== null) {
				if (!name.includes(entry.id)) { // struggle and its like
					name = entry.id;
					info = this.tables.moveInfo(name);
					dealt = NO_DAMAGE;
				}
				pp = Math.min((entry.pp ?? 0) / Math.max(entry.maxpp ?? 1, 1), 1);
			}
			dealt ??= moveDamage(chart, own, slot, foe);
			this.writeMove(slot, at, fieldState, name, info, dealt, user, target, choices.mask[FIRST_MOVE + slot], pp, canTera);
		}
	}

	writeMove(slot, at, fieldState, name, info, dealt, user, target, usable, pp, canTera) {
		const { buffer } = this;
		buffer[at + AT.present] = 1;
		buffer[at + AT.usable] = usable;
		buffer[at + AT.pp] = pp;
		if (info === null) {
			this.shown[slot] = null;
			buffer[at + AT.id] = this.tables.moveRow(name);
			buffer.fill(0, at + AT.type, at + AT.present);
			buffer.fill(0, at + AT.stab, at + WIDTH);
			return;
		}
		if (this.shown[slot] !== info) {
			this.shown[slot] = info;
			buffer[at + AT.id] = info.row;
			buffer[at + AT.type] = info.type;
			buffer.set(info.stat, at + AT.power);
		}
		let damage = 0, tera = 0, knocksOut = 0;
		const foe = fieldState.foe;
		if (dealt.damage && foe !== null) {
			const factor = info.fixed ? 1 : this.factor(fieldState, info, user, target);
			damage = dealt.damage * factor;
			if (canTera) tera = Math.min(dealt.teraDamage * factor, 1);
			const hp = foe.hp ? foe.hp / foe.maxHp : 0;
			knocksOut = hp > 0 && damage >= hp ? 1 : 0;
		}
		buffer[at + AT.stab] = dealt.stab;
		buffer[at + AT.effectiveness] = dealt.effectiveness / MOVE.scale.effectiveness;
		buffer[at + AT.damage] = Math.min(damage, 1);
		buffer[at + AT.knocks_out] = knocksOut;
		buffer[at + AT.tera_damage] = tera;
	}

	/** What stages, burn, screens and weather make of a move's damage. */
	factor(fieldState, info, user, target) {
		let factor;
		if (info.category === PHYSICAL) {
			factor = user.physicalDealt * target.physicalTaken;
		} else {
			factor = user.specialDealt * target.specialTaken;
			if (info.category === SPECIAL && info.hitsDefence) {
				const boosts = fieldState.foe.boosts;
				factor *= STAGES[boosts.spd + 6] / STAGES[boosts.def + 6];
			}
		}
		const { weather } = fieldState;
		if (info.type === this.water) factor *= weather[RAIN] ? 1.5 : weather[SUN] ? 0.5 : 1;
		else if (info.type === this.fire) factor *= weather[SUN] ? 1.5 : weather[RAIN] ? 0.5 : 1;
		return factor;
	}
}
