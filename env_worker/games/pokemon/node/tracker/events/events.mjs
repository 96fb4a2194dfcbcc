// Which function takes which protocol event: (tracker, line split at '|') => void. A handler throws where
// it cannot take a line; what it has changed by then stays changed.

import { BATTLE_EVENTS } from './battle_events.mjs';
import { BOOST_EVENTS } from './boost_events.mjs';
import { CAUSED } from './causes.mjs';
import { COUNTED } from '../counters.mjs';
import { LAST_TURN, UNHANDLED } from '../last_turn.mjs';
import { moveEvent } from './move_event.mjs';
import { POKEMON_EVENTS } from './pokemon_events.mjs';
import { REVEALING_EVENTS } from './revealing_events.mjs';

const HANDLERS = {
	move: moveEvent, ...POKEMON_EVENTS, ...BATTLE_EVENTS, ...BOOST_EVENTS, ...REVEALING_EVENTS, ...UNHANDLED,
};

/** The handler, and behind it what counts, what tells of the turn and what reads causes. */
function whole(name, handle) {
	const more = [COUNTED, LAST_TURN, CAUSED].flatMap(kind => kind.get(name) ?? []);
	if (more.length === 0) return handle;
	return (tracker, event) => {
		handle(tracker, event);
		for (const read of more) read(tracker, event);
	};
}

export const EVENTS = new Map(Object.entries(HANDLERS).map(([name, handle]) => [name, whole(name, handle)]));
