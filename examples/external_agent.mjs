// Plays CartPole with the policy that a running Simul serves, from Node.js. Once: `npm ci` in examples/.
//
//     simul serve --checkpoint runs/cartpole
//     node examples/external_agent.mjs tcp://127.0.0.1:5555
//
// A row of STEP is [[env, seat, episode, step, attempt], kind, flags, reward, observation, mask, policy].

import { fileURLToPath } from 'node:url';

/** A package of package.json. */
async function installed(name) {
	try {
		return await import(name);
	} catch (error) {
		if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
		console.error(`The package ${name} is missing. Run \`npm ci\` in ${fileURLToPath(new URL('.', import.meta.url))}`);
		process.exit(2);
	}
}

const { decode, encode } = await installed('@msgpack/msgpack');
const { Dealer } = await installed('zeromq');

const SPEC = '76e7c581761cb43f'; // of the game gymnasium/CartPole-v1; `simul connect` shows a server's
const SILENCE = 'No answer: is the endpoint right? A server with CURVE keys answers only clients with keys (docs/serving.md).';
const ENDPOINT = "Expected the server's endpoint, such as tcp://127.0.0.1:5555 or ipc://PATH; got ";
const DECISION = 0, TERMINATED = 1, TRUNCATED = 2, START = 1;
const ARRAYS = {
	uint8: Uint8Array, int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
	float32: Float32Array, float64: Float64Array,
};

/** A message as frames. @param {object} fields @param {[string, string, number[], Iterable][]} tensors */
export function pack(type, fields = {}, tensors = []) {
	const header = { type, ...fields };
	if (tensors.length) header.tensors = tensors.map(([name, dtype, shape]) => [name, dtype, shape]);
	const frames = tensors.map(([, dtype, , values]) => {
		const array = ARRAYS[dtype].from(values, dtype === 'int64' ? BigInt : Number);
		return Buffer.from(array.buffer); // little-endian, as every machine that runs Node
	});
	return [Buffer.from(encode(header)), ...frames];
}

/** Header and tensors (flat) of a message. */
export function unpack(frames) {
	const header = decode(frames[0]);
	const tensors = {};
	for (const [i, [name, dtype]] of (header.tensors ?? []).entries()) {
		const bytes = Uint8Array.from(frames[i + 1]); // a copy: its memory is aligned
		tensors[name] = new ARRAYS[dtype](bytes.buffer);
	}
	return [header, tensors];
}

export function packStep(id, rows) {
	const column = (i) => rows.map((row) => row[i]).flat();
	const n = rows.length;
	return pack('STEP', { id }, [
		['keys', 'int64', [n, 5], column(0)],
		['kind', 'uint8', [n], column(1)],
		['flags', 'uint8', [n], column(2)],
		['reward', 'float32', [n], column(3)],
		['observation', 'float32', [n, rows[0][4].length], column(4)],
		['mask', 'uint8', [n, rows[0][5].length], column(5)],
		['policy', 'uint8', [n], column(6)],
	]);
}

/** One CartPole (the equations of Gymnasium's CartPole-v1) and its session. */
class Game {
	constructor(number) {
		this.number = number;
		this.episode = -1;
	}

	begin() {
		this.episode += 1;
		this.step = 0;
		this.state = [0, 0, 0, 0].map(() => Math.random() * 0.1 - 0.05);
		return this.row(DECISION, START, 0);
	}

	/** Rows that follow an action: the next decision, or the end and the first decision of the next game. */
	act(action) {
		const [x, xDot, theta, thetaDot] = this.state;
		const [sin, cos] = [Math.sin(theta), Math.cos(theta)];
		const push = ((action === 1 ? 10 : -10) + 0.05 * thetaDot ** 2 * sin) / 1.1;
		const thetaAcc = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos ** 2 / 1.1));
		const xAcc = push - 0.05 * thetaAcc * cos / 1.1;
		this.state = [x + 0.02 * xDot, xDot + 0.02 * xAcc, theta + 0.02 * thetaDot, thetaDot + 0.02 * thetaAcc];
		this.step += 1;
		const fallen = Math.abs(this.state[0]) > 2.4 || Math.abs(this.state[2]) > 12 * Math.PI / 180;
		if (!fallen && this.step < 500) return [this.row(DECISION, 0, 1)];
		return [this.row(fallen ? TERMINATED : TRUNCATED, 0, 1), this.begin()];
	}

	row(kind, flags, reward) {
		return [[this.number, 0, this.episode, this.step, 0], kind, flags, reward, this.state, [1, 1], 0];
	}
}

/** A server's text without characters that a terminal would obey. */
function plain(text) {
	return text.replace(/[^\x20-\x7e]/g, '?');
}

/** What WELCOME says of the server's game. */
function served({ game, observation_dtype: dtype, observation_size: size, num_actions: actions }) {
	return plain(`game '${game}': observation ${dtype}[${size}], ${actions} actions`);
}

/** Frames of the next message; null after 3 s of silence. */
async function receive(socket) {
	try {
		return await socket.receive();
	} catch (error) {
		if (error.code === 'EAGAIN') return null;
		throw error;
	}
}

/** The action of every row; null where the server forgot our games. Says HELLO first, and again after a silence. */
export async function ask(socket, hello, id, rows) {
	const step = packStep(id, rows);
	const actions = new Map();
	let silent = 0; // times of 3 s
	await socket.send(hello.token ? step : pack('HELLO', hello));
	while (actions.size < rows.length) {
		const frames = await receive(socket);
		silent = frames ? 0 : silent + 1;
		if (silent === 10) throw new Error(SILENCE);
		const [header, tensors] = frames ? unpack(frames) : [{ type: 'ERROR', code: 'ERR_HELLO' }, {}];
		if (header.type === 'ACTIONS' && header.id === id) {
			tensors.row.forEach((row, i) => actions.set(row, tensors.action[i]));
		} else if (header.type === 'WELCOME') {
			if (!hello.token) console.log(served(header)); // a person sees whether it is the game that is meant
			const forgotten = hello.token && !header.resumed;
			hello.token = header.token;
			if (forgotten) return null;
			await socket.send(step); // for the first time, or again: what was answered is answered the same
		} else if (header.code === 'ERR_HELLO') {
			await socket.send(pack('HELLO', hello));
		} else if (header.type === 'ERROR') {
			throw new Error(plain(`${header.code}: ${header.message}`));
		}
	}
	return actions;
}

async function main(endpoint, episodes = 20) {
	const socket = new Dealer({ receiveTimeout: 3000, sendTimeout: 10000 }); // where keys are refused, a send would wait for ever
	try {
		socket.connect(endpoint);
	} catch { // no text at all, an unknown transport, no port
		throw new Error(`${ENDPOINT}'${plain(endpoint ?? '')}'.`);
	}
	const hello = { protocol: 'simul/1', client: 'example-node', run_id: Date.now(), spec_fingerprint: SPEC };
	const games = Array.from({ length: 8 }, (_, number) => new Game(number));
	const lengths = [];
	let rows = games.map((game) => game.begin());
	for (let id = 1; lengths.length < episodes; id += 1) {
		const actions = await ask(socket, hello, id, rows);
		if (actions === null) {
			rows = games.map((game) => game.begin());
			continue;
		}
		lengths.push(...rows.filter((row) => row[1] !== DECISION).map((row) => row[0][3]));
		rows = rows.flatMap((row, i) => row[1] === DECISION ? games[row[0][0]].act(actions.get(i)) : []);
	}
	await socket.send(pack('CLOSE'));
	socket.close();
	const mean = lengths.reduce((sum, value) => sum + value, 0) / lengths.length;
	console.log(`${lengths.length} games, ${mean.toFixed(1)} steps on average`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
	try {
		await main(process.argv[2], Number(process.argv[3] ?? 20));
	} catch (error) {
		console.error(error.code === 'EAGAIN' ? SILENCE : error.message); // EAGAIN: no connection took a message in 10 s
		process.exit(1);
	}
}
