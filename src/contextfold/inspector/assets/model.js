// What follows from a document: the fate of each message at each moment, and the way from quotes to origins and back.

export const FATES = ["kept", "pinned", "shortened", "summarized", "dropped", "later"];
export const SIGNS = { kept: "●", pinned: "◆", shortened: "◐", summarized: "≡", dropped: "✕", later: "○" };
const GONE = new Set(["summarized", "dropped"]);
const QUOTES = 40; // quoted lines in one row of a view: there may be thousands of them

export function isGone(fate) {
  return GONE.has(fate);
}

export class Model {
  constructor(document) {
    this.document = document;
    this.messages = document.messages;
    this.runs = document.runs.map((run) => new Run(run, document));
    this.changes = document.changes;
    this.lines = document.lines;
  }

  // A quoted line: who said it, its text, and the message that it came from (null where that is not known).
  line(number) {
    const [who, ...rest] = this.lines[number];
    if (rest.length === 2) return { who, text: rest[0], origin: rest[1] };
    const [origin, part, start, length] = rest;
    return { who, origin, part, start, text: this.messages[origin].parts[part].text.slice(start, start + length) };
  }

  get requests() {
    return this.runs[0].requests.index.length;
  }

  // Index of the message before which a request was made: all before it is the history of that moment.
  until(moment) {
    return this.runs[0].requests.index[moment];
  }
}

export class Run {
  constructor(run, document) {
    Object.assign(this, run);
    this.messages = document.messages;
    this.allLines = document.lines;
    this.allChanges = document.changes;
    this.cache = new Map();
    this.compactions = this.states.flatMap((state, number) => (state.compaction ? [{ ...state.compaction, at: state.from, state: number }] : []));
    this.neededAt = new Map();
    this.neededHome = new Map();
    for (const [at, anchor, home, distance, kind] of this.needs) {
      const need = { at, anchor, home, distance, kind };
      push(this.neededAt, at, need);
      push(this.neededHome, home, need);
    }
    const requests = this.requests;
    this.sums = { view: sums(requests.view), cached: sums(requests.cached), rewritten: sums(requests.rewritten) };
    this.lost = sums(requests.index.map((_, at) => (this.neededAt.get(at) ?? []).filter((need) => need.kind === "lost").length));
    this.costs = {};
    for (const [key, { with: paid, without }] of Object.entries(this.money)) this.costs[key] = { with: sums(paid), without: sums(without) };
  }

  stateNumber(moment) {
    return this.requests.state[moment] ?? 0;
  }

  // Of the messages as they are under a state: fates by index, reasons, and what is derived from them.
  state(number) {
    let found = this.cache.get(number);
    if (!found) {
      found = this.expanded(this.states[number]);
      this.cache.set(number, found);
    }
    return found;
  }

  expanded(state) {
    const fates = new Array(this.messages.length).fill("kept");
    const reasons = new Array(this.messages.length).fill("recent");
    for (const [start, stop, fate, reason] of state.fates) {
      for (let index = start; index < stop && index < fates.length; index++) {
        fates[index] = fate;
        reasons[index] = reason;
      }
    }
    const changes = new Map();
    for (const number of state.changed) {
      const [index, part, tier, pieces] = this.allChanges[number];
      if (!changes.has(index)) changes.set(index, new Map());
      changes.get(index).set(part, { tier, pieces });
    }
    const quotes = new Map();
    (state.summary?.evidence ?? []).forEach((line, place) => {
      const found = this.allLines[line];
      const origin = found.length === 3 ? found[2] : found[1];
      if (origin !== null) push(quotes, origin, place);
    });
    return { fates, reasons, changes, quotes, summary: state.summary, compaction: state.compaction, recalled: state.recalled ?? [] };
  }

  // The view at a moment: indices of messages, and where the summary stands "summary" and {from, to} for its quotes.
  view(moment, until) {
    const state = this.state(this.stateNumber(moment));
    const items = [];
    let placed = state.summary === null;
    const place = () => {
      items.push("summary");
      for (let from = 0; from < state.summary.evidence.length; from += QUOTES) items.push({ from, to: Math.min(from + QUOTES, state.summary.evidence.length) });
      placed = true;
    };
    for (let index = 0; index < until; index++) {
      if (!placed && index > state.summary.after) place();
      if (!isGone(state.fates[index])) items.push(index);
      for (const recalled of state.recalled) if (recalled.after === index && recalled.request <= moment) items.push({ recalled });
    }
    if (!placed) place();
    return items;
  }

  counts(moment, until) {
    const { fates } = this.state(this.stateNumber(moment));
    const counts = { kept: 0, pinned: 0, shortened: 0, summarized: 0, dropped: 0 };
    for (let index = 0; index < until; index++) counts[fates[index]]++;
    return counts;
  }
}

function push(map, key, value) {
  if (map.has(key)) map.get(key).push(value);
  else map.set(key, [value]);
}

function sums(values) {
  let total = 0;
  return values.map((value) => (total += value));
}
