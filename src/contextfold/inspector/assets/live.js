// A page on loopback that follows a store: the list of sessions, one session as it runs, and what may be done to it.

import { dollars, el, number, plural, replace, visible } from "./dom.js";

const token = new URLSearchParams(location.search).get("token") ?? "";

function address(path, parameters = {}) {
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries({ ...parameters, token })) url.searchParams.set(name, value);
  return url.href;
}

async function ask(path, parameters, options) {
  const response = await fetch(address(path, parameters), options);
  if (!response.ok) throw new Error((await response.text()) || `the server answered ${response.status}`);
  return response.json();
}

// Follow server-sent events; the browser connects again by itself, and the reader sees when it is not connected.
function follow(parameters, onEvent, onState) {
  const events = new EventSource(address("/api/events", parameters));
  events.addEventListener("change", (event) => onEvent(JSON.parse(event.data)));
  events.addEventListener("open", () => onState(true));
  events.addEventListener("error", () => onState(false));
  return events;
}

export class LiveSession {
  constructor(config) {
    this.config = config;
    this.where = { thread: config.thread ?? "", namespace: config.namespace ?? "" };
    this.home = config.list ? address("/") : undefined;
    this.dot = el("span", { class: "live", title: "Follows the session as it runs" }, el("i"), "live");
  }

  load() {
    return ask("/api/document", this.where);
  }

  start(app) {
    if (!this.config.follows) return;
    follow(
      this.where,
      async () => {
        if (this.loading) {
          this.again = true;
          return;
        }
        this.loading = true;
        do {
          this.again = false;
          try {
            app.update(await this.load());
          } catch (error) {
            app.say(String(error.message));
          }
        } while (this.again);
        this.loading = false;
      },
      (connected) => this.dot.classList.toggle("lost", !connected),
    );
  }

  actions(place, app) {
    if (!this.config.follows) return;
    const items = [this.dot];
    if (this.config.allow) {
      items.push(
        el("button", { class: "small", type: "button", onclick: () => this.confirm(app, "Compact now?", "The session is summarized now, whatever its size. The next request sends another view, and the provider's cache is lost once.", "Compact", "/api/compact") }, "Compact now …"),
        el("button", { class: "small", type: "button", onclick: () => this.confirm(app, "Undo the last compaction?", "The view from before it comes back, as it was. Nothing is lost; nothing is summarized by itself again until more messages come.", "Undo", "/api/undo") }, "Undo …"),
      );
    }
    replace(place, items);
  }

  confirm(app, title, text, name, path) {
    const sheet = el("dialog", { class: "sheet", "aria-label": title }, el("h2", {}, title), el("p", {}, text), el("form", { method: "dialog", class: "buttons" }, el("button", { value: "no" }, "Cancel"), el("button", { class: "primary", value: "yes" }, name)));
    sheet.addEventListener("close", async () => {
      sheet.remove();
      if (sheet.returnValue !== "yes") return;
      try {
        const { said } = await ask(path, this.where, { method: "POST", headers: { "X-Contextfold": "view" } });
        app.say(said);
        app.update(await this.load());
      } catch (error) {
        app.say(String(error.message));
      }
    });
    document.body.append(sheet);
    sheet.showModal();
  }
}

// All sessions of a store, newest first.
export class SessionList {
  constructor(root, config) {
    this.root = root;
    this.config = config;
    this.rows = el("tbody");
    this.count = el("p", { class: "facts" });
    this.dot = el("span", { class: "live" }, el("i"), "live");
    this.filter = el("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter by name" });
    this.filter.addEventListener("input", () => this.show());
    const heads = ["Session", "Turns", "Messages", "Tokens", "View", "Compactions", "Saved", "Last written", "Last error"];
    replace(
      root,
      el(
        "div",
        { class: "app listing" },
        el("header", { class: "top" }, el("span", { class: "brand" }, el("i", { class: "mark" }), "contextfold"), el("h1", {}, visible(config.store)), this.count, el("div", { class: "actions" }, this.dot), el("div", { class: "search" }, this.filter)),
        el("main", { class: "sessions" }, el("table", {}, el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))), this.rows)),
      ),
    );
    this.refresh();
    follow({}, () => this.refresh(), (connected) => this.dot.classList.toggle("lost", !connected));
  }

  async refresh() {
    try {
      this.sessions = (await ask("/api/sessions")).sessions;
      this.show();
    } catch (error) {
      this.count.textContent = String(error.message);
    }
  }

  show() {
    const wanted = this.filter.value.toLowerCase();
    const shown = (this.sessions ?? []).filter((one) => `${one.namespace}/${one.thread}`.toLowerCase().includes(wanted));
    replace(this.count, el("span", {}, plural(this.sessions?.length ?? 0, "session")));
    replace(
      this.rows,
      shown.map((one) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, el("a", { href: address("/session", { thread: one.thread, namespace: one.namespace }) }, visible(one.thread)), one.namespace ? el("span", { class: "quiet" }, ` ${visible(one.namespace)}`) : null, one.busy ? el("span", { class: "tag" }, "summarizing") : null),
          el("td", {}, one.turns === null ? "–" : number(one.turns)),
          el("td", {}, number(one.messages)),
          el("td", {}, number(one.tokens)),
          el("td", {}, number(one.view_tokens)),
          el("td", {}, number(one.compactions)),
          el("td", { class: one.saved === null ? "quiet" : one.saved < 0 ? "bad" : "good" }, one.saved === null ? "–" : dollars(one.saved)),
          el("td", {}, when(one.updated_at)),
          el("td", { class: one.error ? "bad" : "quiet" }, one.error ? visible(one.error) : "–"),
        ),
      ),
      shown.length ? null : el("tr", {}, el("td", { colspan: "9", class: "quiet empty" }, this.sessions?.length ? "No session has this in its name." : "No session is in this store yet. It appears here as soon as one is written.")),
    );
  }
}

function when(seconds) {
  return seconds ? new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" }) : "–";
}
