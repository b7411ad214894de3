// One message of the history, one of a view, and the summary.

import { el, number, plural } from "./dom.js";
import { SIGNS } from "./model.js";
import { FOLD, OUTPUT_FOLD, block, leftOut, marked, shortened } from "./text.js";

const SPEAKERS = { user: "user", assistant: "assistant", tool: "tool output", part: "parts of lines" };

function sign(fate) {
  return el("span", { class: `sign fate-${fate}`, "aria-hidden": "true" }, SIGNS[fate]);
}

function label(part) {
  if (part.type === "call") return part.recall ? "recall" : "call";
  if (part.type === "result") return part.error ? "error" : "output";
  return { reasoning: "reasoning", media: "media", other: part.name }[part.type];
}

// The parts of a message. `ranges(number)` gives marks in a part, `shape(number)` another text for it.
function parts(app, where, index, message, { ranges, shape }) {
  return message.parts.map((part, number) => {
    const key = `${where}:${index}:${number}`;
    const changed = shape?.(number);
    if (changed === null) return el("div", { class: "gonepart" }, `${label(part) ?? "text"} removed`);
    const text = changed ? changed.text : part.text;
    const isOutput = part.type === "result" || part.type === "call" || part.type === "reasoning";
    const fold = isOutput && app.foldOutputs ? OUTPUT_FOLD : isOutput ? { lines: 40, chars: 6000 } : FOLD;
    const head =
      part.type === "text"
        ? null
        : el("div", { class: "parthead" }, el("span", { class: `tag tag-${part.error ? "error" : part.recall ? "recall" : part.type}` }, label(part)), part.name && part.type !== "other" ? el("span", { class: "tool" }, part.name) : null);
    const body = text
      ? block(text, {
          fold,
          shown: app.open.get(key),
          more: (shown) => app.unfold(key, shown, where, index),
          marks: changed ? changed.marks : ranges ? ranges(number, text) : [],
          search: app.search,
          kind: isOutput ? "mono" : part.type === "media" ? "quiet" : "",
        })
      : part.type === "call" || part.type === "text"
        ? null
        : el("div", { class: "text quiet" }, part.type === "reasoning" ? "hidden reasoning" : "empty");
    return el("div", { class: `part part-${part.type}` }, head, body);
  });
}

function roleOf(message) {
  // Some formats put the results of tools into the user's role.
  const isTool = message.role === "user" && message.parts.length > 0 && message.parts.every((part) => part.type === "result");
  return el("span", { class: `role role-${message.role}` }, isTool ? "tool" : message.role, message.name ? el("span", { class: "quiet" }, ` ${message.name}`) : null);
}

// A message of the history in the color of its fate.
export function historyRow(app, index) {
  const { model, run, moment, until } = app;
  const message = model.messages[index];
  const isLater = index >= until;
  const state = app.state;
  const fate = isLater ? "later" : state.fates[index];
  const reason = isLater ? "not said yet" : state.reasons[index];
  const changes = isLater ? undefined : state.changes.get(index);
  const quotes = isLater ? [] : (state.quotes.get(index) ?? []);
  const others = app.others.map((other) => (isLater ? "later" : other.state(other.stateNumber(moment)).fates[index]));
  const highlighted = quotes.length ? quotes.map((place) => model.line(state.summary.evidence[place])) : [];
  const ranges = (number, text) => {
    const change = changes?.get(number);
    const marks = change ? leftOut(text, change.pieces) : [];
    for (const line of highlighted) {
      if (line.part === number) marks.push([line.start, line.start + line.text.length, "quoted"]);
    }
    return marks;
  };
  return el(
    "article",
    {
      class: `row fate-${fate}${app.selected === index ? " selected" : ""}${index === until ? " now" : ""}`,
      "data-index": index,
      onclick: (event) => app.clicked(event, index),
    },
    el("div", { class: "bars", "aria-hidden": "true" }, el("i", { class: `bar fate-${fate}` }), others.map((other) => el("i", { class: `bar fate-${other}` }))),
    el(
      "div",
      { class: "body" },
      el(
        "header",
        {},
        el("span", { class: "place" }, `#${index}`),
        roleOf(message),
        el("span", { class: "why" }, sign(fate), el("b", {}, fate), reason && reason !== fate ? el("span", { class: "quiet" }, ` · ${reason}`) : null),
        el("span", { class: "tokens" }, `${number(message.tokens)}`, el("span", { class: "unit" }, " tok")),
      ),
      others.some((other) => other !== fate) ? el("div", { class: "differs" }, app.others.map((other, n) => [el("span", { class: "letter letter-b" }, app.letter(other)), sign(others[n]), ` ${others[n]} under ${other.name}`])) : null,
      parts(app, "history", index, message, { ranges }),
      quotes.length ? el("button", { class: "link quotes", type: "button", onclick: () => app.toQuote(index, quotes[0]) }, `❝ ${plural(quotes.length, "line")} of it quoted in the summary →`) : null,
      needs(app, index),
    ),
  );
}

// Marks of the measure: what an answer needed and did not have, at the answer and at the place it was last said.
function needs(app, index) {
  const { run, model } = app;
  const request = app.requestOf.get(index);
  const missing = request === undefined ? [] : (run.neededAt.get(request) ?? []);
  const later = (run.neededHome.get(index) ?? []).filter((need) => need.at !== request);
  if (!missing.length && !later.length) return null;
  const line = (need, text, target, title) =>
    el("li", { class: `need need-${need.kind}` }, el("span", { class: "sign", "aria-hidden": "true" }, need.kind === "lost" ? "▲" : "△"), " ", el("code", {}, need.anchor), " ", text, " ", el("button", { class: "link", type: "button", title, onclick: () => app.toMessage(target) }, `#${target}`));
  return el(
    "ul",
    { class: "needs" },
    missing.map((need) => line(need, need.kind === "lost" ? "used here, and no longer in the view; last said in" : "used here; in the view only as a bare name; last said in", need.home, "Jump to where it was last said")),
    later.slice(0, 8).map((need) => line(need, need.kind === "lost" ? "was needed again, and gone from the view, at" : "was needed again, and a bare name by then, at", model.until(need.at), "Jump to the answer that used it")),
    later.length > 8 ? el("li", { class: "quiet" }, `and ${later.length - 8} more`) : null,
  );
}

// A message of the view of a run: as it was sent.
export function viewRow(app, run, index) {
  const state = run.state(run.stateNumber(app.moment));
  const message = app.model.messages[index];
  const fate = state.fates[index];
  const changes = state.changes.get(index);
  const shape = changes
    ? (number) => {
        const change = changes.get(number);
        if (!change) return undefined;
        return change.pieces === null ? null : shortened(message.parts[number].text, change.pieces);
      }
    : undefined;
  const tiers = changes ? [...new Set([...changes.values()].map((change) => change.tier))].join(", ").replaceAll("_", " ") : "";
  return el(
    "article",
    { class: `row fate-${fate}${app.selected === index ? " selected" : ""}`, "data-index": index, onclick: (event) => app.clicked(event, index, true) },
    el("div", { class: "bars", "aria-hidden": "true" }, el("i", { class: `bar fate-${fate}` })),
    el(
      "div",
      { class: "body" },
      el("header", {}, el("button", { class: "place link", type: "button", title: "Jump to it in the history (o)", onclick: () => app.toMessage(index) }, `#${index}`), roleOf(message), el("span", { class: "why" }, sign(fate), el("b", {}, fate), tiers ? el("span", { class: "quiet" }, ` · ${tiers}`) : null)),
      parts(app, `view${run.number}`, index, message, { shape }),
    ),
  );
}

// The summary of a view: prose, and evidence whose lines lead to where they came from.
export function summaryRow(app, run) {
  const { summary, compaction } = run.state(run.stateNumber(app.moment));
  const took = summary.calls ? `${plural(summary.calls, "call")}, ${number(summary.input_tokens)} tokens read, ${number(summary.output_tokens)} written` : "made without a model";
  return el(
    "article",
    { class: "row summary fate-summarized" },
    el("div", { class: "bars", "aria-hidden": "true" }, el("i", { class: "bar fate-summarized" })),
    el(
      "div",
      { class: "body" },
      el("header", {}, el("span", { class: "role role-summary" }, "summary"), el("span", { class: "why" }, `stands for ${plural(summary.message_count, "message")}`, el("span", { class: "quiet" }, ` · ${number(summary.original_tokens)} → ${number(summary.tokens)} tokens`)), el("span", { class: "tokens" }, number(summary.tokens), el("span", { class: "unit" }, " tok"))),
      el("p", { class: "quiet took" }, `${compaction.number ? `Compaction ${compaction.number}, ` : ""}${took}`, summary.archive ? `, originals in ${summary.archive}` : null),
      summary.text ? el("h4", {}, "Prose") : null,
      summary.text
        ? block(summary.text, { fold: { lines: 14, chars: 2400 }, shown: app.open.get(`prose${run.number}`), more: (shown) => app.unfold(`prose${run.number}`, shown, "summary", run), search: app.search })
        : null,
      summary.evidence.length ? el("h4", {}, "Evidence", el("span", { class: "quiet" }, ` · ${plural(summary.evidence.length, "line")}, word for word`)) : null,
    ),
  );
}

// What was quoted again because the newest message asked about it.
export function recalledRow(app, run, { recalled }) {
  const key = `recalled${run.number}:${recalled.after}`;
  return el(
    "article",
    { class: "row recalled" },
    el("div", { class: "bars", "aria-hidden": "true" }, el("i", { class: "bar" })),
    el(
      "div",
      { class: "body" },
      el("header", {}, el("span", { class: "role" }, "recalled"), el("span", { class: "why" }, recalled.reason), el("span", { class: "tokens" }, number(recalled.tokens), el("span", { class: "unit" }, " tok"))),
      el("p", { class: "quiet took" }, `for message #${recalled.after}, from `, recalled.indices.map((index) => [el("button", { class: "link", type: "button", onclick: () => app.toMessage(index) }, `#${index}`), " "])),
      block(recalled.text, { fold: FOLD, shown: app.open.get(key), more: (shown) => app.unfold(key, shown, "recalled"), search: app.search, kind: "mono" }),
    ),
  );
}

// Some lines that a summary quotes, each with the way to where it came from.
export function quotesRow(app, run, { from, to }) {
  const { summary } = run.state(run.stateNumber(app.moment));
  let speaker = from ? app.model.line(summary.evidence[from - 1]).who : "";
  const lines = summary.evidence.slice(from, to).flatMap((line, at) => {
    const place = from + at;
    const { who, text, origin } = app.model.line(line);
    const head = who === speaker ? [] : [el("div", { class: "speaker" }, SPEAKERS[who])];
    speaker = who;
    const shown = marked(text, 0, text.length, [], app.search);
    const attributes = { class: `quote${app.quote?.run === run && app.quote.place === place ? " current" : ""}`, "data-place": place, dir: "auto" };
    if (origin === null) return [...head, el("div", attributes, shown)];
    return [...head, el("button", { ...attributes, type: "button", title: `From message ${origin}`, onclick: () => app.toOrigin(run, place) }, el("span", { class: "origin" }, `#${origin}`), el("span", { class: "said" }, shown))];
  });
  return el("article", { class: `row quotesrow${to === summary.evidence.length ? " last" : ""}` }, el("div", { class: "bars", "aria-hidden": "true" }, el("i", { class: "bar fate-summarized" })), el("div", { class: "body" }, lines));
}
