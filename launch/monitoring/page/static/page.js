"use strict";
// One EventSource; each message has the changes of one run. Everything of a run is set as text, never as markup.

const HIDDEN_MS = 60000; // a page that is hidden for so long is sent nothing until it is looked at again
const MOST_EVENTS = 200;
const STATES_AT_WORK = ["ready", "stopped"];
const STATES_ENDED = ["stopped", "failed"];
const runs = new Map();
const connection = document.getElementById("connection");
const axis = document.getElementById("axis");
let source = null;
let hiddenSince = null;

class Run {
  constructor(place) {
    this.place = place;
    this.box = document.getElementById("run").content.firstElementChild.cloneNode(true);
    this.find(".tables").hidden = true; // until there are figures: a folder of replays or of a load test has none
    this.state = { states: {}, used: {} };
    this.rows = [];
    this.tail = null;
    this.charts = [];
    document.getElementById("runs").append(this.box);
  }

  find(selector) { return this.box.querySelector(selector); }

  update(message) {
    Object.assign(this.state, message);
    const state = this.state;
    if ("name" in message) this.find(".name").textContent = state.name;
    if ("phase" in message || "clock" in message || "game" in message) {
      this.find(".phase").textContent = [state.phase, state.clock, state.game].filter(Boolean).join(" · ");
    }
    if ("phase" in message) this.showLink();
    if ("play" in message) this.showPlay();
    if ("fault" in message) this.find(".fault").textContent = state.fault;
    if ("states" in message || "used" in message) this.showProcesses();
    if ("figures" in message) this.showFigures();
    if ("batches" in message) this.showBatches();
    if ("pairs" in message) this.showPairs();
    if ("league" in message) this.showLeague();
    if ("pictures" in message) this.showPictures();
    if ("replays" in message) this.showReplays();
    if ("events" in message) this.addEvents(message.events);
    if ("curves" in message) this.addCurves(message.curves);
  }

  showLink() {
    const box = this.find(".games");
    box.hidden = STATES_ENDED.includes(this.state.phase);
    box.firstElementChild.href = "/game#" + this.place;
  }

  showPlay() {
    const box = this.find(".play");
    box.hidden = !this.state.play;
    box.lastElementChild.textContent = this.state.play;
  }

  showProcesses() {
    this.find(".tables").hidden = false;
    const rows = Object.entries(this.state.states).map(([name, [state, restarts, node]]) => {
      const [cpu, memory, peak] = this.state.used[name] || [null, null, null];
      const row = element("tr");
      row.append(element("td", "", node ? name + "@" + node : name));
      row.append(element("td", STATES_AT_WORK.includes(state) ? "good" : "bad", state));
      for (const figure of [cpu, memory, peak, restarts || ""]) row.append(element("td", "", figure ?? "-"));
      return row;
    });
    this.find(".processes tbody").replaceChildren(...rows);
  }

  showFigures() {
    const entries = Object.entries(this.state.figures);
    this.find(".figures").replaceChildren(...entries.flatMap(([label, text]) => [element("dt", "", label), element("dd", "", text)]));
  }

  showBatches() {
    const entries = Object.entries(this.state.batches).sort((one, other) => Number(one[0]) - Number(other[0]));
    const most = Math.max(1, ...entries.map(([, count]) => count));
    const bars = entries.map(([size, count]) => {
      const column = element("div"), bar = element("i");
      bar.style.height = Math.max(0, count / most * 80) + "%";
      column.title = size + " rows or fewer: " + count + " batches";
      column.append(bar, element("b", "", size));
      return column;
    });
    const box = this.find(".batches");
    box.setAttribute("aria-label", entries.map(([size, count]) => size + ": " + count).join(", ") || "no batch yet");
    box.replaceChildren(...bars);
  }

  showPairs() {
    const { best = "", rates = [], ratings = [] } = this.state.pairs;
    this.find(".pairs").hidden = !best && !rates.length;
    this.find(".best").textContent = best;
    fillTable(this.find(".rates"), rates);
    fillTable(this.find(".ratings"), ratings);
  }

  showLeague() {
    const { about = "", columns = [], rows = [] } = this.state.league;
    const panel = this.find(".league"), heads = ["policy", "Elo", "95% interval", "games", ...columns];
    panel.hidden = !rows.length;
    panel.querySelector(".about").textContent = about;
    panel.querySelector("thead tr").replaceChildren(...heads.map((head) => element("th", "", head)));
    fillTable(panel.querySelector("table"), rows);
  }

  showPictures() {
    const panel = this.find(".pictures"), names = this.state.pictures;
    panel.hidden = !names.length;
    for (const old of panel.querySelectorAll("img")) old.remove();
    for (const name of names) {
      const picture = element("img");
      picture.alt = "plot of the load test: " + name.replace(".png", "").replace("_", " ");
      picture.src = "/runs/" + this.place + "/" + encodeURIComponent(name);
      panel.append(picture);
    }
  }

  showReplays() {
    const panel = this.find(".replays");
    panel.hidden = !this.state.replays.length;
    panel.querySelector("ul").replaceChildren(...this.state.replays.map((name) => {
      const item = element("li"), link = element("a", "", name.replace(/\.(json|log)$/, ""));
      link.href = (name.endsWith(".log") ? "/battle" : "/replay") + "#" + this.place + "/" + encodeURIComponent(name);
      item.append(link);
      return item;
    }));
  }

  addEvents(events) {
    const list = this.find(".events");
    for (const event of events) list.prepend(element("li", "", event));
    while (list.children.length > MOST_EVENTS) list.lastElementChild.remove();
  }

  addCurves(curves) {
    if (curves.charts) {
      for (const chart of this.charts) chart.remove();
      this.rows = [];
      let first = 2; // after decisions and training time
      this.charts = curves.charts.map((spec) => {
        const chart = new Chart(this.find(".charts"), spec, first, Number(axis.value));
        first = chart.next;
        return chart;
      });
    }
    if (!curves.rows) return;
    this.rows.push(...curves.rows);
    this.tail = curves.tail;
    for (const chart of this.charts) chart.show(this.shown());
  }

  shown() { return this.tail ? [...this.rows, this.tail] : this.rows; }
}

function fillTable(table, rows) {
  table.hidden = !rows.length;
  table.querySelector("tbody").replaceChildren(...rows.map((cells) => {
    const row = element("tr");
    row.append(...cells.map((cell) => element("td", "", cell)));
    return row;
  }));
}

function connect() {
  if (source !== null) source.close();
  source = new EventSource("/events");
  source.addEventListener("open", () => {
    for (const run of runs.values()) { // the stream begins with everything
      for (const chart of run.charts) chart.remove(); // uPlot keeps a chart until it is destroyed
      run.box.remove();
    }
    runs.clear();
    say("live", false);
  });
  source.addEventListener("message", (event) => {
    const message = JSON.parse(event.data);
    if (!runs.has(message.run)) runs.set(message.run, new Run(message.run));
    runs.get(message.run).update(message);
  });
  source.addEventListener("error", () => {
    say("the page's process does not answer: these are its last figures", true);
    if (source.readyState === EventSource.CLOSED) setTimeout(begin, 2000); // refused: it does not try again by itself
  });
}

function say(words, lost) {
  connection.textContent = words;
  connection.classList.toggle("lost", lost);
}

async function begin() { // the stream, or the token where the page has one
  const answer = await fetch("/login").catch(() => null);
  if (answer === null || !answer.ok) {
    setTimeout(begin, 2000);
  } else if (await answer.json()) {
    connect();
  } else {
    say("the page asks for its token", true);
    document.getElementById("login").hidden = false;
    document.getElementById("token").focus();
  }
}

async function logIn(token) {
  const answer = await fetch("/login", { method: "POST", body: token }).catch(() => null);
  const done = answer !== null && answer.ok;
  document.getElementById("login").hidden = done;
  document.getElementById("refusal").textContent = done || answer === null ? "" : await answer.text();
  if (done) connect();
}

document.getElementById("login").addEventListener("submit", (event) => {
  event.preventDefault();
  logIn(document.getElementById("token").value.trim());
});

axis.addEventListener("change", () => {
  for (const run of runs.values()) for (const chart of run.charts) chart.setAxis(Number(axis.value), run.shown());
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const run of runs.values()) for (const chart of run.charts) if (chart.plot !== null) chart.draw();
});

document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenSince);
  if (document.hidden) {
    hiddenSince = setTimeout(() => source.close(), HIDDEN_MS);
  } else if (source !== null && source.readyState === EventSource.CLOSED) {
    begin();
  }
});

const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given !== null) {
  history.replaceState(null, "", location.pathname);
  logIn(given);
} else {
  begin();
}
