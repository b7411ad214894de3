// Elements out of plain values. Whatever a transcript holds ends up in text nodes, and in hints: nothing here parses markup,
// and nothing that is shown reorders or hides what stands around it.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : name === "title" ? visible(String(value)) : String(value));
  }
  node.append(...nodes(children));
  return node;
}

export function replace(node, ...children) {
  node.replaceChildren(...nodes(children));
}

function nodes(children) {
  const given = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  return given.map((child) => (typeof child === "string" ? visible(child) : child));
}

// Variation selectors and joiners are part of emoji and of many scripts, one at a time: only in a row do they hide a text.
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u115f\u1160\u180e\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]|[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]{2,}|[\u200b-\u200d]{3,}/gu;

// Signs that would reorder, hide or break the text around them, or are a text that no one sees, are shown by their names instead.
export function visible(text) {
  return text.replace(HIDDEN, (signs) => Array.from(signs, named).join(""));
}

function named(sign) {
  const code = sign.codePointAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
}

export function number(value) {
  return Math.round(value).toLocaleString("en-US");
}

export function short(value) {
  const size = Math.abs(value);
  if (size >= 9.995e5) return `${(value / 1e6).toFixed(size < 9.995e6 ? 2 : 1)}M`;
  if (size >= 9995) return `${Math.round(value / 1000)}k`;
  if (size >= 1000) return `${(value / 1000).toFixed(1)}k`;
  return String(Math.round(value));
}

export function dollars(billionths) {
  const value = billionths / 1e9;
  if (value !== 0 && Math.abs(value) < 0.01) return `$${value.toFixed(4)}`;
  return `$${value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

export function percent(part, whole) {
  if (!whole) return "–";
  const share = (100 * part) / whole;
  return `${share > 0 && share < 1 ? share.toFixed(1) : share > 99 && share < 100 ? (Math.floor(share * 10) / 10).toFixed(1) : Math.round(share)} %`;
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}
