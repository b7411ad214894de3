// Search in everything: messages, and the summaries of all compactions with the lines that they quote.

import { el, number, visible } from "./dom.js";
import { pattern } from "./text.js";

const SLICE = 2e6; // characters that are looked through before the page gets a turn

export class Search {
  constructor(app) {
    this.app = app;
    this.hits = [];
    this.current = -1;
    this.run = 0;
    this.input = el("input", { type: "search", placeholder: "Search everything", "aria-label": "Search messages and summaries", spellcheck: "false", autocomplete: "off" });
    this.count = el("span", { class: "hits", "aria-live": "polite" });
    this.list = el("div", { class: "results", role: "listbox", hidden: true });
    this.root = el("div", { class: "search" }, this.input, this.count, el("kbd", {}, "/"), this.list);
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.look(), 140);
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        if (this.looked !== this.input.value) this.look().then(() => this.go(1));
        else this.go(event.shiftKey ? -1 : 1);
      } else if (event.key === "Escape") {
        if (!this.list.hidden) this.list.hidden = true;
        else this.clear();
        event.stopPropagation();
      } else if (event.key === "ArrowDown") {
        event.preventDefault();
        this.list.querySelector("button")?.focus();
      }
    });
    this.input.addEventListener("focus", () => {
      if (this.hits.length) this.list.hidden = false;
    });
    document.addEventListener("pointerdown", (event) => {
      if (!this.root.contains(event.target)) this.list.hidden = true;
    });
  }

  clear() {
    this.input.value = "";
    this.look();
    this.input.blur();
  }

  // Everything that can be found: [where, place, text].
  *texts() {
    const { model, run } = this.app;
    for (const [index, message] of model.messages.entries()) {
      for (const [number, part] of message.parts.entries()) {
        if (part.text) yield { kind: "message", index, part: number, text: part.text, who: part.type === "call" ? `${part.name} call` : part.type === "result" ? `${part.name ?? "tool"} output` : message.role };
        if (part.name && part.type === "call") yield { kind: "message", index, part: number, text: part.name, who: "tool", isName: true };
      }
    }
    const seen = new Set();
    for (const compaction of run.compactions) {
      const { summary } = run.states[compaction.state];
      if (!summary) continue;
      yield { kind: "prose", compaction, text: summary.text, who: `summary ${run.compactions.indexOf(compaction) + 1}` };
      for (const [place, line] of summary.evidence.entries()) {
        if (seen.has(line)) continue;
        seen.add(line);
        yield { kind: "quote", compaction, place, text: model.line(line).text, who: `summary ${run.compactions.indexOf(compaction) + 1}, quoted` };
      }
    }
  }

  async look() {
    clearTimeout(this.timer);
    const run = ++this.run;
    const query = this.input.value;
    this.looked = query;
    this.hits = [];
    this.current = -1;
    const asked = query.trim() ? pattern(query.trim()) : null;
    if (asked) {
      let walked = 0;
      for (const place of this.texts()) {
        asked.lastIndex = 0;
        const hit = asked.exec(place.text);
        if (hit) this.hits.push({ ...place, at: hit.index, length: hit[0].length });
        walked += place.text.length;
        if (walked > SLICE) {
          walked = 0;
          await new Promise((resolve) => setTimeout(resolve));
          if (run !== this.run) return;
        }
      }
    }
    this.app.setSearch(asked);
    this.show();
  }

  show() {
    const listed = this.hits.slice(0, 200);
    this.count.textContent = !this.looked.trim() ? "" : this.hits.length ? `${this.current < 0 ? "" : `${this.current + 1} of `}${number(this.hits.length)}` : "nothing";
    this.root.classList.toggle("asked", Boolean(this.looked.trim()));
    this.list.replaceChildren(
      ...listed.map((hit, number) =>
        el(
          "button",
          {
            type: "button",
            role: "option",
            class: number === this.current ? "current" : "",
            "aria-selected": number === this.current ? "true" : "false",
            onclick: () => {
              this.current = number;
              this.visit();
            },
            onkeydown: (event) => {
              const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
              if (step) {
                event.preventDefault();
                (event.currentTarget[step] ?? this.input).focus();
              }
            },
          },
          el("span", { class: "where" }, hit.kind === "message" ? `#${hit.index}` : "≡"),
          el("span", { class: "who" }, hit.who),
          el("span", { class: "snippet", dir: "auto" }, ...snippet(hit)),
        ),
      ),
      ...(this.hits.length > listed.length ? [el("p", { class: "quiet" }, `and ${number(this.hits.length - listed.length)} more: Enter goes through all`)] : []),
    );
    this.list.hidden = !this.hits.length || document.activeElement !== this.input;
  }

  go(step) {
    if (!this.hits.length) return;
    this.current = (this.current + step + this.hits.length) % this.hits.length;
    this.visit();
  }

  visit() {
    const hit = this.hits[this.current];
    if (hit.kind === "message") this.app.toMessage(hit.index, { part: hit.part, until: hit.isName ? 0 : hit.at + hit.length });
    else this.app.toSummary(hit.compaction, hit.kind === "quote" ? hit.place : undefined);
    this.show();
    this.list.hidden = true;
  }
}

function snippet({ text, at, length }) {
  const start = Math.max(0, at - 30);
  const line = (piece) => visible(piece.replace(/\s+/g, " "));
  return [start ? "…" : "", line(text.slice(start, at)), el("mark", {}, line(text.slice(at, at + length))), line(text.slice(at + length, at + length + 90))];
}
