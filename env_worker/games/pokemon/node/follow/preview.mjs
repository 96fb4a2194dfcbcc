// Team preview as decisions of one seat: who leads, and where only some may come, who follows.

const TEAM_SIZE = 6;

/** How many picks a preview takes: as many as may come, the leads if all do. */
export function picksWanted(request, leads) {
	return Math.min(request.maxChosenTeamSize || leads, request.side.pokemon.length, TEAM_SIZE);
}

/**
 * What a seat knows before the battle, in a tracker of its own: the real one begins with the first turn.
 * @param {SeatTracker} tracker a new one; @param {SeatTracker} told the seat's own, fed with what came before the request
 */
export function previewTracker(tracker, told, request) {
	tracker.previewed = told.previewed;
	tracker.teamSizes = told.teamSizes;
	tracker.sync(request);
	for (const mon of tracker.ownMons) mon.setActive(false); // the request calls the first one active
	return tracker;
}

/** What a seat sees before the battle. */
export class Preview {
	/** @param {SeatTracker} told the seat's own, fed with what came before the request; @param {object} kind SINGLES or DOUBLES */
	constructor(tables, told, request, kind) {
		this.kind = kind;
		this.tracker = previewTracker(new kind.Tracker(told.role, tables.gen, tables.tracker), told, request);
		this.encoder = new kind.Encoder(this.tracker, tables);
		this.bytes = new Uint8Array(this.encoder.observation.buffer);
		this.request = request;
		this.wanted = picksWanted(request, kind.leads);
		this.picks = [];
		this.choices = new kind.Choices();
		this.choices.mask.fill(1, kind.firstAction, kind.firstAction + Math.min(this.tracker.team.size, TEAM_SIZE));
		this.encode();
	}

	/** Which pick is asked for, counted from 1. */
	get pick() {
		return this.picks.length + 1;
	}

	/** The simulator's words after the last pick, '' before it, null for an action that is not legal. */
	take(action) {
		if (this.choices.mask[action] !== 1) return null;
		this.picks.push(action - this.kind.firstAction);
		this.choices.mask[action] = 0;
		if (this.picks.length === this.wanted) return `team ${this.picks.map(position => position + 1).join(',')}`;
		this.encode();
		return '';
	}

	/** The simulator refused the whole: the last pick must be another. False if there is none. */
	refuse() {
		this.picks.pop();
		if (!this.choices.mask.includes(1)) return false;
		this.encode();
		return true;
	}

	encode() {
		this.encoder.encode(this.request, this.kind.asked(this.choices));
		const { observation } = this.encoder, { at, scale } = this.kind.fields;
		observation[at.preview] = 1;
		observation[at.preview_picks] = this.wanted / scale.preview_picks;
		observation.fill(0, at.preview_order, at.preview_order + TEAM_SIZE);
		this.picks.forEach((position, place) => {
			observation[at.preview_order + position] = (place + 1) / scale.preview_order;
		});
	}
}
