// Setting one desired value: first what that would start, then doing it.

import { ask } from "./api.js";
import { duration, make } from "./dom.js";

const GROUPS_MAX = 20;
const WAVES_MAX = 24;

// The form that asks for a value of this entity; `close` ends it, `done` says what was done. With a
// `wish`, a name and a value, it begins with these, and with their plan where it may be shown.
export function settingForm(view, planned, { close, done, wish = null }) {
  const names = [...new Set([...Object.keys(view.desired), ...Object.keys(view.observed)])];
  const name = make("select", { id: "name" }, ...names.map((one) => new Option(one, one)));
  const value = make("input", { id: "value", autocomplete: "off", spellcheck: false });
  const why = make("input", { id: "why", maxLength: 500, autocomplete: "off" });
  const whose = make("p", { classes: "quiet" });
  const told = make("div", { role: "status" });
  const wrong = make("p", { classes: "wrong", role: "alert" });
  const go = make("button", { type: "submit", classes: "go" });
  const form = make(
    "form",
    { onsubmit: step },
    make("h2", { id: "deed", textContent: `Set a desired value of ${view.entity}` }),
    make("label", {}, "What", name),
    make("label", {}, "Value (nothing: it is not desired any more)", value),
    whose,
    make("label", {}, "Why (optional)", why),
    told,
    wrong,
    make("p", { classes: "actions" }, go, make("button", { type: "button", textContent: "Cancel", onclick: close })),
  );
  let seen = null; // the value whose plan is shown
  const asked = () => ({ [name.value]: plain(value.value.trim(), view.desired[name.value]?.value) });
  name.addEventListener("change", begin);
  value.addEventListener("input", unsee);
  if (wish) name.value = wish.name;
  begin();
  if (wish) value.value = wish.value;
  if (wish && planned) step();
  return form;

  function begin() {
    value.value = view.desired[name.value]?.value ?? "";
    const owner = view.desired[name.value]?.owner ?? null;
    whose.textContent = owner === null ? "" : `it is desired by ${owner}; it will be yours`;
    unsee();
  }

  function unsee() {
    seen = planned ? null : "";
    told.replaceChildren();
    wrong.textContent = "";
    go.textContent = planned ? "Show the plan" : "Set";
  }

  async function step() {
    go.disabled = true;
    try {
      if (seen === null) await show();
      else await set();
    } catch (error) {
      wrong.textContent = error.message;
    }
    go.disabled = false;
  }

  async function show() {
    const shown = asked();
    const patches = [{ entity: view.entity, desired: shown }];
    const answer = await ask("POST", "bulk", { query: { dry_run: 1, take: 1 }, body: { patches } });
    const problem = answer.results[0].problem;
    if (problem) throw new Error([problem.what, problem.do].filter(Boolean).join(": "));
    if (JSON.stringify(asked()) !== JSON.stringify(shown)) return; // another was typed meanwhile
    told.replaceChildren(...answer.plans.flatMap(drawn));
    seen = JSON.stringify(shown);
    go.textContent = "Set";
  }

  async function set() {
    const because = why.value.trim();
    const query = { take: 1, ...(because && { why: because }) };
    await ask("PATCH", `entities/${encodeURIComponent(view.entity)}/desired`, { query, body: asked() });
    close();
    done(`Set ${name.value} of ${view.entity}, done`);
  }
}

// A value is a number where a number was; nothing is not desired.
function plain(text, before) {
  if (text === "") return null;
  return typeof before === "number" && /^-?\d+$/.test(text) ? Number(text) : text;
}

// Group by group; each goes in so many rounds, one after the other, as its budgets let it.
export function drawn(plan) {
  const forgotten = plan.rewrites.filter((one) => one.name === null && one.after === null);
  const gone = forgotten.map((one) => make("li", { textContent: `forgets ${titleOf(one)} (${one.entities})` }));
  const all = [...gone, ...plan.groups.map(group)].slice(0, GROUPS_MAX);
  const more = gone.length + plan.groups.length - all.length;
  if (more > 0) all.push(make("li", { textContent: `and ${more} more` }));
  if (!all.length) all.push(make("li", { textContent: "nothing has to be done for it" }));
  const text = plan.disrupted === null ? "" : disrupts(plan);
  return [make("ul", { classes: "plan" }, ...all), make("p", { classes: "wrong", textContent: text })];
}

export function disrupts({ disrupted, disrupted_nodes: count, nodes }) {
  return `disrupts up to ${count} of ${nodes} nodes${disrupted === null ? "" : `: ${disrupted}`}`;
}

const titleOf = ({ of, on }) => (on === null ? of : `${of} on ${on}`);

function group(one) {
  const steps = one.chain.map((link) => link.does).join(" \u2192 ");
  const takes = one.chain.length ? ` (usually ${duration(one.usual_ms)})` : "";
  const waits = one.busy === null ? "" : `; waits for the jobs of ${one.busy}`;
  const hits = one.services === null ? "" : `; hits ${one.services}`;
  const text = `${titleOf(one)}: ${steps || one.why || "nothing"}${takes}${rounds(one)}${waits}${hits}`;
  return make("li", {}, text, waves(one));
}

// One box for each round, in their order; who goes in which is decided only when it begins.
function waves({ chain, rounds: count }) {
  if (!chain.length || count === null || count === 1) return null;
  const boxes = Array.from({ length: Math.min(count, WAVES_MAX) }, (_, at) => make("span", { textContent: at + 1 }));
  if (count > WAVES_MAX) boxes[WAVES_MAX - 1].textContent = `\u2026 ${count}`;
  return make("div", { classes: "waves", role: "img", aria: { label: `${count} rounds, one after the other` } }, ...boxes);
}

function rounds({ chain, rounds: count, at_least_ms: least }) {
  if (!chain.length || count === 1) return "";
  if (count === null) return "; the budgets allow none at once";
  return `; in ${count} rounds by the budgets${least ? `, ${duration(least)} at least` : ""}`;
}
