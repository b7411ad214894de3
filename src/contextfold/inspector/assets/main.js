// The beginning: what the page was given decides what it shows.

import { App } from "./app.js";
import { el, replace } from "./dom.js";
import { LiveSession, SessionList } from "./live.js";

const VERSION = 1;

function given(id) {
  const text = document.getElementById(id).textContent;
  return text.trim() ? JSON.parse(text) : null;
}

async function begin() {
  const root = document.getElementById("app");
  const config = given("config") ?? {};
  try {
    if (config.mode === "list") {
      window.inspector = new SessionList(root, config);
      return;
    }
    const live = config.mode === "live" ? new LiveSession(config) : null;
    const found = live ? await live.load() : given("document");
    if (found?.contextfold !== "view" || found.version !== VERSION) throw new Error(`This page shows documents of version ${VERSION}, and this one is of version ${found?.version}.`);
    const app = new App(root, found, live);
    live?.start(app);
    window.inspector = app;
  } catch (error) {
    replace(root, el("p", { class: "starting" }, "The report cannot be shown: ", String(error.message)));
    throw error;
  }
}

begin();
