// The brake, where it is on: why, for how long, and the button that releases it.

import { ask } from "./api.js";
import { duration, make, refill } from "./dom.js";

const EVERY_MS = 5000;

export class Brake {
  #timer = null;

  constructor(element, actions) {
    Object.assign(this, { element, actions });
  }

  // A token that is limited to some entities is not told; nothing is shown then.
  async follow() {
    clearTimeout(this.#timer);
    const told = await ask("GET", "brake").catch(() => null);
    const on = told !== null && told.why !== null;
    this.element.hidden = !on;
    if (on) {
      const text = `the brake is on: ${told.why}; it is released by itself in ${duration(told.left_ms)} `;
      refill(this.element, make("span", { textContent: text }), ...this.actions.ofBrake(told.why));
    }
    this.#timer = setTimeout(() => this.follow(), EVERY_MS);
  }

  stop() {
    clearTimeout(this.#timer);
    this.element.hidden = true;
  }
}
