// What either side did and met in the turn just played.

/** What one side did and met in a turn. */
class TurnEvents {
	constructor() {
		this.clear();
	}

	clear() {
		this.acted = false; // it has moved, or was kept from it
		this.movedFirst = this.prevented = this.missed = this.failed = this.critical = this.switched = this.fainted = 0;
		this.hpLost = 0; // fractions, of all its Pokemon
	}
}

/** The turn that is being played; until its first line, the one before. */
export class LastTurn {
	constructor() {
		this.own = new TurnEvents();
		this.foe = new TurnEvents();
		this.over = false;
		this.acting = null; // the side whose move the lines tell of
	}

	/** Of the side that an identifier names ("p1a: Name"). */
	of(tracker, identifier) {
		if (this.over) this.clear();
		return identifier.startsWith(tracker.role) ? this.own : this.foe;
	}

	opponentOf(side) {
		return side === this.own ? this.foe : this.own;
	}

	act(side) {
		if (!this.own.acted && !this.foe.acted) side.movedFirst = 1;
		side.acted = true;
	}

	clear() {
		this.own.clear();
		this.foe.clear();
		this.over = false;
		this.acting = null;
	}
}

const shareOf = ({ hp, maxHp }) => hp ? hp / maxHp : 0;

/** Remembers the hp fraction from which the next loss counts. */
export function noteHp(mon) {
	mon.hpShare = shareOf(mon);
}

function healed(tracker, event) {
	noteHp(tracker.getPokemon(event[2]));
}

function loseHp(tracker, event) {
	const mon = tracker.getPokemon(event[2]), side = tracker.lastTurn.of(tracker, event[2]);
	side.hpLost += Math.max(mon.hpShare - shareOf(mon), 0);
	noteHp(mon);
}

function damaged(tracker, event) {
	loseHp(tracker, event);
	if (event[4] === '[from] confusion') prevented(tracker, event);
}

function fainted(tracker, event) {
	loseHp(tracker, event);
	tracker.lastTurn.of(tracker, event[2]).fainted = 1;
}

function moved(tracker, event) {
	const { lastTurn } = tracker, side = lastTurn.of(tracker, event[2]);
	lastTurn.act(side);
	lastTurn.acting = side;
}

/** Who is named with `[of] MOVER` has an ability that stops the mover's move. */
function cannotMove(tracker, event) {
	if (event[event.length - 1].startsWith('[of] ')) failed(tracker, event);
	else prevented(tracker, event);
}

/** In gen 1 waking up takes the turn. */
function awoke(tracker, event) {
	if (tracker.dex.gen === 1 && event[3] === 'slp' && event[4] === '[msg]') prevented(tracker, event);
}

function prevented(tracker, event) {
	const { lastTurn } = tracker, side = lastTurn.of(tracker, event[2]);
	lastTurn.act(side);
	lastTurn.acting = null;
	side.prevented = 1;
}

/** A side that has chosen to switch does so before any move but a Pursuit of who leaves. */
function cameIn(tracker, event) {
	const { lastTurn } = tracker, side = lastTurn.of(tracker, event[2]);
	const early = !lastTurn.opponentOf(side).acted || tracker.moved[3] === 'Pursuit';
	if (event[1] === 'switch' && early && !side.acted && !side.fainted) side.switched = 1;
	lastTurn.acting = null;
	healed(tracker, event);
}

/** What fails or meets an immunity is the move before; stages that do not fall are a part of its effect only. */
function failed({ lastTurn }, event) {
	if (lastTurn.acting !== null && event[3] !== 'unboost') lastTurn.acting.failed = 1;
}

function missed(tracker, event) {
	tracker.lastTurn.of(tracker, event[2]).missed = 1;
}

/** The line names whom it hits. */
function critical(tracker, event) {
	const { lastTurn } = tracker;
	lastTurn.opponentOf(lastTurn.of(tracker, event[2])).critical = 1;
}

/** An empty line: the end of a turn's moves. */
function endMoves({ lastTurn }) {
	lastTurn.acting = null;
}

/** The leads come in before the first turn. */
function turn({ lastTurn, turn: number }) {
	if (number <= 1) lastTurn.clear();
	lastTurn.over = true;
}

/** Event -> what it says of the turn, after the battle has taken the line. */
export const LAST_TURN = new Map(Object.entries({
	move: moved,
	cant: cannotMove,
	'-curestatus': awoke,
	switch: cameIn,
	drag: cameIn,
	replace: healed,
	faint: fainted,
	'-damage': damaged,
	'-sethp': loseHp,
	'-heal': healed,
	'-fail': failed,
	'-immune': failed,
	turn,
}));

/** Lines that say nothing else. */
export const UNHANDLED = { '-miss': missed, '-crit': critical, '': endMoves };
