// Which function takes which protocol event: (tracker, line split at '|') => void. A handler throws where
// poke-env would raise; what it has changed by then stays changed, as there.

import { BATTLE_EVENTS } from './battle_events.mjs';
import { BOOST_EVENTS } from './boost_events.mjs';
import { moveEvent } from './move_event.mjs';
import { POKEMON_EVENTS } from './pokemon_events.mjs';
import { REVEALING_EVENTS } from './revealing_events.mjs';

export const EVENTS = new Map([
	['move', moveEvent],
	...Object.entries(POKEMON_EVENTS),
	...Object.entries(BATTLE_EVENTS),
	...Object.entries(BOOST_EVENTS),
	...Object.entries(REVEALING_EVENTS),
]);
