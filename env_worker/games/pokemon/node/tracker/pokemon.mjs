// What one seat knows of one Pokemon, as far as an observation reads it.

import { Boosts } from './boosts.mjs';
import { toId } from './dex.mjs';
import { clearEffects } from './effects.mjs';
import { endForme, shareAbility } from './formes.mjs';
import { MoveSet } from './moves.mjs';

const FIRST_GEN_WITH_ABILITIES = 3;
const UNSEEN_ABILITY = ''; // of one that has another one's: what this is, or what its own was, is not known

export class Mon {
	/** @param {boolean} own True = of the seat's own team */
	constructor(dex, own) {
		this.dex = dex;
		this.own = own;
		this.twinOf = null; // whom it looks like, where that one seems to stand beside it
		this.position = -1; // in the team's order, own ones only
		this.species = '';
		this.level = 100;
		this.hp = 0; // null = unknown
		this.maxHp = 0;
		this.hpShare = 0; // hp fraction by the last line or request that told it
		this.status = null;
		this.asleep = 0; // times that it could not move, in this sleep
		this.resting = false; // by Rest
		this.hurt = 0; // times by poison since it was poisoned or came in
		this.active = false;
		this.revealed = false;
		this.item = dex.unknownItem;
		this.ability = null; // what the three below come to
		this.innateAbility = null;
		this.formeAbility = null;
		this.temporaryAbility = null;
		this.type1 = 0;
		this.type2 = 0;
		this.temporaryTypes = [];
		this.terastallized = false;
		this.terastallizedType = 0;
		this.baseStats = null; // the temporary ones if there are any
		this.speciesStats = null;
		this.temporaryStats = null;
		this.boosts = new Boosts();
		this.effects = new Set();
		this.began = new Map(); // gens 1 and 2: effect that a line has started -> turn of the last time
		this.moveSet = new MoveSet(dex);
		this.moves = this.moveSet.moves;
		this.mimicMove = null;
		this.transformed = false;
		this.mustRecharge = false;
		this.preparing = false;
		this.preparedTurn = 0; // in which it began to
		this.dancing = false;
		this.protectCounter = 0;
		this.lastMove = ''; // id of the one it used last since it came in, '' = none
		this.copied = null; // a Copied while transformed
		this.returnsTo = ''; // species, while it has a forme that ends when it leaves
		this.trapper = null; // who keeps it from leaving by Mean Look or its like
		this.goesOn = ''; // gen 2: id of the move that it goes on with next turn, '' = none
		this.rolls = 0; // turns of Rollout in a row
		this.boundTurn = 0; // gen 1: the last one in which a trapping move hit it
		this.boundTurns = 0; // in a row
		this.caller = ''; // gen 1: id of the move that called the one that is prepared
		this.before = null; // Health from before it came in
		this.activeTurns = 0;
		this.lastEntry = null; // of the requests
		this.lastDetails = '';
		this.profileVersion = 0;
		this.bodyVersion = 0;
	}

	profileChanged() {
		this.profileVersion++;
		this.bodyVersion++;
	}

	setActive(active) {
		if (active === this.active) return;
		this.active = active;
		this.bodyVersion++;
	}

	setStatus(status) {
		if (status === this.status) return;
		this.status = status;
		this.bodyVersion++;
	}

	setHp(hp) {
		if (hp === this.hp) return;
		this.hp = hp;
		this.bodyVersion++;
	}

	setMaxHp(maxHp) {
		if (maxHp === this.maxHp) return;
		this.maxHp = maxHp;
		this.profileChanged();
	}

	/** @param {string | null} item an id */
	setItem(item) {
		if (item === this.item) return;
		this.item = item;
		this.profileChanged();
	}

	setTemporaryTypes(types) {
		if (types.length === 0 && this.temporaryTypes.length === 0) return;
		this.temporaryTypes = types;
		this.profileChanged();
	}

	setTemporaryAbility(ability) {
		const id = ability === null ? null : toId(ability);
		if (id === this.temporaryAbility) return;
		this.temporaryAbility = id;
		this.profileChanged(); // even where the one it was thought to be born with is the same
		this.abilityChanged();
	}

	/** The first one seen is the Pokemon's own, later ones are temporary. */
	revealAbility(ability) {
		if (this.formeAbility !== null) this.hideOwnAbility(); // a forme's
		if (this.innateAbility === null) this.innateAbility = toId(ability);
		else this.setTemporaryAbility(ability);
		this.abilityChanged();
		shareAbility(this); // before another one takes its place
	}

	abilityChanged() {
		const ability = this.temporaryAbility ?? this.formeAbility ?? this.innateAbility;
		if (ability === this.ability) return;
		this.ability = ability;
		this.profileChanged();
	}

	/** Another one's ability, unknown for null, until it leaves the field; what is seen of it is not its own. */
	takeAbility(ability) {
		if (this.dex.gen < FIRST_GEN_WITH_ABILITIES) return;
		this.hideOwnAbility();
		this.setTemporaryAbility(ability ?? UNSEEN_ABILITY);
	}

	/** What is seen from now on is not its own ability. */
	hideOwnAbility() {
		this.innateAbility ??= UNSEEN_ABILITY;
		this.abilityChanged();
	}

	setTemporaryStats(stats) {
		this.temporaryStats = stats;
		this.statsChanged();
	}

	statsChanged() {
		const stats = this.temporaryStats ?? this.speciesStats;
		if (stats === this.baseStats) return;
		this.baseStats = stats;
		this.profileChanged();
	}

	/** A line says how many pp a move has. */
	setPp(move, pp) {
		move.pp = pp;
		move.correction = 0;
		this.bodyVersion++;
	}

	movesChanged() {
		this.moves = this.moveSet.moves;
		this.mimicMove = this.moveSet.mimic;
		this.transformed = this.moveSet.copied !== null;
		this.profileChanged();
	}

	/** Substitutes for moves and ability, and what else ends with a faint or a switch. */
	dropCopies() {
		if (this.innateAbility === UNSEEN_ABILITY) this.innateAbility = null;
		this.setTemporaryAbility(null);
		this.setTemporaryStats(null);
		this.copied = null;
		if (this.moveSet.dropCopies()) this.movesChanged();
	}

	/** What ends with a faint or a switch. */
	clearStanding() {
		this.boosts.clear();
		clearEffects(this);
		this.mustRecharge = false;
		this.preparing = false;
		this.protectCounter = 0;
		this.lastMove = '';
		this.trapper = null;
		this.goesOn = '';
		this.dropCopies();
		endForme(this);
		this.setTemporaryTypes([]);
	}

	faint() {
		this.setHp(0);
		this.setStatus('FNT');
		this.clearStanding();
	}

	/** @param {Map<string, number>} fields */
	switchOut(fields) {
		if (this.ability === 'regenerator' && this.status !== 'FNT' &&
			(this.item === 'abilityshield' || !fields.has('NEUTRALIZING_GAS'))) {
			const maxHp = this.maxHp ?? 0;
			this.setHp(Math.min(Math.trunc((this.hp ?? 0) + maxHp / 3), maxHp));
		}
		this.setActive(false);
		this.clearStanding();
		this.activeTurns = 0;
	}
}
