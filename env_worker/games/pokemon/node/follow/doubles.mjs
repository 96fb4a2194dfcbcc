// What a seat of doubles is made of: see SeatView and Preview.

import { FIRST_SWITCH, PASS, SlotChoices } from '../encoder/double_actions.mjs';
import { DoubleEncoder } from '../encoder/double_encoder.mjs';
import { DOUBLES_GLOBAL } from '../encoder/layout.mjs';
import { DoubleTracker } from '../tracker/double_battle.mjs';

/**
 * The left slot decides, then the right one, whose mask depends on the first choice; a slot that can only pass is not
 * asked. The simulator gets both choices in one command. Methods as in SingleStep.
 */
class DoubleSteps {
	constructor(tracker, encoder) {
		this.encoder = encoder;
		this.position = ident => tracker.position(ident);
		this.request = null;
		this.slots = [new SlotChoices(), new SlotChoices()]; // left, right
		this.slot = 0; // the one that decides
		this.first = null; // the left slot's action, null while it decides itself
		this.picks = []; // actions of the slots that were asked, in order
		this.commands = [];
		this.settled = []; // choices of the request before that stand
	}

	/** Of the slot that decides. */
	get choices() {
		return this.slots[this.slot];
	}

	get others() {
		return this.slots[1 - this.slot];
	}

	get complete() {
		return this.commands.length === 2;
	}

	read(request) {
		this.request = request;
		this.slot = 0;
		this.first = null;
		this.picks.length = this.commands.length = 0;
		for (const slot of [0, 1]) this.slots[slot].read(request, slot, this.position, null);
		if (this.choices.idle) this.settle(PASS);
		this.repeat();
		this.encode();
	}

	/** Choices of the request before, as far as they are legal. */
	repeat() {
		for (const action of this.settled) {
			if (this.complete || this.choices.mask[action] !== 1) break;
			this.picks.push(action);
			this.settle(action);
		}
		this.settled = [];
	}

	take(action) {
		this.picks.push(action);
		this.settle(action);
		if (this.complete) return this.commands.join(', ');
		this.encoder.encodeSlot(this.request, this);
		return '';
	}

	/** Takes an action for the slot that decides; a right slot that can only pass passes at once. */
	settle(action) {
		const [left, right] = this.slots;
		this.commands.push(this.choices.command(action));
		if (this.slot === 1) return;
		this.first = action;
		right.read(this.request, 1, this.position, action);
		if (right.idle && !left.idle) this.commands.push(right.command(PASS));
		else this.slot = 1;
	}

	/** The slot that decided last decides anew. */
	takeBack() {
		this.picks.pop();
		this.commands.length = this.slot;
		if (this.slot === 1) return;
		this.first = null;
		this.slots[1].read(this.request, 1, this.position, null);
	}

	/** Only the slot that decides last can be refused for something hidden: the other's choice stands. */
	unavailable() {
		this.settled = this.picks.slice(0, -1);
	}

	encode() {
		this.encoder.encode(this.request, this);
	}
}

export const DOUBLES = {
	Tracker: DoubleTracker,
	Encoder: DoubleEncoder,
	Steps: DoubleSteps,
	Choices: SlotChoices,
	fields: DOUBLES_GLOBAL,
	leads: 2,
	firstAction: FIRST_SWITCH,
	asked: choices => ({ slot: 0, choices, others: new SlotChoices(), first: null }),
};
