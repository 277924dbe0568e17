// A saved plan: what it would do now and whom it would disrupt, and applying just that.

import { ask } from "./api.js";
import { make } from "./dom.js";
import { disrupts, drawn } from "./setting.js";

const BYTES_MAX = 64 << 20; // as `haptera plan --save` writes at most

export class SavedPlan {
  #opened = 0; // how often a file was chosen: the last one counts

  // `element` holds the input and what is told of its file; `actions` gives the button.
  constructor(element, actions) {
    Object.assign(this, { told: element.querySelector("div"), actions });
    const input = element.querySelector("input");
    input.addEventListener("change", () => {
      const [file] = input.files;
      input.value = ""; // the same file can be chosen once more: by then its plan may be out of date
      if (file) this.#open(file);
    });
  }

  async #open(file) {
    const mine = (this.#opened += 1);
    this.told.replaceChildren();
    let content = [];
    try {
      const saved = await read(file);
      const { plan } = await saved.send({ dry_run: 1 });
      content = this.#show(saved, plan);
    } catch (error) {
      content = [make("p", { classes: "wrong", textContent: error.message })];
    }
    if (mine === this.#opened) this.told.replaceChildren(make("h2", { textContent: file.name }), ...content);
  }

  // What is shown is what the parent says of it now, and not what a file says.
  #show(saved, plan) {
    const old = plan.digest !== saved.digest;
    saved.applied = () => {
      const done = `${saved} is applied; what it started is listed as acting`;
      this.told.replaceChildren(make("p", { textContent: done }));
    };
    const text = `plan ${saved.digest} is out of date: what it depends on has changed. Plan again.`;
    return [
      ...(old ? [make("p", { classes: "wrong", textContent: text })] : []),
      ...drawn(plan),
      ...(old ? [] : this.actions.ofPlan(saved, disrupts(plan))),
    ];
  }
}

// What was planned, to be asked for once more: a site, or the write that a revert undoes.
async function read(file) {
  if (file.size > BYTES_MAX) throw new Error(`${file.name} has more than 64 MiB: no plan is so large`);
  const told = parsed(await file.text());
  const known = told?.haptera_plan === 1 && typeof told.plan?.digest === "string";
  if (!known || (told.site === undefined) === (told.revert === undefined)) {
    throw new Error(`${file.name} is not a plan: choose a file of haptera plan … --save`);
  }
  const { digest } = told.plan;
  const path = told.site === undefined ? `revert/${encodeURIComponent(told.revert)}` : "apply";
  const take = told.take ? { take: 1 } : {};
  return {
    digest,
    send: (query) => ask("POST", path, { query: { ...take, ...query }, body: told.site }),
    toString: () => `plan ${digest}`,
  };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
