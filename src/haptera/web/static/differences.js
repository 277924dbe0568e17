// What differs between two times: entities that changed alike are one line.

import { whoIs } from "./causes.js";
import { make, refill, write } from "./dom.js";
import { natural } from "./fleet.js";

const SHOWN_MAX = 40;
const AGAIN_MS = 1000; // while the present changes

export class Differences {
  rows = []; // each with the key that it is picked by, and the names of its nodes
  #of = [];
  #at = -Infinity;
  #shown = null;

  constructor({ element, heading, pick }) {
    Object.assign(this, { element, heading });
    element.addEventListener("click", (event) => {
      const key = event.target.closest("button")?.dataset.key;
      if (key !== undefined) pick(key);
    });
  }

  // `title` says which times they are; null where only one time is looked at.
  update(title, then, now, picked) {
    this.element.hidden = this.heading.hidden = title === null;
    if (title === null) {
      [this.rows, this.#of] = [[], []];
      return;
    }
    const old = performance.now() - this.#at > AGAIN_MS;
    if (old || then !== this.#of[0] || now !== this.#of[1]) {
      this.rows = differencesOf(then, now);
      [this.#of, this.#at] = [[then, now], performance.now()];
    }
    write(this.heading, title);
    const told = JSON.stringify([this.rows.map(({ key, on }) => [key, on.length]), picked]);
    if (told === this.#shown) return;
    this.#shown = told;
    refill(this.element, ...items(this.rows, picked));
  }
}

export function differencesOf(then, now) {
  const found = new Map();
  for (const entity of new Set([...then.views.keys(), ...now.views.keys()])) {
    const [was, is] = [then.views.get(entity), now.views.get(entity)];
    const { kind, name, node } = is ?? was;
    const what = kind === "node" ? "node" : `${kind} ${name}`;
    for (const change of changes(was, is)) {
      const key = `${what}\n${change}`;
      const placed = kind === "node" || node !== null;
      if (!found.has(key)) found.set(key, { key, what, change, placed, on: [] });
      found.get(key).on.push(node ?? name);
    }
  }
  return [...found.values()].sort((a, b) => b.on.length - a.on.length || natural(a.key, b.key));
}

function changes(was, is) {
  if (!was) return ["declared since"];
  if (!is) return ["undeclared since"];
  const [before, after] = [facts(was), facts(is)];
  const names = [...new Set([...before.keys(), ...after.keys()])].sort(natural);
  return names
    .filter((one) => before.get(one) !== after.get(one))
    .map((one) => `${one}: ${before.get(one) ?? "unset"} \u2192 ${after.get(one) ?? "unset"}`);
}

// What is compared: not ages, nor who said it.
function facts(view) {
  const told = new Map([["condition", view.condition]]);
  for (const [name, value] of Object.entries(view.attributes)) told.set(name, String(value));
  for (const [name, { value }] of Object.entries(view.desired)) told.set(`desired ${name}`, value);
  for (const [name, { value, known }] of Object.entries(view.observed)) {
    told.set(`observed ${name}`, known ? value : "unknown");
  }
  return told;
}

function items(rows, picked) {
  if (!rows.length) return [make("li", { classes: "quiet", textContent: "nothing" })];
  const shown = rows.slice(0, SHOWN_MAX).map((row) => {
    const aria = { pressed: String(row.key === picked) };
    const who = make("strong", { textContent: `${whoIs(row)} ` });
    const options = { type: "button", classes: "cause", data: { key: row.key }, aria };
    return make("li", {}, make("button", options, who, row.change));
  });
  const more = rows.length - shown.length;
  if (more) shown.push(make("li", { classes: "quiet", textContent: `and ${more} more` }));
  return shown;
}
