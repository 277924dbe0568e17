// The search: which nodes a selector means, now or at the time that is shown.

import { ask } from "./api.js";
import { at, write } from "./dom.js";
import { expand } from "./nodeset.js";
import { place, writePlace } from "./place.js";

const EVERY_MS = 2000;
const AFTER_MS = 300; // of typing no more

export class Search {
  nodes = null; // a set of those that the selector means; null for all
  #waiting = null;

  // `changed` is called once it means others.
  constructor(input, changed) {
    Object.assign(this, { input, changed });
    let typing = null;
    input.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => {
        place.select = input.value.trim();
        writePlace();
        this.now();
      }, AFTER_MS);
    });
  }

  // Takes up what the address says; asks where somebody `answers` already.
  begin(answers) {
    this.input.value = place.select;
    if (!place.select) this.nodes = null;
    else if (answers) this.now();
  }

  // What a selector means changes with the states: it is asked again, but not all the time.
  soon() {
    this.#waiting ??= setTimeout(() => this.now(), EVERY_MS);
  }

  async now() {
    const select = place.select;
    clearTimeout(this.#waiting);
    this.#waiting = null;
    if (!select) {
      this.nodes = null;
      write(at("searched"), "");
      return this.changed();
    }
    try {
      const found = place.at ? await foundThen(select, place.at) : await foundNow(select);
      if (select !== place.select) return;
      this.nodes = new Set(found);
      write(at("searched"), "");
    } catch (error) {
      if (select === place.select) write(at("searched"), error.message);
    }
    this.changed();
  }
}

async function foundNow(select) {
  const told = await ask("GET", "status", { query: { select } });
  return told.alike.flatMap((one) => expand(one.on));
}

async function foundThen(select, when) {
  const told = await ask("GET", "past", { query: { select, at: when } });
  return told.entities.map(({ entity }) => entity.split("@").at(-1).replace(/^node:/, ""));
}
