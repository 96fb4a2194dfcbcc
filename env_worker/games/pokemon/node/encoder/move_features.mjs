// The blocks of an active Pokemon's moves: what each is, and what it would do now to each foe that is out.

import { ppLeft } from '../tracker/counters.mjs';
import { moveId } from '../tracker/dex.mjs';
import { NO_DAMAGE, knockOutChance, moveDamage, rollStep } from './expected_damage.mjs';
import { RAIN, SUN } from './field_state.mjs';
import { AGAINST, POKEMON } from './layout.mjs';

const MOVE_SLOTS = POKEMON.size.moves;

export class MoveBlocks {
	/**
	 * @param {Float16Array} buffer one seat's observation
	 * @param {object} fields of a block: MOVE or DOUBLES_MOVE; @param {number} start of the first
	 * @param {number[]} against where in a block the numbers against each foe begin
	 * @param {DamageBlock | null} exact the damage formula's numbers, where they are observed
	 */
	constructor(buffer, tables, { at, width }, start, against, exact = null) {
		this.buffer = buffer;
		this.tables = tables;
		this.at = at;
		this.width = width;
		this.start = start;
		this.against = against;
		this.exact = exact;
		this.fire = tables.types.get('FIRE');
		this.water = tables.types.get('WATER');
		this.shown = new Array(MOVE_SLOTS).fill(null); // whose numbers stand in a block, apart from the changing ones
	}

	clear() {
		this.buffer.fill(0, this.start, this.start + MOVE_SLOTS * this.width);
		this.shown.fill(null);
	}

	/**
	 * @param {object} fieldState the field
	 * @param {Fighter} user whose moves they are; @param {Fighter[]} foes those that are out
	 * @param {string[]} known the Pokemon's own moves, by slot
	 */
	write(fieldState, user, foes, known, choices, canTera) {
		for (let slot = 0; slot < MOVE_SLOTS; slot++) {
			const start = this.start + slot * this.width, entry = choices.moveEntries[slot];
			if (slot >= known.length && entry === null) {
				this.buffer.fill(0, start, start + this.width);
				this.shown[slot] = null;
				continue;
			}
			let name = slot < known.length ? known[slot] : '';
			let info = user.profile.moves[slot] ?? null;
			let own = info !== null;
			if (entry !== null && !name.includes(entry.id)) { // struggle and its like
				name = entry.id;
				info = this.tables.moveInfo(name);
				own = false;
			}
			this.writeMove(slot, start, name, info, choices.usable(slot), ppOf(user.mon, name, entry));
			this.writeDamage(start, fieldState, user, foes, own ? slot : -1, info, canTera);
		}
	}

	writeMove(slot, start, name, info, usable, pp) {
		const { buffer, at } = this;
		buffer[start + at.present] = 1;
		buffer[start + at.usable] = usable;
		buffer[start + at.pp] = pp;
		if (info === null) {
			this.shown[slot] = null;
			buffer[start + at.id] = this.tables.moveRow(name);
			buffer.fill(0, start + at.type, start + at.present);
		} else if (this.shown[slot] !== info) {
			this.shown[slot] = info;
			buffer[start + at.id] = info.row;
			buffer[start + at.type] = info.type;
			buffer.set(info.stat, start + at.power);
		}
	}

	/** @param {number} slot of the user's own move, -1: it does no damage of its own */
	writeDamage(start, fieldState, user, foes, slot, info, canTera) {
		const { buffer, at, against, tables: { chart } } = this;
		const lead = foes[0].mon === null ? foes.length - 1 : 0;
		for (let place = 0; place < foes.length; place++) {
			const foe = foes[place];
			const dealt = slot < 0 || foe.mon === null ? NO_DAMAGE : moveDamage(chart, user.profile, slot, foe.profile);
			if (place === lead) buffer[start + at.stab] = dealt.stab;
			this.writeAgainst(start + against[place], fieldState, slot, info, dealt, user.factors, foe, canTera);
		}
	}

	writeAgainst(to, fieldState, slot, info, dealt, user, foe, canTera) {
		const { buffer } = this, { at, scale } = AGAINST;
		let damage = 0, tera = 0;
		if (dealt.damage) {
			const factor = this.factor(fieldState, info, user, foe);
			damage = dealt.damage * factor;
			if (canTera) tera = Math.min(dealt.teraDamage * factor, 1);
		}
		buffer[to + at.effectiveness] = dealt.effectiveness / scale.effectiveness;
		buffer[to + at.damage] = Math.min(damage, 1);
		buffer[to + at.knock_out_chance] = slot < 0 ? 0 : this.knockOutChance(slot, info, damage, foe.mon);
		buffer[to + at.tera_damage] = tera;
	}

	/** @param {number} damage as estimated; the formula's is better */
	knockOutChance(slot, info, damage, foe) {
		if (foe === null || !foe.hp) return 0;
		const hp = foe.hp / foe.maxHp;
		if (this.exact !== null) return info.accuracy * this.exact.knockOutChance(slot, hp);
		if (info.share) return 0;
		return info.accuracy * knockOutChance(damage, info.fixed ? 0 : rollStep(damage), hp);
	}

	/** What stages, burn, screens and weather make of a move's damage; of a share, the hp that it is one of. */
	factor({ weather }, info, user, { mon, factors: target }) {
		if (info.fixed) return info.share ? (mon.hp || 0) / mon.maxHp : 1;
		let factor = user.on(target, info.staging);
		if (info.type === this.water) factor *= weather[RAIN] ? 1.5 : weather[SUN] ? 0.5 : 1;
		else if (info.type === this.fire) factor *= weather[SUN] ? 1.5 : weather[RAIN] ? 0.5 : 1;
		return factor;
	}
}

/** Fraction; the tracker's where the request gives none: of a locked Pokemon, and of one that commands. */
function ppOf(mon, name, entry) {
	if (entry?.pp !== undefined) return Math.min(entry.pp / Math.max(entry.maxpp ?? 1, 1), 1);
	const move = mon.moves.get(moveId(name));
	return move === undefined ? 0 : ppLeft(move);
}
