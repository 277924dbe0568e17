// The jobs that run on the nodes, followed for as long as the cells are coloured by them.

import { followJobs } from "./jobfeed.js";

const SELECT = "job:* and (state=locked or state=running)";

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
    if (!fleet) return;
    this.#stop = new AbortController();
    const taken = (jobs, others) => {
      fleet.run(jobs, others);
      this.changed(null);
    };
    followJobs(SELECT, { signal: this.#stop.signal, taken, failed: this.changed });
  }
}
