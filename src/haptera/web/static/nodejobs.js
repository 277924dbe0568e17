// The jobs of the chosen node: those that run there, then those that ended there of late.

import { Problem } from "./api.js";
import { badge, make, refill } from "./dom.js";
import { followJobs } from "./jobfeed.js";
import { COLOURS, size } from "./jobs.js";
import { spokenTime } from "./told.js";

const ENDED_MAX = 5;
const jobsOf = (node) => `job:*@${node} and (state=locked or state=running or age(ended)<1h)`;

export class NodeJobs {
  #of = [null, null];
  #stop = null;
  #jobs = new Map(); // by number

  constructor(element, choose) {
    this.element = element;
    element.addEventListener("click", (event) => {
      const key = event.target.closest("button")?.dataset.key;
      if (key !== undefined) choose(key);
    });
  }

  // Of this node, null for none, as long as the fleet is the same.
  follow(fleet, node) {
    if (fleet === this.#of[0] && node === this.#of[1]) return;
    this.#of = [fleet, node];
    this.#stop?.abort();
    this.#show();
    if (node === null) return;
    this.#stop = new AbortController();
    const taken = (jobs, others) => this.#take(jobs, others);
    // What was told before stays in sight where nobody answers for a while.
    const failed = (error) => {
      if (!(error instanceof Problem)) return;
      this.#show(make("p", { classes: "quiet", textContent: `not known: ${error.message}` }));
    };
    followJobs(jobsOf(node), { signal: this.#stop.signal, taken, failed });
  }

  #take(jobs, others) {
    if (others !== null && !jobs.length && !others.length) return;
    if (others === null) this.#jobs.clear();
    for (const key of others ?? []) this.#jobs.delete(key);
    for (const job of jobs) this.#jobs.set(job.id, job);
    const all = [...this.#jobs.values()].sort((one, other) => other.id - one.id);
    const ended = all.filter((job) => job.ended_s !== null);
    const rows = [...all.filter((job) => job.ended_s === null), ...ended.slice(0, ENDED_MAX)].map(row);
    const more = ended.length - ENDED_MAX;
    if (more > 0) rows.push(make("li", { classes: "quiet", textContent: `and ${more} more that ended within the hour` }));
    if (rows.length) this.#show(make("ul", {}, ...rows));
    else this.#show();
  }

  #show(...content) {
    this.element.hidden = !content.length;
    refill(this.element, make("h3", { textContent: "Jobs" }), ...content);
  }
}

function row(job) {
  const options = { type: "button", data: { key: `job:${job.id}` }, textContent: `${job.id} ${job.name}` };
  const [what, at_s] = job.ended_s === null ? ["since", job.began_s] : ["ended", job.ended_s];
  const when = at_s === null ? "" : `${what} ${spokenTime(at_s)}, `;
  const text = `${when}${size(job.spec.size)}, ${job.owner}${job.state === "failed" ? `: ${job.why}` : ""}`;
  const state = badge(COLOURS[job.state] ?? "dark", job.state);
  return make("li", {}, make("button", options), " ", state, make("small", { textContent: text }));
}
