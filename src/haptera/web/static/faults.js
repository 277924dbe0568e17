// What is wrong with haptera itself: a store that cannot be written, parents that are silent.

import { ask } from "./api.js";
import { make, refill } from "./dom.js";

const EVERY_MS = 5000;

export class Faults {
  #timer = null;

  constructor(element) {
    this.element = element;
  }

  // While the parent cannot be asked, what it last told stays: that it is away is told elsewhere.
  async follow() {
    clearTimeout(this.#timer);
    const told = await ask("GET", "summary").catch(() => null);
    if (told !== null) {
      this.element.hidden = !told.faults.length;
      refill(this.element, ...told.faults.map((textContent) => make("div", { textContent })));
    }
    this.#timer = setTimeout(() => this.follow(), EVERY_MS);
  }

  stop() {
    clearTimeout(this.#timer);
    this.element.hidden = true;
  }
}
