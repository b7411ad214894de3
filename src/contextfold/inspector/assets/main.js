// The beginning: what the page was given decides what it shows.

import { App } from "./app.js";
import { el, replace } from "./dom.js";
import { LiveSession, SessionList } from "./live.js";

const VERSION = 1;

// The document of a report stands in the page, gzipped, as base64.
async function held() {
  const packed = atob(document.getElementById("document").textContent);
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at++) bytes[at] = packed.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

async function begin() {
  const root = document.getElementById("app");
  const config = JSON.parse(document.getElementById("config").textContent);
  try {
    if (config.mode === "list") {
      window.inspector = new SessionList(root, config);
      return;
    }
    const live = config.mode === "live" ? new LiveSession(config) : null;
    const found = live ? await live.load() : await held();
    if (found?.contextfold !== "view" || found.version !== VERSION) throw new Error(`This page shows documents of version ${VERSION}, and this one is of version ${found?.version}.`);
    const app = new App(root, found, live);
    live?.start(app);
    window.inspector = app;
    performance.mark("contextfold-shown");
  } catch (error) {
    replace(root, el("p", { class: "starting" }, "The report cannot be shown: ", String(error.message)));
    throw error;
  }
}

begin();
