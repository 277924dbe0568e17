// What modules, services, jobs and the consoles of nodes write, followed for as long as it is open.

import { ask } from "./api.js";

const EVERY_MS = 2000;
const LINES_MAX = 500;
const LOGGED = ["service", "job", "module", "node"]; // of a node, its console

export class Log {
  #entity = null;
  #after = null;
  #timer = null;

  // `details` holds a select of entities, and a pre for the lines.
  constructor(details) {
    this.details = details;
    this.select = details.querySelector("select");
    this.lines = details.querySelector("pre");
    details.addEventListener("toggle", () => this.#begin());
    this.select.addEventListener("change", () => this.#begin());
  }

  // What is chosen has these views.
  offer(views) {
    const logged = views.filter((view) => LOGGED.includes(view.kind));
    // A console comes last: who only wants the log of a service is not in the audit as its reader.
    logged.sort((one, other) => LOGGED.indexOf(one.kind) - LOGGED.indexOf(other.kind));
    const names = logged.map((view) => view.entity);
    this.details.hidden = !names.length;
    const told = names.join();
    if (told === this.select.dataset.told) return;
    this.select.dataset.told = told;
    const known = names.includes(this.select.value);
    const kept = known ? this.select.value : names[0];
    const title = ({ kind, name, entity }) => (kind === "node" ? `console of ${name}` : entity);
    this.select.replaceChildren(...logged.map((one) => new Option(title(one), one.entity)));
    if (kept !== undefined) this.select.value = kept;
    // Of the next node that is chosen the console is read when somebody asks for it.
    if (!names.length || (!known && kept.startsWith("node:"))) this.details.open = false;
    this.#begin();
  }

  #begin() {
    const entity = this.details.open ? this.select.value : null;
    if (entity === this.#entity) return;
    [this.#entity, this.#after] = [entity, null];
    clearTimeout(this.#timer);
    this.lines.textContent = "";
    if (entity) this.#read(entity);
  }

  async #read(entity) {
    const query = this.#after === null ? {} : { after: this.#after };
    try {
      const told = await ask("GET", `entities/${encodeURIComponent(entity)}/log`, { query });
      if (entity !== this.#entity) return;
      this.#add(told, this.#after === null);
      this.#after = told.after;
    } catch (error) {
      if (entity !== this.#entity) return;
      if (this.#after === null) this.lines.textContent = error.message;
    }
    this.#timer = setTimeout(() => this.#read(entity), EVERY_MS);
  }

  // Whoever has scrolled up goes on reading there.
  #add({ lines, anew }, first) {
    if (!lines.length && !first) return;
    const { scrollHeight, scrollTop, clientHeight } = this.lines;
    const atEnd = scrollHeight - scrollTop - clientHeight < 8;
    const before = first || anew ? [] : this.lines.textContent.split("\n").slice(0, -1);
    const all = [...before, ...lines].slice(-LINES_MAX);
    this.lines.textContent = all.map((line) => `${line}\n`).join("") || "nothing is written yet\n";
    if (atEnd) this.lines.scrollTop = this.lines.scrollHeight;
  }
}
