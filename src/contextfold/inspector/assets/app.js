// The page: one moment of a conversation, what its model saw then, and the ways from one place to another.

import { Timeline } from "./chart.js";
import { dollars, el, number, percent, plural, replace, visible } from "./dom.js";
import { VirtualList } from "./list.js";
import { FATES, Model, SIGNS, isGone } from "./model.js";
import { historyRow, quotesRow, recalledRow, summaryRow, viewRow } from "./rows.js";
import { Search } from "./search.js";
import { foldedEnd, FOLD, OUTPUT_FOLD } from "./text.js";

const THEMES = { auto: "◐", light: "☀", dark: "☾" };
const KEYS = [
  ["← →", "one request back or forth (with Shift: ten)"],
  ["n  p", "next, previous compaction"],
  ["d  D", "next, previous dropped message"],
  ["s  S", "next, previous message that went into the summary"],
  ["c  C", "next, previous shortened message"],
  ["m  M", "next, previous place where something needed was not in the view"],
  ["o", "from a quoted line, or a message of the view, to its origin; from there back"],
  ["/", "search; Enter and Shift+Enter go through the hits"],
  ["f", "fold or unfold tool outputs"],
  ["a", "the other setting, where two are compared"],
  ["t", "light, dark, or as the system has it"],
  ["?", "this list"],
];

export class App {
  constructor(root, document_, live) {
    this.root = root;
    this.live = live;
    this.foldOutputs = true;
    this.chart = "tokens";
    this.prices = document_.prices[0]?.key;
    this.search = null;
    this.selected = null;
    this.quote = null;
    this.active = 0;
    this.open = new Map();
    this.estimates = new Map();
    this.theme = remembered("theme") ?? "auto";
    this.take(document_);
    this.moment = Math.max(0, this.model.requests - 1);
    this.build();
    this.applyTheme();
    this.timeline.draw();
    this.showMoment();
    window.addEventListener("keydown", (event) => this.key(event));
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.timeline.draw());
    this.toNow();
  }

  take(document_) {
    this.model = new Model(document_);
    this.model.runs.forEach((run, at) => (run.number = at));
    for (const run of this.model.runs) run.compactions.forEach((compaction, at) => (run.states[compaction.state].compaction.number = at + 1));
    this.requestOf = new Map(this.model.runs[0].requests.index.map((index, at) => [index, at]));
  }

  get run() {
    return this.model.runs[this.active];
  }
  get isCompare() {
    return this.model.runs.length > 1;
  }
  get others() {
    return this.model.runs.filter((run) => run !== this.run);
  }
  get until() {
    return this.model.until(this.moment) ?? 0;
  }
  get state() {
    return this.run.state(this.run.stateNumber(this.moment));
  }
  letter(run) {
    return "AB"[run.number];
  }

  // ---- what is there ----

  build() {
    const { source } = this.model.document;
    this.searching = new Search(this);
    this.timeline = new Timeline(this);
    this.status = el("div", { class: "status", role: "status", "aria-live": "polite" });
    this.themeButton = el("button", { class: "icon", type: "button", onclick: () => this.nextTheme() });
    this.slider = el("input", { type: "range", min: 0, step: 1, "aria-label": "Request" });
    this.slider.addEventListener("input", () => {
      if (this.sliding) return; // one moment for each frame, however fast the hand is
      this.sliding = requestAnimationFrame(() => {
        this.sliding = 0;
        this.setMoment(Number(this.slider.value));
      });
    });
    this.momentLine = el("div", { class: "moment" });
    this.stats = el("aside", { class: "stats", "aria-label": "Figures at this moment" });
    this.facts = el("p", { class: "facts" });
    this.kinds = el(
      "div",
      { class: "segments", role: "group", "aria-label": "What the timeline shows" },
      [["tokens", "Tokens"], ["cache", "Cache"], ["money", "Money"]].map(([kind, name]) => el("button", { type: "button", "data-kind": kind, "aria-pressed": "false", onclick: () => this.setChart(kind) }, name)),
    );
    this.history = new VirtualList({ label: "History", render: (index) => historyRow(this, index), estimate: (index) => this.estimated(index) });
    this.legend = el("div", { class: "fates", role: "group", "aria-label": "Messages by fate: a click goes to the next one" });
    this.foldButton = el("button", { class: "small", type: "button", onclick: () => this.toggleFold() });
    this.views = this.model.runs.map((run) => this.viewPanel(run));
    this.runSwitch = this.isCompare ? el("div", { class: "segments runs", role: "group", "aria-label": "Setting" }, this.model.runs.map((run) => el("button", { type: "button", "aria-pressed": "false", onclick: () => this.setRun(run.number) }, el("span", { class: `letter letter-${run.number ? "b" : "a"}` }, this.letter(run)), run.name))) : null;
    this.actions = el("div", { class: "actions" });
    this.help = el("dialog", { class: "sheet", "aria-label": "Keyboard" }, el("h2", {}, "Keyboard"), el("dl", { class: "keys" }, KEYS.map(([keys, what]) => [el("dt", {}, keys.split("  ").map((key) => [el("kbd", {}, key), " "])), el("dd", {}, what)])), el("form", { method: "dialog" }, el("button", { class: "primary" }, "Close")));
    replace(
      this.root,
      el(
        "div",
        { class: `app${this.isCompare ? " compare" : ""}` },
        el(
          "header",
          { class: "top" },
          this.live?.home ? el("a", { class: "brand", href: this.live.home, title: "All sessions" }, mark(), "contextfold") : el("span", { class: "brand" }, mark(), "contextfold"),
          el("h1", { title: visible(source.name) }, visible(source.name)),
          this.facts,
          this.actions,
          this.searching.root,
          this.themeButton,
          el("button", { class: "icon", type: "button", title: "Keyboard (?)", "aria-label": "Keyboard", onclick: () => this.help.showModal() }, "?"),
        ),
        el(
          "section",
          { class: "overview" },
          el("div", { class: "card timeline" }, el("div", { class: "cardhead" }, this.kinds, this.runSwitch, this.timeline.legend), this.timeline.root, el("div", { class: "slider" }, this.slider), this.momentLine),
          this.stats,
        ),
        el(
          "main",
          { class: "panels" },
          el("section", { class: "panel history" }, el("div", { class: "panelhead" }, el("h2", {}, "History"), this.legend, this.foldButton), this.history.root),
          this.views.map((view) => view.root),
        ),
        this.status,
        this.help,
      ),
    );
    this.history.setCount(this.model.messages.length);
    this.fill();
  }

  // What depends on the document and not on the moment.
  fill() {
    const { source, messages } = this.model.document;
    const total = messages.reduce((sum, message) => sum + message.tokens, 0);
    replace(this.facts, [source.format, plural(messages.length, "message"), `${number(total)} tokens`, source.recorded ? "recorded" : "replayed"].map((fact) => el("span", {}, fact)));
    this.slider.max = Math.max(0, this.model.requests - 1);
    this.live?.actions?.(this.actions, this);
    this.setChart(this.chart, { draw: false });
  }

  viewPanel(run) {
    const panel = { run, items: [] };
    panel.list = new VirtualList({
      label: `View, ${run.name}`,
      render: (place) => this.viewItem(this.model.runs[run.number], panel.items[place]),
      estimate: (place) => this.viewHeight(panel.items[place]),
    });
    panel.size = el("span", { class: "quiet" });
    panel.title = el("h2", {}, this.isCompare ? el("span", { class: `letter letter-${run.number ? "b" : "a"}` }, this.letter(run)) : null, this.isCompare ? ` ${run.name}` : "View");
    panel.root = el("section", { class: `panel view view-${run.number}` }, el("div", { class: "panelhead" }, panel.title, panel.size), panel.list.root);
    return panel;
  }

  viewItem(run, item) {
    if (item === "summary") return summaryRow(this, run);
    if (item.recalled) return recalledRow(this, run, item);
    return typeof item === "number" ? viewRow(this, run, item) : quotesRow(this, run, item);
  }

  viewHeight(item) {
    if (item === "summary") return 320;
    if (item.recalled) return 160;
    return typeof item === "number" ? this.estimated(item) : 18 * (item.to - item.from) + 24;
  }

  estimated(index) {
    if (!this.estimates.has(index)) this.estimates.set(index, estimate(this.model.messages[index], this.foldOutputs));
    return this.estimates.get(index);
  }

  // The document has grown: what the reader looks at stays.
  update(document_) {
    const known = this.model.messages.length;
    const atEnd = this.moment >= this.model.requests - 1;
    this.take(document_);
    if (atEnd || this.moment >= this.model.requests) this.moment = Math.max(0, this.model.requests - 1);
    this.history.setCount(this.model.messages.length, { keep: known });
    this.fill();
    this.timeline.draw();
    this.showMoment();
    if (atEnd && this.model.messages.length > known) this.toNow();
  }

  // ---- the moment ----

  setMoment(moment) {
    const next = Math.max(0, Math.min(this.model.requests - 1, moment));
    if (next === this.moment) return;
    this.moment = next;
    this.selected = null;
    this.quote = null;
    this.showMoment({ render: false });
    this.toNow();
  }

  showMoment({ render = true } = {}) {
    this.slider.value = this.moment;
    this.slider.setAttribute("aria-valuetext", `Request ${this.moment + 1} of ${this.model.requests}`);
    this.timeline.follow();
    this.tellMoment();
    this.tellStats();
    this.tellLegend();
    this.history.clear();
    if (render) this.history.update();
    for (const view of this.views) {
      const run = this.model.runs[view.run.number];
      view.items = run.view(this.moment, this.until);
      view.list.setCount(view.items.length, { render });
      const error = run.marks.find((found) => found.at === this.moment && found.kind === "error");
      replace(view.size, error ? el("span", { class: "bad" }, "no view: ", error.text) : [plural(view.items.filter((item) => typeof item !== "object" || item.recalled).length, "message"), " · ", number(run.requests.view[this.moment] ?? 0), " tokens of ", number(run.settings.window)]);
      view.root.classList.toggle("inactive", run !== this.run);
    }
    this.runSwitch?.querySelectorAll("button").forEach((button, at) => button.setAttribute("aria-pressed", String(at === this.active)));
  }

  toNow() {
    const last = this.model.messages.length - 1;
    this.history.jump(Math.min(this.until, last), { flash: false, at: this.until > last ? 0.3 : 0.72 });
    for (const view of this.views) {
      const summary = view.items.indexOf("summary");
      view.list.jump(this.state.compaction?.number && this.run.compactions.some((found) => found.at === this.moment) && summary >= 0 ? summary : view.items.length - 1, { flash: false, at: 0.5 });
    }
  }

  tellMoment() {
    const { run, moment, until } = this;
    const compaction = this.state.compaction;
    const made = compaction && run.compactions.find((found) => found.at === moment);
    const marks = run.marks.filter((found) => found.at === moment);
    const missing = (run.neededAt.get(moment) ?? []).filter((need) => need.kind === "lost");
    const fired = made ? costOf(made, run, moment) : null;
    replace(
      this.momentLine,
      el("span", { class: "steps" }, step("⇤", "Previous compaction (p)", () => this.toCompaction(-1)), step("‹", "Previous request (←)", () => this.setMoment(moment - 1)), el("b", {}, `Request ${number(moment + 1)}`), el("span", { class: "quiet" }, ` of ${number(this.model.requests)}, before #${until}`), step("›", "Next request (→)", () => this.setMoment(moment + 1)), step("⇥", "Next compaction (n)", () => this.toCompaction(1))),
      made
        ? el("span", { class: "fired" }, el("i", { class: "triangle" }), el("b", {}, `Compaction ${compaction.number}`), ` fired ${why(made.trigger)}: ${number(made.tokens_before)} → ${number(made.tokens_after)} tokens`, fired ? el("span", { class: "quiet" }, ` · ${fired}`) : null)
        : compaction
          ? el("span", { class: "quiet" }, `under compaction ${compaction.number}`)
          : el("span", { class: "quiet" }, run.compactions.length ? "before the first compaction" : `nothing is compacted: the history stays below the threshold; try a smaller --window`),
      missing.length ? el("span", { class: "missing" }, el("i", { class: "missed" }), `${plural(missing.length, "needed name")} not in the view`) : null,
      marks.map((found) => el("span", { class: "bad" }, `${found.kind.replaceAll("_", " ")}: ${found.text}`)),
    );
  }

  tellStats() {
    const { model, moment } = this;
    const runs = model.runs;
    const key = this.prices;
    const paid = (run, what) => {
      const values = run.costs[key]?.[what] ?? [];
      return values[Math.min(moment, values.length - 1)] ?? 0;
    };
    const done = (run) => run.compactions.filter((found) => found.at <= moment).length;
    const row = (name, value, title) => el("tr", {}, el("th", { scope: "row", title }, name), runs.map((run) => el("td", {}, value(run))));
    const judged = runs.some((run) => run.needed);
    const select = el("select", { "aria-label": "Price list", onchange: (event) => this.setPrices(event.target.value) }, model.document.prices.map((list) => el("option", { value: list.key, selected: list.key === key }, list.model)));
    replace(
      this.stats,
      el(
        "table",
        {},
        this.isCompare ? el("thead", {}, el("tr", {}, el("td", {}), runs.map((run) => el("th", { scope: "col", title: run.name }, el("span", { class: `letter letter-${run.number ? "b" : "a"}` }, this.letter(run)))))) : null,
        el(
          "tbody",
          {},
          row("View", (run) => [el("b", {}, number(run.requests.view[moment] ?? 0)), meter(run.requests.view[moment] ?? 0, run.settings.window)], "Tokens of the view, as a share of the window"),
          row("History", (run) => number(run.requests.history[moment] ?? 0), "Tokens of everything that was said so far"),
          row("Compactions", (run) => [String(done(run)), el("span", { class: "quiet" }, ` of ${run.compactions.length}`)], "So far, and in all"),
          row("Rewrites", (run) => number(run.sums.rewritten[moment] ?? 0), "Views that are not the view before with something appended: each loses the provider's cache"),
          row("Cached input", (run) => percent(run.sums.cached[moment] ?? 0, run.sums.view[moment] ?? 0), "Share of all input so far that a provider reads from its cache"),
          judged ? row("Needed, missing", (run) => el("span", { class: run.lost[moment] ? "bad" : "" }, number(run.lost[moment] ?? 0)), "Names that answers so far repeated from the past and that were not in the view") : null,
          judged && this.isCompare ? row("Needed, in view", (run) => percent(run.needed.needed - run.needed.lost, run.needed.needed), "Of all names that answers repeated from the past, over the whole conversation") : null,
        ),
      ),
      el(
        "table",
        { class: "money" },
        el("caption", {}, "Money so far", select),
        el(
          "tbody",
          {},
          row("With", (run) => el("b", {}, dollars(paid(run, "with"))), "All requests so far, their answers and summaries"),
          row("Without", (run) => dollars(paid(run, "without")), "The whole history each time, cached perfectly, however large"),
          row("Saved", (run) => saved(paid(run, "with"), paid(run, "without"))),
        ),
      ),
      judged && !this.isCompare ? el("p", { class: "verdict", title: "Names, paths and numbers that later answers repeated from the past, over the whole conversation" }, `In view when needed: ${percent(this.run.needed.needed - this.run.needed.lost, this.run.needed.needed)} of ${number(this.run.needed.needed)}`, el("span", { class: "quiet" }, `, ${number(this.run.needed.bare)} as bare names`)) : null,
    );
  }

  tellLegend() {
    const counts = this.run.counts(this.moment, this.until);
    replace(
      this.legend,
      FATES.filter((fate) => fate !== "later").map((fate) => el("button", { type: "button", class: `fate-${fate}`, disabled: !counts[fate], title: `Next ${fate} message`, onclick: () => this.toFate(fate, 1) }, el("span", { class: "sign", "aria-hidden": "true" }, SIGNS[fate]), el("span", { class: "name" }, fate), el("b", {}, number(counts[fate])))),
    );
    this.foldButton.textContent = this.foldOutputs ? "Unfold outputs" : "Fold outputs";
  }

  // ---- ways from one place to another ----

  toMessage(index, { part, until } = {}) {
    if (part !== undefined) this.unfoldFor("history", index, part, until ?? 0);
    this.selected = index;
    this.history.refresh();
    this.history.jump(index);
    for (const view of this.views) {
      const place = view.items.indexOf(index);
      view.list.refresh();
      if (place >= 0) view.list.jump(place);
    }
    this.say(`Message ${index}, ${index >= this.until ? "not said yet" : this.state.fates[index]}`);
  }

  clicked(event, index, fromView = false) {
    if (event.target.closest("button, a") || String(getSelection())) return;
    this.selected = index;
    for (const list of [this.history, ...this.views.map((view) => view.list)]) list.inner.querySelectorAll(".selected").forEach((row) => row.classList.remove("selected"));
    for (const list of [this.history, ...this.views.map((view) => view.list)]) list.inner.querySelectorAll(`[data-index="${index}"]`).forEach((row) => row.classList.add("selected"));
    if (fromView) {
      this.history.jump(index);
      return;
    }
    for (const view of this.views) {
      const place = view.items.indexOf(index);
      const summary = view.items.indexOf("summary");
      if (place >= 0) view.list.jump(place);
      else if (index < this.until && summary >= 0) view.list.jump(summary);
    }
  }

  toOrigin(run, place) {
    if (run !== this.run) this.setRun(run.number);
    const line = this.state.summary.evidence[place];
    const { text, origin, part, start } = this.model.line(line);
    if (origin === null) return;
    this.quote = { run, place, origin };
    if (part !== undefined) this.unfoldFor("history", origin, part, start + text.length);
    this.markQuote();
    this.selected = origin;
    this.history.refresh();
    this.history.jump(origin);
    this.say(`Message ${origin}: where the line came from. Press o to go back`);
  }

  toQuote(index, place) {
    this.quote = { run: this.run, place, origin: index };
    this.toSummaryRow(place);
    this.say("In the summary");
  }

  toSummaryRow(place) {
    const view = this.views[this.run.number];
    const row = view.items.findIndex((item) => (place === undefined ? item === "summary" : place >= item.from && place < item.to));
    if (row < 0) return;
    view.list.jump(row, { flash: place === undefined });
    view.list.redo(row);
    if (place === undefined) return;
    requestAnimationFrame(() => {
      const line = view.list.rows.get(row)?.querySelector(`[data-place="${place}"]`);
      if (!line) return;
      view.list.settle = undefined;
      const box = line.getBoundingClientRect();
      const outer = view.list.root.getBoundingClientRect();
      view.list.root.scrollTop += box.top - outer.top - outer.height / 3;
      this.markQuote();
      view.list.inner.querySelector(`[data-place="${place}"]`)?.classList.add("flash");
    });
  }

  markQuote() {
    for (const view of this.views) {
      view.list.inner.querySelectorAll(".quote.current").forEach((line) => line.classList.remove("current"));
      if (this.quote?.run.number === view.run.number) view.list.inner.querySelector(`[data-place="${this.quote.place}"]`)?.classList.add("current");
    }
  }

  // Between a quoted line and its origin, or a message of the view and its place in the history.
  origin() {
    const focused = document.activeElement?.closest?.("[data-place]");
    if (focused) {
      const panel = this.views.find((view) => view.root.contains(focused));
      this.toOrigin(this.model.runs[panel.run.number], Number(focused.dataset.place));
    } else if (this.selected !== null && this.state.quotes.has(this.selected) && isGone(this.state.fates[this.selected])) {
      const places = this.state.quotes.get(this.selected);
      this.toQuote(this.selected, this.quote?.origin === this.selected ? this.quote.place : places[0]);
    } else if (this.selected !== null) this.toMessage(this.selected);
    else {
      const next = this.state.summary?.evidence.findIndex((line) => this.model.line(line).origin !== null) ?? -1;
      if (next >= 0) this.toOrigin(this.run, next);
      else this.say("Nothing is quoted at this moment");
    }
  }

  toSummary(compaction, place) {
    this.setMoment(compaction.at);
    this.toSummaryRow(place);
  }

  toCompaction(direction) {
    const places = this.run.compactions.map((found) => found.at);
    const next = direction > 0 ? places.find((at) => at > this.moment) : places.findLast((at) => at < this.moment);
    if (next === undefined) return this.say(direction > 0 ? "No later compaction" : "No earlier compaction");
    this.setMoment(next);
    const compaction = this.state.compaction;
    this.say(`Compaction ${compaction.number}: ${number(compaction.tokens_before)} to ${number(compaction.tokens_after)} tokens`);
  }

  toFate(fate, direction) {
    const { fates } = this.state;
    const from = this.selected ?? (direction > 0 ? -1 : this.until);
    for (let index = from + direction; index >= 0 && index < this.until; index += direction) {
      if (fates[index] === fate) return this.toMessage(index);
    }
    const some = this.run.counts(this.moment, this.until)[fate];
    if (!some) return this.say(`No message is ${fate} at this moment`);
    this.selected = null;
    return this.toFate(fate, direction);
  }

  toMissing(direction) {
    const places = [...this.run.neededAt].filter(([, needs]) => needs.some((need) => need.kind === "lost")).map(([at]) => at).sort((a, b) => a - b);
    const next = direction > 0 ? places.find((at) => at > this.moment) : places.findLast((at) => at < this.moment);
    if (next === undefined) return this.say(places.length ? "No further place where something needed was missing" : "Everything that was needed was in the view");
    this.setMoment(next);
    this.toMessage(this.model.until(next));
  }

  // ---- what the reader chose ----

  unfold(key, shown, where, index) {
    if (shown === undefined) this.open.delete(key);
    else this.open.set(key, shown);
    if (where === "history") this.history.redo(index);
    else if (where === "recalled") for (const view of this.views) view.list.refresh();
    else if (where === "summary") this.views[index.number].list.redo(this.views[index.number].items.indexOf("summary"));
    else for (const view of this.views) if (where === `view${view.run.number}`) view.list.redo(view.items.indexOf(index));
  }

  unfoldFor(where, index, part, until) {
    const found = this.model.messages[index].parts[part];
    const fold = found.type === "text" ? FOLD : this.foldOutputs ? OUTPUT_FOLD : { lines: 40, chars: 6000 };
    const key = `${where}:${index}:${part}`;
    if (until > foldedEnd(found.text, fold) && (this.open.get(key) ?? 0) < until) this.open.set(key, until + 2000);
  }

  toggleFold() {
    this.foldOutputs = !this.foldOutputs;
    this.open.clear();
    this.estimates.clear();
    const first = this.history.first();
    this.history.setCount(this.model.messages.length);
    this.history.jump(first, { flash: false });
    for (const view of this.views) view.list.setCount(view.items.length);
    this.tellLegend();
  }

  setSearch(asked) {
    this.search = asked;
    this.history.refresh();
    for (const view of this.views) view.list.refresh();
  }

  setChart(kind, { draw = true } = {}) {
    this.chart = kind;
    for (const button of this.kinds.children) button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
    if (draw) this.timeline.draw();
  }

  setPrices(key) {
    this.prices = key;
    this.tellStats();
    if (this.chart === "money") this.timeline.draw();
  }

  setRun(run) {
    if (run === this.active || run >= this.model.runs.length) return;
    this.active = run;
    this.quote = null;
    this.timeline.draw();
    this.showMoment();
    this.say(`Setting ${this.letter(this.run)}: ${this.run.name}`);
  }

  nextTheme() {
    const names = Object.keys(THEMES);
    this.theme = names[(names.indexOf(this.theme) + 1) % names.length];
    remember("theme", this.theme);
    this.applyTheme();
    this.timeline.draw();
  }

  applyTheme() {
    if (this.theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.theme;
    this.themeButton.textContent = THEMES[this.theme];
    this.themeButton.title = `Colors: ${this.theme === "auto" ? "as the system has them" : this.theme} (t)`;
    this.themeButton.setAttribute("aria-label", this.themeButton.title);
  }

  say(text) {
    this.status.textContent = text;
    this.status.classList.add("shown");
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.status.classList.remove("shown"), 2600);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const target = event.target;
    const types = target.tagName === "SELECT" || target.tagName === "TEXTAREA" || (target.tagName === "INPUT" && target.type !== "range");
    if (types) return;
    const arrows = target.type !== "range";
    const actions = {
      ArrowRight: arrows && (() => this.setMoment(this.moment + (event.shiftKey ? 10 : 1))),
      ArrowLeft: arrows && (() => this.setMoment(this.moment - (event.shiftKey ? 10 : 1))),
      n: () => this.toCompaction(1),
      p: () => this.toCompaction(-1),
      d: () => this.toFate("dropped", 1),
      D: () => this.toFate("dropped", -1),
      s: () => this.toFate("summarized", 1),
      S: () => this.toFate("summarized", -1),
      c: () => this.toFate("shortened", 1),
      C: () => this.toFate("shortened", -1),
      m: () => this.toMissing(1),
      M: () => this.toMissing(-1),
      o: () => this.origin(),
      f: () => this.toggleFold(),
      a: () => this.setRun((this.active + 1) % this.model.runs.length),
      t: () => this.nextTheme(),
      "/": () => this.searching.input.focus(),
      "?": () => this.help.showModal(),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}

function step(sign, title, onclick) {
  return el("button", { class: "step", type: "button", title, "aria-label": title, onclick }, sign);
}

function mark() {
  return el("i", { class: "mark", "aria-hidden": "true" });
}

function meter(value, whole) {
  const bar = el("i", {});
  bar.style.width = `${Math.min(100, (100 * value) / Math.max(1, whole))}%`;
  return el("span", { class: "meter", role: "img", "aria-label": `${percent(value, whole)} of the window` }, bar);
}

function saved(paid, without) {
  if (!without) return "–";
  const share = (100 * (without - paid)) / without;
  return el("span", { class: share >= 0 ? "good" : "bad" }, `${share >= 0 ? "" : "−"}${Math.abs(share).toFixed(Math.abs(share) < 10 ? 1 : 0)} %`);
}

// What made a compaction fire, in words.
function why(trigger) {
  const [unit, value] = String(trigger || "").split(":");
  if (unit === "fraction") return `at ${percent(Number(value), 1)} of the window`;
  if (unit === "tokens" || unit === "messages") return `at ${number(Number(value))} ${unit}`;
  return trigger ? `by ${trigger.replaceAll("_", " ")}` : "by hand";
}

function costOf(compaction, run, moment) {
  const told = [];
  if (compaction.rewritten_tokens !== undefined) told.push(`${number(compaction.rewritten_tokens)} tokens sent uncached`);
  const summary = run.states[compaction.state].summary;
  if (summary?.calls) told.push(`${plural(summary.calls, "summary call")} (${number(summary.input_tokens)} in, ${number(summary.output_tokens)} out)`);
  else if (summary) told.push("no model asked");
  if (compaction.cost) told.push(dollars(compaction.cost * 1e9));
  if (compaction.seconds !== undefined) told.push(`${compaction.seconds < 1 ? `${Math.round(compaction.seconds * 1000)} ms` : `${compaction.seconds.toFixed(1)} s`}`);
  return told.join(", ");
}

// About how high a row will be, before it is shown for the first time.
function estimate(message, folded) {
  let height = 46;
  for (const part of message.parts) {
    const fold = part.type === "text" ? FOLD : folded ? OUTPUT_FOLD : { lines: 40, chars: 6000 };
    const end = foldedEnd(part.text, fold);
    let lines = 1;
    for (let at = part.text.indexOf("\n"); at >= 0 && at < end; at = part.text.indexOf("\n", at + 1)) lines++;
    height += Math.max(lines, end / 85) * 18 + (part.type === "text" ? 4 : 26) + (end < part.text.length ? 22 : 0);
  }
  return Math.round(height);
}

function remembered(name) {
  try {
    return localStorage.getItem(`contextfold.${name}`);
  } catch {
    return null; // a page from disk, or private browsing
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(`contextfold.${name}`, value);
  } catch {
    // as above: it holds until the page is closed
  }
}
