// What is looked at: the nodes, what is on no node by its kind, the jobs, or haptera itself.

import { make, refill } from "./dom.js";
import { natural } from "./fleet.js";

const WORST_FIRST = ["stuck", "acting", "waiting"];
export const JOBS = "jobs";
export const HEALTH = "haptera";
export const OTHERS = [JOBS, HEALTH]; // what is no entity

export class Tabs {
  #shown = "";

  constructor(element, show) {
    this.element = element;
    element.addEventListener("click", (event) => {
      const key = event.target.closest("button")?.dataset.key;
      if (key !== undefined) show(key);
    });
  }

  update(fleet, chosen) {
    const kinds = [...fleet.kinds.keys()].filter((kind) => fleet.kinds.get(kind).size).sort(natural);
    const tabs = [["", "nodes", fleet.nodes.length, ""]];
    for (const kind of kinds) tabs.push([kind, kind, fleet.kinds.get(kind).size, worst(fleet, kind)]);
    for (const other of OTHERS) tabs.push([other, other, null, ""]);
    if (![...kinds, ...OTHERS, ""].includes(chosen)) tabs.push([chosen, chosen, 0, ""]);
    const told = JSON.stringify([tabs, chosen]);
    if (told === this.#shown) return;
    this.#shown = told;
    refill(this.element, ...tabs.map((one) => tab(one, chosen)));
  }
}

function tab([key, name, count, condition], chosen) {
  const aria = key === chosen ? { current: "page" } : {};
  const counted = count === null ? name : `${name} ${count}`;
  const told = condition ? `${counted}, ${condition}` : counted;
  return make("button", { type: "button", data: { key }, aria, classes: condition, textContent: told });
}

function worst(fleet, kind) {
  const conditions = new Set([...fleet.kinds.get(kind)].map((one) => fleet.views.get(one).condition));
  return WORST_FIRST.find((one) => conditions.has(one)) ?? "";
}
