// Texts of any size, as text: folded, paged, with marks in them for cuts, quotes and what was searched for.

import { el, number, plural, visible } from "./dom.js";

export const FOLD = { lines: 8, chars: 1400 };
export const OUTPUT_FOLD = { lines: 4, chars: 600 };
const PAGE = 20000; // characters more for each time that it is asked for

// Where to end a folded text: after this number of lines or characters.
export function foldedEnd(text, fold) {
  let end = 0;
  for (let line = 0; line < fold.lines; line++) {
    const next = text.indexOf("\n", end);
    if (next < 0 || next > fold.chars) return Math.min(text.length, fold.chars);
    end = next + 1;
  }
  return end >= text.length ? text.length : end - 1;
}

export function pattern(query) {
  return query ? new RegExp(query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi") : null;
}

// Marks are [start, end, class] in the text. Where a search is going on, its hits are marked as well.
export function marked(text, start, end, marks, search) {
  const all = marks.filter(([from, to]) => from < end && to > start).map(([from, to, name]) => [Math.max(from, start), Math.min(to, end), name]);
  if (search) {
    search.lastIndex = start;
    for (let hit = search.exec(text); hit && hit.index < end && all.length < 2000; hit = search.exec(text)) {
      all.push([hit.index, Math.min(end, hit.index + hit[0].length), "hit"]);
    }
  }
  if (!all.length) return [visible(text.slice(start, end))];
  const borders = [...new Set([start, end, ...all.flatMap(([from, to]) => [from, to])])].sort((a, b) => a - b);
  const nodes = [];
  for (let at = 0; at + 1 < borders.length; at++) {
    const [from, to] = [borders[at], borders[at + 1]];
    const names = all.filter(([low, high]) => low <= from && high >= to).map(([, , name]) => name);
    const shown = visible(text.slice(from, to));
    nodes.push(names.length ? el(names.includes("hit") ? "mark" : "span", { class: names.join(" ") }, shown) : shown);
  }
  return nodes;
}

// A text that can be unfolded. `shown` is how many characters the reader has asked for so far, or undefined.
export function block(text, { fold, shown, more, marks = [], search = null, kind = "" }) {
  const folded = foldedEnd(text, fold);
  const end = shown === undefined ? folded : Math.min(text.length, shown);
  const node = el("div", { class: `text ${kind}`, dir: "auto" }, marked(text, 0, end, marks, search));
  if (text.length <= folded) return node;
  const left = text.length - end;
  const buttons = [];
  if (left > 0) {
    const lines = left < 2e6 ? count(text, end) : 0;
    const label = shown === undefined ? `Show ${left <= PAGE ? "all" : "more"}` : `Show ${number(Math.min(PAGE, left))} more characters`;
    const rest = lines > 1 ? plural(lines, "line") : `${number(left)} characters`;
    buttons.push(el("button", { class: "fold", type: "button", onclick: () => more(Math.max(end, folded) + PAGE) }, label, el("span", { class: "quiet" }, ` · ${rest} hidden`)));
  }
  if (shown !== undefined) buttons.push(el("button", { class: "fold", type: "button", onclick: () => more(undefined) }, "Fold"));
  return el("div", {}, node, el("div", { class: "folds" }, buttons));
}

function count(text, from) {
  let lines = 0;
  for (let at = text.indexOf("\n", from); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return lines + 1;
}

// The ranges of a text that were left out when it was shortened.
export function leftOut(text, pieces) {
  if (pieces === null) return [[0, text.length, "cut"]];
  const cuts = [];
  let at = 0;
  for (const piece of pieces) {
    if (typeof piece === "string") continue;
    if (piece[0] > at) cuts.push([at, piece[0], "cut"]);
    at = Math.max(at, piece[1]);
  }
  if (at < text.length) cuts.push([at, text.length, "cut"]);
  return cuts;
}

// What a shortened text became, with marks where something is written instead of what was cut.
export function shortened(text, pieces) {
  let made = "";
  const marks = [];
  for (const piece of pieces ?? []) {
    if (typeof piece === "string") {
      marks.push([made.length, made.length + piece.length, "instead"]);
      made += piece;
    } else made += text.slice(piece[0], piece[1]);
  }
  return { text: made, marks };
}
