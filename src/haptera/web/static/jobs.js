// The queue: jobs with what they wait for, who takes them, and what there is too little of.

import { ask } from "./api.js";
import { badge, make, refill } from "./dom.js";
import { table } from "./table.js";

const EVERY_MS = 2000;
const SHOWN_MAX = 200;
// Jobs have states of their own; their colours are those of conditions.
export const COLOURS = { queued: "waiting", locked: "acting", running: "acting", complete: "converged", failed: "stuck" };

export class Jobs {
  #timer = null;
  #shown = false;
  #state = ""; // only these
  #chosen = "";
  #jobs = new Map(); // by their name as an entity
  #told = null;
  #painted = "";

  // `actions` gives the buttons; `changed` is called when there is something new to paint.
  constructor({ element, actions, choose, changed }) {
    Object.assign(this, { element, actions, changed });
    element.addEventListener("click", (event) => {
      const { key, state } = event.target.closest("button")?.dataset ?? {};
      if (state !== undefined) this.#only(state);
      else if (key?.startsWith("job:")) choose(key);
    });
  }

  // Asked for only while somebody looks.
  update(shown, chosen, rights) {
    const another = chosen !== this.#chosen && chosen.startsWith("job:");
    this.#chosen = chosen;
    if (shown !== this.#shown) {
      this.#shown = shown;
      clearTimeout(this.#timer);
      if (shown) this.#load();
      else this.#told = null;
    } else if (shown && another) {
      clearTimeout(this.#timer);
      this.#load();
    }
    if (shown) this.#paint(chosen, rights);
  }

  // A chosen job as the panel shows entities.
  view(name) {
    const job = this.#jobs.get(name);
    if (!job) return [];
    const { state, why, spec } = job;
    const attributes = {
      ...{ name: job.name, owner: job.owner, priority: job.priority, size: size(spec.size) },
      ...{ command: spec.command?.join(" ") ?? "", "time limit, s": spec.time_limit_s, retry: spec.retry },
      ...{ backend: spec.backend, at: job.holder, "exit status": job.status },
    };
    const some = Object.entries(attributes).filter(([, value]) => value !== null && value !== "");
    return [
      {
        ...{ entity: name, kind: "job", name: `${job.id}`, node: null, condition: COLOURS[state] ?? "dark" },
        ...{ state, why, frozen: null, unblock: null, again_in_ms: null, error: null, doing: null },
        ...{ chain: [], desired: {}, observed: {}, attributes: Object.fromEntries(some) },
        arrived: JSON.stringify(job),
      },
    ];
  }

  #only(state) {
    this.#state = this.#state === state ? "" : state;
    clearTimeout(this.#timer);
    this.#load();
  }

  async #load() {
    const query = { limit: SHOWN_MAX, ...(this.#state && { state: this.#state }) };
    try {
      const [jobs, queue] = await Promise.all([ask("GET", "jobs", { query }), ask("GET", "queue")]);
      const known = new Map(jobs.jobs.map((job) => [`job:${job.id}`, job]));
      const alone = await this.#whole(this.#chosen);
      if (alone !== null) known.set(`job:${alone.id}`, alone);
      [this.#told, this.#jobs] = [{ ...jobs, ...queue }, known];
    } catch (error) {
      this.#told ??= { wrong: error.message };
    }
    if (!this.#shown) return;
    this.changed();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#load(), EVERY_MS);
  }

  // The chosen job, which may be none of the last ones; a list has no commands either.
  async #whole(chosen) {
    if (!chosen.startsWith("job:")) return null;
    return ask("GET", `jobs/${encodeURIComponent(chosen.slice("job:".length))}`).catch(() => null);
  }

  #paint(chosen, rights) {
    const now = JSON.stringify([this.#told, this.#state, chosen, rights]);
    if (now === this.#painted) return;
    this.#painted = now;
    const told = this.#told;
    if (told === null) return refill(this.element, make("p", { classes: "quiet", textContent: "asking" }));
    if (told.wrong) return refill(this.element, make("p", { classes: "wrong", textContent: told.wrong }));
    const jobs = told.jobs.map((job) => jobRow(job, chosen));
    const caption = jobs.length < SHOWN_MAX ? "jobs" : `jobs, the last ${SHOWN_MAX}`;
    refill(
      this.element,
      this.#counts(told.counts),
      ...told.wanted.map(lacking),
      table(caption, ["job", "", "name", "size", "priority", "at", "why"], jobs),
      table("who takes jobs", ["node", "", "free", "jobs", "why", ""], holderRows(told.holders, this.actions)),
    );
  }

  #counts(counts) {
    const buttons = Object.entries(counts).map(([state, count]) => {
      const aria = { pressed: String(state === this.#state) };
      const options = { type: "button", data: { key: `=${state}`, state }, aria };
      return make("li", { classes: COLOURS[state] ?? "dark" }, make("button", { ...options, textContent: `${count} ${state}` }));
    });
    if (!buttons.length) buttons.push(make("li", { classes: "quiet", textContent: "no jobs: haptera submit queues one" }));
    return make("ul", { classes: "counts", aria: { label: "Jobs by state; a button shows these alone" } }, ...buttons);
  }
}

function jobRow(job, chosen) {
  const key = `job:${job.id}`;
  const aria = { pressed: String(key === chosen) };
  const button = make("button", { type: "button", data: { key }, aria, textContent: String(job.id) });
  const cells = [job.name, size(job.spec.size), String(job.priority), job.holder ?? "", job.why];
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, button),
    make("td", {}, badge(COLOURS[job.state] ?? "dark", job.state)),
    ...cells.map((text) => make("td", { textContent: text })),
  );
}

// Those of which there is something to say come first.
function holderRows(holders, actions) {
  const told = (one) => (one.jobs.length || one.reason ? 0 : 1);
  const shown = [...holders].sort((one, other) => told(one) - told(other)).slice(0, SHOWN_MAX);
  const rows = shown.map((one) => holderRow(one, actions));
  const more = holders.length - shown.length;
  if (more <= 0) return rows;
  return [...rows, make("tr", {}, make("td", { colSpan: 6, textContent: `and ${more} more` }))];
}

function holderRow(one, actions) {
  const jobs = one.jobs.join(", ");
  const why = [one.reason, one.who && `says ${one.who}`].filter(Boolean).join(", ");
  return make(
    "tr",
    {},
    make("th", { scope: "row", textContent: one.name }),
    make("td", {}, badge(one.jobs.length ? "acting" : "dark", one.duty)),
    ...[`${size(one.free)} of ${size(one.capacity)}`, jobs, why].map((text) => make("td", { textContent: text })),
    make("td", {}, ...actions.ofHolder(one)),
  );
}

function lacking({ count, size: asked }) {
  const who = count === 1 ? "1 job waits" : `${count} jobs wait`;
  return make("p", { textContent: `${who} for ${size(asked)}: no node has so much free now` });
}

export function size({ cpus, memory_mb }) {
  return memory_mb ? `${cpus} CPU, ${memory_mb} MB` : `${cpus} CPU`;
}
