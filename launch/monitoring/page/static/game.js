"use strict";
// A game that runs, decision by decision, as its worker reports it. Pictures are images, never markup; all else is text.

const MOST_SAID = 100;
const SHOWN_MS = 400; // a record at least, where several come at once
const MOST_WAITING = 30;
const MOST_SHOWN = 24; // numbers of a slice
const byId = (id) => document.getElementById(id);
const [place, ...chosen] = location.hash.slice(1).split("/");
const address = "/runs/" + Number(place) + "/game";
let source = null;
let resumes = false; // it was stopped because the page was hidden
let about = null;
let values = null; // chart of the episode
let rows = [];
let waiting = []; // records that are not shown yet
let shownAt = 0;
let timer = null;
let episode = null;
let numbers = [];
let slices = []; // {start, size, row, cell} in the order of the table

function say(words) {
  byId("state").textContent = words;
}

function report(words) {
  const list = byId("said");
  if (list.firstElementChild?.textContent === words) return;
  list.prepend(element("li", "", words));
  while (list.children.length > MOST_SAID) list.lastElementChild.remove();
}

function queue(record) {
  waiting.push(record);
  if (waiting.length > MOST_WAITING) waiting.shift();
  if (timer === null) next();
}

function next() {
  timer = null;
  if (!waiting.length) return;
  const pause = shownAt + SHOWN_MS - performance.now();
  if (pause > 0) {
    timer = setTimeout(next, pause);
    return;
  }
  shownAt = performance.now();
  show(waiting.shift());
  next();
}

function show(record) {
  if (record.said) report(record.said);
  if (record.kind === "none") return;
  if (record.episode !== episode || (rows.length && record.step <= rows.at(-1)[0])) { // a worker that restarts counts anew
    episode = record.episode;
    rows = [];
  }
  if (record.kind !== "decision") {
    report("episode " + episode + " of seat " + record.seat + " " + record.kind + " after " + record.step + " decisions; last reward " + shortNumber(record.reward));
    return;
  }
  if (source !== null) say("live: game " + record.env + ", seat " + record.seat);
  showPosition(record);
  showFacts(record);
  showActions(record.actions, record.chosen);
  if (record.value !== null) {
    rows.push([record.step, 0, record.value]);
    values.show(rows);
  }
  numbers = record.observation;
  showNumbers();
}

function showPosition(record) {
  const board = byId("board"), words = record.text ? [element("pre", "", record.text)] : [];
  for (const each of words) each.tabIndex = 0; // it scrolls sideways
  if (record.picture) {
    const picture = element("img");
    picture.src = record.picture;
    picture.alt = record.text || "the position";
    picture.addEventListener("error", () => picture.replaceWith(...words)); // the page keeps those of games that run
    board.replaceChildren(picture);
  } else {
    board.replaceChildren(...words);
  }
  if (record.battle) {
    showBattle(record.battle);
  } else {
    for (const id of ["sides", "weather", "now"]) byId(id).replaceChildren();
  }
}

async function showBattle(lines) {
  const [{ BattleLog }, { sideView }] = await Promise.all([
    import("/static/battle/battle_log.mjs"), import("/static/battle/side_view.mjs"),
  ]);
  const log = new BattleLog(lines.split("\n")), { state } = log;
  byId("sides").replaceChildren(...Object.keys(state.sides).sort().map((side) => sideView(state, side)));
  byId("weather").textContent = "Turn " + state.turn + ": " + ([state.weather, ...state.field].filter(Boolean).join(", ") || "no weather");
  byId("now").textContent = log.steps.slice(-3).map((step) => step.text).join(". ");
}

function showFacts(record) {
  const facts = [
    ["policy", record.policy + (record.policy_version >= 0 ? ", version " + record.policy_version : "")],
    ["decision", record.step + " of episode " + record.episode + (record.skipped ? "; " + record.skipped + " before it not shown" : "")],
    ["value", shortNumber(record.value)],
    ["last reward", shortNumber(record.reward)],
    ["legal actions", String(record.legal)],
    ["played", record.chosen || "-"],
  ];
  byId("facts").replaceChildren(...facts.flatMap(([label, text]) => [element("dt", "", label), element("dd", "", text)]));
}

function showActions(actions, played) {
  byId("actions").querySelector("tbody").replaceChildren(...actions.map(([name, probability]) => {
    const row = element("tr", name === played ? "played" : ""), bar = element("meter"), cell = element("td");
    bar.value = probability;
    bar.setAttribute("aria-hidden", "true"); // the number beside it says the same
    cell.append(bar);
    row.append(element("td", "", name), element("td", "", (100 * probability).toFixed(1) + "%"), cell);
    return row;
  }));
}

function showNumbers() {
  for (const slice of slices) {
    if (slice.row.hidden || slice.start >= numbers.length) continue;
    const found = numbers.slice(slice.start, slice.start + Math.min(slice.size, MOST_SHOWN));
    const text = found.map((number) => number === null ? "NaN" : String(Number(number.toPrecision(4)))).join(" ") + (slice.size > MOST_SHOWN ? " ..." : "");
    if (slice.cell.textContent !== text) slice.cell.textContent = text;
  }
}

function filterSlices() {
  const words = byId("filter").value.trim().toLowerCase();
  for (const slice of slices) slice.row.hidden = !slice.name.toLowerCase().includes(words);
  showNumbers();
}

function stop(words) {
  if (source !== null) source.close();
  source = null;
  byId("pause").disabled = true;
  say(words);
}

function watch() {
  stop("waiting for the next decision");
  waiting = [];
  const wanted = ["worker", "env"].map((id) => Math.max(0, Math.trunc(Number(byId(id).value)))).concat(byId("seat").value);
  history.replaceState(null, "", "#" + [place, ...wanted].map(encodeURIComponent).join("/"));
  episode = null;
  byId("pause").disabled = false;
  source = new EventSource(address + "/" + wanted.join("/"));
  source.addEventListener("message", (event) => {
    const message = JSON.parse(event.data);
    if (message.record) queue(message.record);
    if (message.said) report(message.said);
    if (message.ended) {
      report(message.ended);
      stop("no game is watched: " + message.ended);
    }
  });
  source.addEventListener("error", () => {
    if (source === null) return;
    if (source.readyState === EventSource.CLOSED) stop("the page does not show this game: too many are watched, or there is no such run");
    else say("the page's process does not answer: this is what it showed last");
  });
}

function limit(id, count) { // 0: it is not known
  if (!count) return;
  byId(id).max = String(count - 1);
  byId(id + "s").textContent = count === 1 ? "(0)" : "(0 to " + (count - 1) + ")";
}

async function begin() {
  const answer = await answerTo(address, byId("state"));
  if (answer === null) {
    byId("choice").hidden = true;
    return;
  }
  about = await answer.json();
  document.title = "Simul: game of " + about.run;
  say(about.said || about.run + ", " + about.game + ": choose a game");
  limit("worker", about.workers);
  limit("env", about.envs);
  for (let seat = 0; seat < Math.min(about.seats, 64); seat += 1) {
    const option = element("option", "", String(seat));
    option.value = String(seat);
    byId("seat").append(option);
  }
  const table = byId("slices").querySelector("tbody");
  slices = about.slices.map(([name, start, size, meaning]) => {
    const row = element("tr"), cell = element("td"), label = element("td", "", name);
    label.title = meaning;
    row.append(label, cell);
    table.append(row);
    return { name, start, size, row, cell };
  });
  if (about.left_out) report(about.left_out + " slices of the observation are not listed");
  values = new Chart(byId("values"), { title: "value", unit: "of this episode", lines: [{ label: "value", band: false }] }, 2, 0);
  for (const [number, id] of ["worker", "env", "seat"].entries()) if (chosen[number]) byId(id).value = chosen[number];
  if (chosen.length === 3) watch();
  else byId("worker").focus();
}

byId("choice").addEventListener("submit", (event) => {
  event.preventDefault();
  watch();
});
byId("pause").addEventListener("click", () => {
  waiting = [];
  stop("no game is watched");
});
byId("filter").addEventListener("input", filterSlices);
document.addEventListener("visibilitychange", () => { // a page that is hidden costs the run nothing
  if (document.hidden) {
    resumes = source !== null;
    if (resumes) stop("stopped while the page is hidden");
  } else if (resumes) {
    watch();
  }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (values !== null && values.plot !== null) values.draw();
});
begin();
