// A list of any length of which only what can be seen is in the page. Rows have any height; heights are measured as
// rows are shown, and what lies above the eye never makes it jump.

import { el } from "./dom.js";

const AHEAD = 700; // pixels above and below that are rendered too

export class VirtualList {
  // render(index) -> element; estimate(index) -> pixels
  constructor({ label, render, estimate }) {
    this.renderRow = render;
    this.estimate = estimate;
    this.rows = new Map();
    this.inner = el("div", { class: "rows", role: "list", "aria-label": label });
    this.root = el("div", { class: "scroller", tabindex: "0", "aria-label": label, role: "region" }, this.inner);
    this.root.addEventListener("scroll", () => this.schedule(), { passive: true });
    this.observer = new ResizeObserver((entries) => this.measured(entries));
    new ResizeObserver(() => this.schedule()).observe(this.root);
    this.setCount(0);
  }

  // `keep`: this number of rows at the start are as they were. `render`: false where a jump follows that renders anyway.
  setCount(count, { keep = 0, render = true } = {}) {
    const known = this.heights;
    this.count = count;
    this.heights = new Float64Array(count);
    for (let index = 0; index < count; index++) this.heights[index] = known && index < keep ? known[index] : this.estimate(index);
    this.tree = new Float64Array(count + 1);
    for (let index = 1; index <= count; index++) {
      this.tree[index] += this.heights[index - 1];
      const parent = index + (index & -index);
      if (parent <= count) this.tree[parent] += this.tree[index];
    }
    this.clear();
    if (render) this.update();
  }

  offset(index) {
    let sum = 0;
    for (let at = Math.min(index, this.count); at > 0; at -= at & -at) sum += this.tree[at];
    return sum;
  }

  // The row at a distance from the top.
  at(pixels) {
    let place = 0;
    let left = pixels;
    for (let step = 2 ** Math.floor(Math.log2(Math.max(1, this.count))); step >= 1; step /= 2) {
      if (place + step <= this.count && this.tree[place + step] <= left) {
        place += step;
        left -= this.tree[place];
      }
    }
    return Math.min(place, Math.max(0, this.count - 1));
  }

  grow(index, delta) {
    this.heights[index] += delta;
    for (let at = index + 1; at <= this.count; at += at & -at) this.tree[at] += delta;
  }

  schedule() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.update();
    });
  }

  // Render what is visible again, because what rows show has changed.
  refresh() {
    this.clear();
    this.update();
  }

  clear() {
    for (const row of this.rows.values()) this.drop(row);
    this.rows.clear();
  }

  // Render one row again, if it is there.
  redo(index) {
    const row = this.rows.get(index);
    if (!row) return;
    this.drop(row);
    this.rows.delete(index);
    this.update();
  }

  // Of a row that is only rendered again, what had the focus gets it back: else the keyboard is thrown out of the list each
  // time that something is unfolded, or a session that is followed grows.
  drop(row) {
    const place = buttons(row).indexOf(document.activeElement);
    if (place >= 0) this.focused = { index: Number(row.dataset.row), place };
    this.observer.unobserve(row);
    row.remove();
  }

  update() {
    this.inner.style.height = `${this.offset(this.count)}px`;
    const top = this.root.scrollTop;
    const first = this.at(Math.max(0, top - AHEAD));
    const bottom = top + this.root.clientHeight + AHEAD;
    const wanted = new Set();
    let offset = this.offset(first);
    for (let index = first; index < this.count && offset < bottom; index++) {
      wanted.add(index);
      let row = this.rows.get(index);
      if (!row) {
        row = this.renderRow(index);
        row.dataset.row = index;
        row.setAttribute("role", "listitem");
        row.setAttribute("aria-posinset", index + 1);
        row.setAttribute("aria-setsize", this.count);
        this.rows.set(index, row);
        this.inner.append(row);
        this.observer.observe(row);
      }
      row.style.transform = `translateY(${offset}px)`;
      offset += this.heights[index];
    }
    for (const [index, row] of this.rows) {
      if (!wanted.has(index)) {
        this.drop(row);
        this.rows.delete(index);
      }
    }
    if (this.focused) this.focusAgain(this.focused);
  }

  focusAgain({ index, place }) {
    this.focused = undefined;
    const row = this.rows.get(index);
    const found = row ? buttons(row) : [];
    if (document.activeElement === document.body) (found[place] ?? found.at(-1))?.focus({ preventScroll: true });
  }

  measured(entries) {
    let shift = 0;
    let changed = false;
    for (const entry of entries) {
      const index = Number(entry.target.dataset.row);
      if (this.rows.get(index) !== entry.target) continue;
      const height = entry.borderBoxSize[0].blockSize;
      const delta = height - this.heights[index];
      if (Math.abs(delta) < 0.5) continue;
      if (this.offset(index) + this.heights[index] <= this.root.scrollTop) shift += delta;
      this.grow(index, delta);
      changed = true;
    }
    if (!changed) return;
    if (shift) {
      this.inner.style.height = `${this.offset(this.count)}px`;
      this.root.scrollTop += shift;
    }
    this.update();
    this.settle?.();
  }

  // Bring the top of a row to a share of the height, exactly, although heights on the way are measured on arrival.
  jump(index, { flash = true, at = 0.2 } = {}) {
    if (index < 0 || index >= this.count) return;
    let tries = 6;
    const go = () => {
      this.inner.style.height = `${this.offset(this.count)}px`;
      const wanted = Math.max(0, this.offset(index) - at * this.root.clientHeight);
      if (Math.abs(this.root.scrollTop - wanted) > 1) this.root.scrollTop = wanted;
      this.update();
      if (--tries <= 0) this.settle = undefined;
    };
    this.settle = go;
    go();
    setTimeout(() => {
      if (this.settle === go) this.settle = undefined;
    }, 400);
    if (flash) {
      const row = this.rows.get(index);
      row?.classList.remove("flash");
      void row?.offsetWidth;
      row?.classList.add("flash");
    }
  }

  // The first row that is wholly or mostly visible.
  first() {
    return this.at(this.root.scrollTop + 8);
  }
}

function buttons(row) {
  return [...row.querySelectorAll("button, a")];
}
