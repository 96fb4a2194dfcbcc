// Cached state of one Pokemon that attacks or is attacked, until an input of its damage changes.

import { Condition, sameBody } from './from_battle.mjs';
import { Target } from './target.mjs';
import { AttackerMove, sameTerastallized } from './attacker.mjs';

const MOVES = 4;
const USER_HP = 6, PINCH = 7, FALLEN = 10, TARGET_HP = 5, HALVED_HP = 11; // kinds of power
const TARGET_SHARE = 3, TO_USERS_HP = 5, USERS_HP = 6; // fixed damage

export const wantsOwnHp = move => move !== null && (move.powerKind === USER_HP || move.powerKind === PINCH ||
	move.fixed === TO_USERS_HP || move.fixed === USERS_HP);
export const wantsFoesHp = move => move !== null && (move.powerKind === TARGET_HP ||
	move.powerKind === HALVED_HP || move.fixed === TARGET_SHARE || move.fixed === TO_USERS_HP);
export const wantsFallen = move => move !== null && move.powerKind === FALLEN;

class CachedPokemon {
	constructor() {
		this.version = 0; // a new one of the block's whenever it changed; 0: never looked at
		this.mon = null;
		this.species = '';
		this.profile = null;
		this.bodyVersion = -1;
		this.out = false;
		this.exactHp = false;
		this.setting = -1; // version of the surroundings
		this.condition = new Condition();
	}

	/** Remembers how the Pokemon is now; true if its damage may differ from what it was. */
	look(tables, mon, profile, exactHp, out, setting) {
		const still = mon === this.mon && exactHp === this.exactHp && setting === this.setting;
		if (still && !out && !this.out && mon.bodyVersion === this.bodyVersion && profile === this.profile) return false;
		const body = mon.species === this.species && this.sameProfile(profile);
		const changed = this.condition.read(tables, mon, profile, exactHp, out) || !still || !body;
		this.mon = mon;
		this.species = mon.species;
		this.profile = profile;
		this.bodyVersion = mon.bodyVersion;
		this.out = out;
		this.exactHp = exactHp;
		this.setting = setting;
		return changed;
	}
}

/** An own Pokemon and its moves. */
export class CachedUser extends CachedPokemon {
	constructor() {
		super();
		this.moves = []; // DamageMove, null where a move does no damage
		this.listed = null; // the profile they were read with
		this.ownHp = this.foesHp = this.wantsFallen = false;
		this.canTera = false;
		this.down = 0;
		this.attackerMoves = null;
		this.places = []; // of each move's numbers
		this.copies = []; // places of numbers that hold terastallized too
	}

	/** An own profile changes with its moves too. */
	sameProfile(profile) {
		return this.profile === profile;
	}

	/** What its moves ask for; `names` change only when the profile does. */
	list(tables, profile, names) {
		if (this.listed === profile) return;
		this.listed = profile;
		this.moves = names.slice(0, MOVES).map(name => tables.move(name));
		this.ownHp = this.moves.some(wantsOwnHp);
		this.foesHp = this.moves.some(wantsFoesHp);
		this.wantsFallen = this.moves.some(wantsFallen);
	}

	/** @param {number} down fainted team mates; @param {boolean} spent the terastallization is used up */
	see(tables, mon, profile, out, down, spent, setting) {
		const canTera = tables.gen === 9 && !spent && profile.tera > 0 && !profile.terastallized;
		const fallen = this.wantsFallen ? down : 0;
		const other = canTera !== this.canTera || fallen !== this.down;
		if (!this.look(tables, mon, profile, this.ownHp, out, setting) && !other) return false;
		this.canTera = canTera;
		this.down = fallen;
		this.attackerMoves = null;
		return true;
	}

	/** Makes the moves and their places; terastallizing changes few of them. */
	arm(tables, around) {
		const { moves, places, copies } = this, attackerMoves = [];
		const user = this.condition.fighter(tables, this.mon, this.profile, this.out, this.down);
		const tera = this.canTera ? user.terastallize() : null;
		places.length = copies.length = 0;
		for (let slot = 0; slot < moves.length; slot++) {
			const move = moves[slot];
			if (move === null) continue;
			const attackerMove = new AttackerMove(tables, user, move, around);
			attackerMoves.push(attackerMove);
			places.push(2 * slot);
			if (tera === null) continue;
			if (sameTerastallized(tables.gen, user, tera, attackerMove, move, around)) {
				copies.push(2 * slot);
			} else {
				attackerMoves.push(new AttackerMove(tables, tera, move, around));
				places.push(2 * (MOVES + slot));
			}
		}
		this.attackerMoves = attackerMoves;
	}
}

/** A foe, with its ability and without. */
export class CachedTarget extends CachedPokemon {
	constructor() {
		super();
		this.fighter = null;
		this.whole = null;
		this.bare = null;
	}

	sameProfile(profile) {
		return sameBody(this.profile, profile);
	}

	see(tables, mon, profile, exactHp, out, setting) {
		if (!this.look(tables, mon, profile, exactHp, out, setting)) return false;
		this.fighter = this.whole = this.bare = null;
		return true;
	}

	/** @param {boolean} mold its ability does not count */
	target(tables, screens, around, mold) {
		const known = mold ? this.bare : this.whole;
		if (known !== null) return known;
		this.fighter ??= this.condition.fighter(tables, this.mon, this.profile, this.out, 0);
		const made = new Target(tables, this.fighter, screens, around, mold);
		if (mold) this.bare = made;
		else this.whole = made;
		return made;
	}
}
