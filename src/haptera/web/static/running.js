// The jobs that run on the nodes, followed for as long as the cells are coloured by them.

import { Problem, ask } from "./api.js";

const SELECT = "job:* and (state=locked or state=running)";
const JOBS_MAX = 10_000; // one answer has no more
const EVERY_MS = 1000; // what changed since is told in a few bytes
const REFUSED = [401, 403]; // asking again would not help

export class Running {
  #fleet = null;
  #stop = null;

  // `changed` is called after each answer; with an error where there is none.
  constructor(changed) {
    this.changed = changed;
  }

  // Whose nodes they run on; null where nobody looks.
  follow(fleet) {
    if (fleet === this.#fleet) return;
    this.#fleet = fleet;
    this.#stop?.abort();
    this.#stop = fleet && new AbortController();
    if (fleet) this.#read(fleet, this.#stop.signal);
  }

  // Each answer has what changed after the one before; after a failure all is read anew.
  async #read(fleet, signal) {
    let turn = null;
    while (!signal.aborted) {
      const since = turn === null ? {} : { since: turn };
      try {
        const told = await ask("GET", "jobs", { query: { select: SELECT, limit: JOBS_MAX, ...since }, signal });
        fleet.run(told.jobs, turn === null ? null : told.others);
        turn = told.turn;
        this.changed(null);
      } catch (error) {
        if (signal.aborted) return;
        this.changed(error);
        if (error instanceof Problem && REFUSED.includes(error.status)) return;
        turn = null;
      }
      await new Promise((done) => setTimeout(done, EVERY_MS));
    }
  }
}
