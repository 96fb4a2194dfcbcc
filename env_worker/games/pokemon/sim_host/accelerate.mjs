export function accelerate() {
	return { accelerated: false, note: 'not built yet' };
}
