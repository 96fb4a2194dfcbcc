// Health and status as the protocol and the requests write them.

import { ValueFailure } from './dex.mjs';
import { endEffect } from './effects.mjs';

/** "82/100 par", "0 fnt". */
export function readCondition(mon, text) {
	if (text === '0 fnt') {
		mon.setHp(0);
		mon.setStatus('FNT');
		return;
	}
	const space = text.indexOf(' ');
	if (space < 0) {
		mon.setStatus(null);
	} else {
		if (text.indexOf(' ', space + 1) >= 0) throw new ValueFailure(text);
		mon.setStatus(mon.dex.status(text.slice(space + 1)));
		if (mon.status === 'SLP' && mon.effects.has('YAWN')) endEffect(mon, 'YAWN');
	}
	readHp(mon, text, space < 0 ? text.length : space);
}

/** Digits and one slash count, everything else is passed over. */
function readHp(mon, text, end) {
	let hp = -1, maxHp = -1, slashes = 0;
	for (let i = 0; i < end; i++) {
		const code = text.charCodeAt(i);
		if (code === 47) slashes++;
		else if (code < 48 || code > 57) continue;
		else if (slashes === 0) hp = (hp < 0 ? 0 : hp * 10) + code - 48;
		else maxHp = (maxHp < 0 ? 0 : maxHp * 10) + code - 48;
	}
	if (slashes !== 1 || hp < 0) throw new ValueFailure(text);
	mon.setHp(hp);
	if (maxHp < 0) throw new ValueFailure(text);
	mon.setMaxHp(maxHp);
}
