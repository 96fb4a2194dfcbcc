// Seeded random numbers.

/** A small seeded generator (mulberry32): returns a function giving numbers in [0, 1). */
export function seededRandom(seed) {
	let state = seed >>> 0;
	return () => {
		state = (state + 0x6D2B79F5) >>> 0;
		let mixed = Math.imul(state ^ (state >>> 15), state | 1);
		mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
	};
}

/** One of a list's elements. */
export function oneOf(list, random) {
	return list[Math.floor(random() * list.length)];
}
