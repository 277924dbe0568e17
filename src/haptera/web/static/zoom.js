// Zooming in from the site to a group of nodes, a rack at first, and to one node; and out again.

import { at, make, refill } from "./dom.js";
import { groupOf } from "./groups.js";
import { place } from "./place.js";

export class Zoom {
  within = null; // the group that is shown alone
  alone = false; // the chosen node is shown alone
  #levels = []; // from the site inwards: { key, name, within, alone }
  #fleet = null;
  #shown = "";

  // `changed` is called once another level is looked at.
  constructor(element, changed) {
    Object.assign(this, { element, changed });
    element.addEventListener("click", (event) => {
      const key = event.target.closest("button")?.dataset.key;
      if (key !== undefined) this.#to(this.#levels.findIndex((one) => one.key === key));
    });
    at("list").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.in()) this.#focus();
    });
    addEventListener("keydown", (event) => {
      const elsewhere = event.target.closest("input, select, textarea, dialog") !== null;
      if (event.key === "Escape" && !elsewhere && this.#to(this.#level() - 1)) this.#focus();
    });
  }

  update(fleet) {
    this.#fleet = fleet;
    const node = fleet.index.has(place.node) ? place.node : null;
    const its = node === null ? null : groupOf(fleet, node, place.group);
    const group = place.within || its;
    this.#levels = [{ key: "site", name: fleet.cluster, within: "", alone: "" }];
    if (group !== null) this.#levels.push({ key: "group", name: group, within: group, alone: "" });
    if (node !== null && group === its) {
      this.#levels.push({ key: "node", name: node, within: its ?? "", alone: "yes" });
    }
    this.within = place.within || null;
    this.alone = place.alone !== "" && this.#levels.at(-1).key === "node";
    this.#paint();
  }

  // Shows one group alone.
  enter(group) {
    [place.within, place.alone] = [group, ""];
    this.changed();
  }

  // One level further, towards the chosen node; whether there is one. It may be chosen just now, and
  // not painted yet.
  in() {
    if (this.#fleet !== null) this.update(this.#fleet);
    return this.#to(this.#level() + 1);
  }

  #level() {
    if (this.alone) return this.#levels.length - 1;
    return this.within === null ? 0 : 1;
  }

  #to(level) {
    const one = this.#levels[level];
    if (one === undefined || place.show !== "") return false;
    [place.within, place.alone] = [one.within, one.alone];
    this.changed();
    return true;
  }

  // Who came with the keyboard goes on with it.
  #focus() {
    requestAnimationFrame(() => {
      const its = place.alone === "" ? at("list") : this.element.querySelector("[data-key=node]");
      its.focus();
    });
  }

  #paint() {
    const hidden = place.show !== "" || this.#levels.length === 1;
    const told = JSON.stringify([this.#levels, this.#level(), hidden]);
    if (told === this.#shown) return;
    this.#shown = told;
    this.element.hidden = hidden;
    refill(this.element, ...this.#levels.map((one, level) => this.#crumb(one, level)));
  }

  #crumb({ key, name }, level) {
    const aria = level === this.#level() ? { current: "location" } : {};
    return make("button", { type: "button", data: { key }, aria, textContent: name });
  }
}
