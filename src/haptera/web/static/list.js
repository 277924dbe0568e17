// The same nodes as a list, for screen readers, the keyboard, and whoever prefers lists.

import { make, write } from "./dom.js";
import { towards } from "./layout.js";

export const SHOWN_MAX = 200; // options at once; where the list is longer they move with the choice

export class NodeList {
  #scene = null;
  #order = [];
  #known = [];
  #from = 0;
  #built = "";
  #laid = null;

  constructor(element, choose) {
    this.element = element;
    element.addEventListener("click", (event) => {
      const name = event.target.closest("[data-node]")?.dataset.node;
      if (name !== undefined) choose(this.#scene.fleet.index.get(name));
    });
    element.addEventListener("keydown", (event) => {
      const next = this.#next(event.key);
      if (next === null) return;
      event.preventDefault();
      choose(next);
    });
  }

  update(scene) {
    this.#scene = scene;
    this.#sort(scene);
    const place = Math.max(0, this.#order.indexOf(scene.chosen));
    if (place < this.#from || place >= this.#from + SHOWN_MAX || this.#from >= this.#order.length) {
      this.#from = Math.max(0, place - SHOWN_MAX / 2);
    }
    const shown = this.#order.slice(this.#from, this.#from + SHOWN_MAX);
    const built = `${this.#order.length} ${shown.join()}`;
    if (built !== this.#built || scene.layout !== this.#laid) this.#build(scene, shown);
    [this.#built, this.#laid] = [built, scene.layout];
    for (const number of shown) this.#write(scene, number);
    const active = shown.includes(scene.chosen) ? `node-${scene.chosen}` : "";
    if (active) this.element.setAttribute("aria-activedescendant", active);
    else this.element.removeAttribute("aria-activedescendant");
  }

  // Only where nodes, their places, or what is asked for are others.
  #sort({ layout, matches }) {
    if (this.#known[0] === layout && this.#known[1] === matches) return;
    this.#known = [layout, matches];
    const all = layout.boxes.flatMap((box) => Array.from(box.members));
    this.#order = matches ? all.filter((number) => matches[number]) : all;
  }

  #build(scene, shown) {
    const inside = new Set(shown);
    const groups = [];
    let place = this.#from;
    for (const box of scene.layout.boxes) {
      const some = Array.from(box.members).filter((number) => inside.has(number));
      if (!some.length) continue;
      const options = some.map((number) => this.#option(scene, number, (place += 1)));
      const title = make("span", { classes: "title", textContent: box.name, aria: { hidden: true } });
      groups.push(make("div", { role: "group", aria: { label: box.name } }, title, ...options));
    }
    this.element.replaceChildren(...groups);
  }

  #option(scene, number, place) {
    const aria = { posinset: place, setsize: this.#order.length };
    const data = { node: scene.fleet.nodes[number] };
    return make("div", { role: "option", id: `node-${number}`, data, aria });
  }

  #write(scene, number) {
    const option = document.getElementById(`node-${number}`);
    const classes = `cell ${scene.styleOf(number)}`;
    if (option.className !== classes) option.className = classes;
    const selected = String(number === scene.chosen);
    if (option.getAttribute("aria-selected") !== selected) option.setAttribute("aria-selected", selected);
    write(option, scene.spoken(number));
  }

  #next(key) {
    const { chosen, layout, at, asList, matches } = this.#scene ?? {};
    if (!this.#order.length) return null;
    const last = this.#order.length - 1;
    if (key === "Home") return this.#order[0];
    if (key === "End") return this.#order[last];
    if (!key.startsWith("Arrow")) return null;
    if (chosen === null || Number.isNaN(at.xs[chosen])) return this.#order[0];
    if (!asList) return towards(key, chosen, at, (number) => !matches || matches[number]);
    const step = key === "ArrowDown" || key === "ArrowRight" ? 1 : -1;
    return this.#order[Math.min(last, Math.max(0, this.#order.indexOf(chosen) + step))];
  }
}
