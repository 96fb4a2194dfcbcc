"use strict";
// Charts of one run: uPlot draws them; arrows, Home, End, plus, minus and Escape do what a mouse does.

const PALETTE = 8;
const HEIGHT = 170;
// Seconds between two ticks of a time axis.
const TICKS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 432000, 864000];
const SHADE = 0.18; // of the band of an interval

function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text; // never markup: names come from runs
  return made;
}

function shaded(colour) { // "#rrggbb" with the opacity of a band
  return colour + Math.round(SHADE * 255).toString(16).padStart(2, "0");
}

function shortNumber(value) {
  if (value === null || value === undefined) return "-";
  const size = Math.abs(value);
  if (size >= 1e9) return (value / 1e9).toPrecision(3) + "G";
  if (size >= 1e6) return (value / 1e6).toPrecision(3) + "M";
  if (size >= 1e4) return (value / 1e3).toPrecision(3) + "k";
  if (size >= 100 || value === 0) return value.toFixed(0);
  return size >= 0.001 ? String(Number(value.toPrecision(3))) : value.toExponential(1);
}

function clock(seconds) {
  if (seconds < 120) return seconds.toFixed(0) + " s";
  if (seconds < 7200) return (seconds / 60).toFixed(seconds < 600 ? 1 : 0) + " min";
  return (seconds / 3600).toFixed(seconds < 36000 ? 1 : 0) + " h";
}

class Chart {
  // `first`: place of its first column in a row; each line has one, and two more where it has a band.
  constructor(parent, spec, first, axis) {
    this.spec = spec;
    this.axis = axis;
    this.places = [];
    for (const line of spec.lines) {
      this.places.push(first);
      first += line.band ? 3 : 1;
    }
    this.next = first;
    this.box = element("figure", "chart");
    this.box.hidden = true;
    this.box.tabIndex = 0;
    const title = element("h3", "", spec.title);
    if (spec.unit) title.append(" ", element("span", "unit", spec.unit));
    this.canvas = element("div");
    this.legend = element("ul", "legend");
    this.box.append(title, this.canvas, this.legend);
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    parent.append(this.box);
    this.plot = null;
    this.data = [[]];
    new ResizeObserver(() => this.fit()).observe(this.box);
  }

  show(rows) {
    const columns = [rows.map((row) => row[this.axis])];
    for (const [number, line] of this.spec.lines.entries()) {
      for (let part = 0; part < (line.band ? 3 : 1); part += 1) {
        columns.push(rows.map((row) => row[this.places[number] + part]));
      }
    }
    this.data = columns;
    this.box.hidden = !columns.slice(1).some((column) => column.some((value) => value !== null));
    if (this.box.hidden) return;
    if (this.plot === null) this.draw();
    else this.plot.setData(columns, !this.zoomed());
    this.describe();
  }

  draw() {
    if (this.plot !== null) this.plot.destroy();
    const series = [{}], bands = [];
    this.marks = [];
    for (const [number, line] of this.spec.lines.entries()) {
      const colour = colourOf("--c" + (number % PALETTE));
      const dash = number >= PALETTE ? [6, 3] : undefined;
      this.marks.push({ at: series.length, label: line.label, colour });
      series.push({ stroke: colour, width: 1.5, dash, spanGaps: true, points: { show: this.data[0].length < 3 } });
      if (line.band) {
        const bound = { stroke: "transparent", width: 0, spanGaps: true, points: { show: false } };
        series.push(bound, { ...bound });
        bands.push({ series: [series.length - 1, series.length - 2], fill: shaded(colour) });
      }
    }
    const grid = { stroke: colourOf("--line"), width: 1 };
    const axis = { stroke: colourOf("--dim"), grid, ticks: grid, font: "12px system-ui" };
    const asText = this.axis === 1 ? clock : shortNumber;
    this.plot = new uPlot({
      width: this.width(), height: HEIGHT, series, bands, legend: { show: false },
      scales: { x: { time: false } },
      axes: [
        { ...axis, size: 32, space: 60, incrs: this.axis === 1 ? TICKS : undefined, values: (_, values) => values.map(asText) },
        { ...axis, size: 50, values: (_, values) => values.map(shortNumber) },
      ],
      cursor: { points: { size: 6 } },
      hooks: { setCursor: [() => this.describe()] },
    }, this.data, this.canvas);
  }

  describe() { // the legend: values at the cursor, else the newest ones
    if (this.plot === null) return;
    const chosen = this.plot.cursor.idx;
    const items = this.marks.map((mark) => {
      const column = this.data[mark.at];
      let at = chosen ?? column.length - 1;
      while (chosen == null && at > 0 && column[at] === null) at -= 1;
      const item = element("li");
      const key = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      key.setAttribute("viewBox", "0 0 1 1");
      key.setAttribute("aria-hidden", "true");
      const square = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      square.setAttribute("width", "1");
      square.setAttribute("height", "1");
      square.setAttribute("fill", mark.colour);
      key.append(square);
      item.append(key, mark.label + " " + shortNumber(column[at]));
      return item;
    });
    if (chosen != null) {
      const x = this.data[0][chosen];
      items.push(element("li", "", "at " + (this.axis === 1 ? clock(x) : shortNumber(x) + " decisions")));
    }
    this.legend.replaceChildren(...items);
    this.box.setAttribute("aria-label", this.spec.title + ": " + items.map((item) => item.textContent).join(", "));
  }

  onKey(event) {
    const x = this.data[0];
    if (this.plot === null || event.ctrlKey || event.altKey || event.metaKey) return;
    const at = this.plot.cursor.idx ?? x.length - 1;
    const moves = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: x.length - 1 };
    const zooms = { "+": 0.5, "=": 0.5, "-": 2 };
    if (event.key in moves) {
      const to = Math.max(0, Math.min(x.length - 1, moves[event.key]));
      this.plot.setCursor({ left: this.plot.valToPos(x[to], "x"), top: HEIGHT / 2 });
    } else if (event.key in zooms) {
      const { min, max } = this.plot.scales.x, half = (max - min) * zooms[event.key] / 2;
      if (half >= (x[x.length - 1] - x[0]) / 2) this.whole();
      else this.plot.setScale("x", { min: x[at] - half, max: x[at] + half });
    } else if (event.key === "Escape") {
      this.whole();
      this.plot.setCursor({ left: -10, top: -10 });
    } else {
      return;
    }
    event.preventDefault();
  }

  whole() {
    const x = this.data[0];
    this.plot.setScale("x", { min: x[0], max: x[x.length - 1] });
  }

  zoomed() {
    const { min, max } = this.plot.scales.x, x = this.plot.data[0];
    return min > x[0] || max < x[x.length - 1];
  }

  width() { return Math.max(200, this.canvas.clientWidth); }

  fit() {
    if (this.plot !== null && this.plot.width !== this.width()) this.plot.setSize({ width: this.width(), height: HEIGHT });
  }

  setAxis(axis, rows) {
    this.axis = axis;
    if (this.plot !== null) this.plot.destroy();
    this.plot = null;
    this.show(rows);
  }

  remove() {
    if (this.plot !== null) this.plot.destroy();
    this.box.remove();
  }
}
