// The timeline: sizes, cache or money over all requests, with a mark at each compaction and at what was missed.

/* global uPlot */
import { dollars, el, number, short } from "./dom.js";

export const LEFT = 58; // pixels left of the plot, for the axis; the slider below keeps the same margins
export const RIGHT = 14;
const LOWEST = 190; // pixels; the chart takes what the figures beside it leave

let colors = new Map(); // of the scheme in use, asked for once in each drawing: asking takes time

function color(name) {
  if (!colors.has(name)) colors.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colors.get(name);
}

export class Timeline {
  constructor(app) {
    this.app = app;
    this.root = el("div", { class: "chart", role: "img" });
    this.legend = el("div", { class: "legend" });
    this.hover = null;
    new ResizeObserver(() => this.resize()).observe(this.root);
  }

  resize() {
    const [width, height] = this.room();
    if (this.plot && width && (width !== this.plot.width || height !== this.plot.height)) this.plot.setSize({ width, height });
  }

  room() {
    return [this.root.clientWidth, Math.max(LOWEST, this.root.clientHeight)];
  }

  // The columns of what is shown: names, values per request, how they are drawn.
  series() {
    const { app } = this;
    const a = app.run;
    if (app.chart === "money") {
      const list = app.prices;
      const runs = app.model.runs.map((run) => ({ name: app.isCompare ? `with compaction, ${app.letter(run)}` : "with compaction", values: run.costs[list].with, stroke: run.number ? "other" : "view", width: run === a ? 2 : 1.5 }));
      return [{ name: "without compaction", values: a.costs[list].without, stroke: "history", width: 1.5 }, ...runs];
    }
    if (app.chart === "cache") {
      return [
        { name: "input, all", values: a.requests.view, stroke: "uncached", fill: "uncached-fill", width: 1, stepped: true },
        { name: "read from the cache", values: a.requests.cached, stroke: "cached", fill: "cached-fill", width: 1, stepped: true },
      ];
    }
    const views = app.model.runs.map((run) => ({ name: app.isCompare ? `view ${app.letter(run)}` : "view", values: run.requests.view.map((size) => size || null), stroke: run.number ? "other" : "view", fill: run === a ? (run.number ? "other-fill" : "view-fill") : undefined, width: run === a ? 2 : 1.5 }));
    return [{ name: "history", values: a.requests.history, stroke: "history", width: 1.5, dash: [4, 3] }, ...views];
  }

  draw() {
    const { app } = this;
    this.plot?.destroy();
    colors = new Map();
    const shown = this.series();
    const money = app.chart === "money";
    const count = app.model.requests;
    const values = shown.map((one) => (money ? [...one.values, ...new Array(Math.max(0, count - one.values.length)).fill(null)] : one.values));
    const settings = app.model.runs.flatMap((run) => [run.settings.window, run.settings.trigger ?? 0]);
    const levels = app.chart === "tokens" ? settings.filter((value) => value <= 3 * largest(app.run.requests.history)) : [];
    const tallest = Math.max(1, ...values.map(largest), ...levels);
    const axis = { stroke: color("muted"), font: '11px system-ui, sans-serif', ticks: { show: false }, grid: { stroke: color("grid"), width: 1 } };
    const options = {
      width: this.room()[0] || 800,
      height: this.room()[1],
      padding: [14, RIGHT, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { setScale: false, x: false, y: false }, points: { show: false } },
      scales: { x: { time: false, range: [0, Math.max(1, count - 1)] }, y: { range: [0, tallest * 1.06] } },
      axes: [
        { ...axis, size: 24, grid: { show: false }, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? tick + 1 : "")), incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] },
        { ...axis, size: LEFT, values: (_, ticks) => ticks.map((tick) => (money ? `$${tick / 1e9 < 0.1 && tick ? (tick / 1e9).toFixed(3) : (tick / 1e9).toFixed(2)}` : short(tick))) },
      ],
      series: [
        {},
        ...shown.map((one) => ({
          stroke: color(one.stroke),
          width: one.width,
          dash: one.dash,
          fill: one.fill ? color(one.fill) : undefined,
          points: { show: count < 3 },
          paths: one.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
        })),
      ],
      hooks: { draw: [(plot) => this.marks(plot)], setCursor: [(plot) => this.moved(plot)] },
    };
    this.plot = new uPlot(options, [app.run.requests.index.map((_, at) => at), ...values], this.root);
    this.plot.over.addEventListener("click", () => {
      if (this.plot.cursor.idx !== null && this.plot.cursor.idx !== undefined) app.setMoment(this.plot.cursor.idx);
    });
    this.plot.over.addEventListener("mouseleave", () => {
      this.hover = null;
      this.tell();
    });
    this.shown = shown;
    this.tell();
    this.root.setAttribute("aria-label", `Timeline of ${number(count)} requests with ${app.run.compactions.length} compactions`);
  }

  moved(plot) {
    const at = plot.cursor.left >= 0 ? plot.cursor.idx : null;
    if (at === this.hover) return;
    this.hover = at;
    this.tell();
  }

  // The legend says the values of the moment, or of what the pointer is on.
  tell() {
    if (!this.shown) return;
    const at = this.hover ?? this.app.moment;
    const say = this.app.chart === "money" ? dollars : number;
    const { settings } = this.app.run;
    const items = this.shown.map((one) => el("span", { class: "key" }, el("i", { class: `swatch swatch-${one.stroke}${one.dash ? " dashed" : ""}` }), one.name, el("b", {}, one.values[at] === null || one.values[at] === undefined ? "–" : say(one.values[at]))));
    if (this.app.chart === "tokens") {
      items.push(el("span", { class: "key" }, el("i", { class: "swatch swatch-window" }), "window", el("b", {}, number(settings.window))));
      if (settings.trigger) items.push(el("span", { class: "key" }, el("i", { class: "swatch swatch-trigger dashed" }), "threshold", el("b", {}, number(settings.trigger))));
    }
    items.push(el("span", { class: "key" }, el("i", { class: "triangle" }), "compaction"));
    if (this.app.run.needs.length) items.push(el("span", { class: "key" }, el("i", { class: "missed" }), "needed, not in view"));
    this.legend.replaceChildren(el("span", { class: "at" }, `Request ${number(at + 1)}`), ...items);
  }

  marks(plot) {
    const { ctx, bbox } = plot;
    const { app } = this;
    const ratio = devicePixelRatio;
    const x = (at) => Math.round(plot.valToPos(at, "x", true));
    ctx.save();
    if (app.chart === "tokens") {
      this.level(plot, app.run.settings.window, color("window"), []);
      if (app.run.settings.trigger) this.level(plot, app.run.settings.trigger, color("window"), [3 * ratio, 4 * ratio]);
    }
    const crowded = app.run.compactions.length > 0 && bbox.width / app.run.compactions.length < 16 * ratio;
    app.run.compactions.forEach((compaction, place) => {
      const at = x(compaction.at);
      ctx.strokeStyle = color("compaction-line");
      ctx.lineWidth = ratio;
      ctx.setLineDash([]);
      ctx.beginPath();
      ctx.moveTo(at + 0.5, bbox.top);
      ctx.lineTo(at + 0.5, bbox.top + bbox.height);
      ctx.stroke();
      ctx.fillStyle = color("compaction");
      ctx.beginPath();
      ctx.moveTo(at - 5 * ratio, bbox.top - 9 * ratio);
      ctx.lineTo(at + 5 * ratio, bbox.top - 9 * ratio);
      ctx.lineTo(at, bbox.top - 1 * ratio);
      ctx.fill();
      const next = app.run.compactions[place + 1];
      const isClose = next && x(next.at) - at < 24 * ratio;
      if (!crowded && !isClose) {
        ctx.font = `${10 * ratio}px system-ui, sans-serif`;
        const isLast = at > bbox.left + bbox.width - 16 * ratio;
        const before = app.run.compactions[place - 1];
        if (isLast && before && at - x(before.at) < 40 * ratio) return;
        ctx.textAlign = isLast ? "right" : "left";
        ctx.fillStyle = color("muted");
        ctx.fillText(String(place + 1), at + (isLast ? -7 : 7) * ratio, bbox.top - 2 * ratio);
      }
    });
    for (const [at, needs] of app.run.neededAt) {
      if (!needs.some((need) => need.kind === "lost")) continue;
      ctx.fillStyle = color("lost");
      ctx.beginPath();
      const low = bbox.top + bbox.height;
      ctx.moveTo(x(at) - 4 * ratio, low);
      ctx.lineTo(x(at) + 4 * ratio, low);
      ctx.lineTo(x(at), low - 7 * ratio);
      ctx.fill();
    }
    for (const mark of app.run.marks) {
      ctx.fillStyle = color("error");
      ctx.fillRect(x(mark.at) - 2 * ratio, bbox.top, 4 * ratio, 6 * ratio);
    }
    ctx.strokeStyle = color("accent");
    ctx.lineWidth = 1.5 * ratio;
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.moveTo(x(app.moment) + 0.5, bbox.top);
    ctx.lineTo(x(app.moment) + 0.5, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  }

  level(plot, value, stroke, dash) {
    if (value > plot.scales.y.max) return;
    const { ctx, bbox } = plot;
    const y = Math.round(plot.valToPos(value, "y", true)) + 0.5;
    ctx.strokeStyle = stroke;
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  }

  // Another moment: only the line moves.
  follow() {
    this.plot?.redraw(false, false);
    this.tell();
  }
}

// Not Math.max(...values): a function takes no hundred thousand arguments.
function largest(values) {
  return values.reduce((most, value) => (value > most ? value : most), 0);
}
