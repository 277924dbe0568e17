// What a cell's colour says: the label of each node as a small number, and what stands for each.

const WORST_FIRST = ["stuck", "acting", "waiting"];
const CONDITIONS = ["converged", "acting", "waiting", "stuck", "dark"];
const LABELS_MAX = 48; // of more values than this the rest is told together
const OTHERS = "other values";
export const SIGNS = { stuck: "\u2715", waiting: "\u2026" }; // not by colour alone
export const FROZEN_SIGN = "\u2744";
export const VALUE_COLOURS = 10;
export const SPOKEN = { dark: "off or unknown" };
export const SHORT = { dark: "off" };

// The label of every node, kept up node by node, with how many have each.
export class Colouring {
  labels = [];
  counts = [];
  frozen = new Uint8Array(0); // 1 where something of a node is frozen
  #of = new Uint8Array(0);
  #number = new Map();
  #known = "";

  // Labels those that changed, or all where the shape or the question is another.
  update(fleet, by, changed) {
    const known = `${by}\n${fleet.shape}`;
    if (known !== this.#known) this.#begin(fleet, by);
    else for (const name of changed) this.#label(fleet, by, name);
    this.#known = known;
  }

  of(number) {
    return this.labels[this.#of[number]];
  }

  // The class of a label in the style sheet: conditions have theirs, values take turns.
  style(label, by) {
    if (by === "condition") return label;
    if (label === "" || label === "unknown" || label === "as desired") return "dark";
    return `value${this.labels.filter((one) => one !== "").indexOf(label) % VALUE_COLOURS}`;
  }

  #begin(fleet, by) {
    const told = fleet.nodes.map((name) => labelOf(fleet, by, name));
    const found = by === "condition" ? CONDITIONS : [...new Set(told)].sort(byText);
    [this.labels, this.counts] = [[], []];
    this.#number = new Map();
    for (const label of found) this.#numberOf(label);
    this.frozen = Uint8Array.from(fleet.nodes, (name) => anyFrozen(fleet, name));
    this.#of = Uint8Array.from(told, (label) => {
      const number = this.#numberOf(label);
      this.counts[number] += 1;
      return number;
    });
  }

  #label(fleet, by, name) {
    const at = fleet.index.get(name);
    if (at === undefined) return;
    const number = this.#numberOf(labelOf(fleet, by, name));
    this.counts[this.#of[at]] -= 1;
    this.counts[number] += 1;
    this.#of[at] = number;
    this.frozen[at] = anyFrozen(fleet, name);
  }

  #numberOf(label) {
    const known = this.#number.get(label);
    if (known !== undefined) return known;
    if (label !== OTHERS && this.labels.length >= LABELS_MAX - 1) return this.#numberOf(OTHERS);
    this.#number.set(label, this.labels.length);
    this.labels.push(label);
    this.counts.push(0);
    return this.labels.length - 1;
  }
}

const byText = new Intl.Collator("en", { numeric: true }).compare;

const anyFrozen = (fleet, name) => (fleet.all(name).some((view) => view.frozen) ? 1 : 0);

function labelOf(fleet, by, name) {
  const all = fleet.all(name);
  if (by === "condition") return conditionOf(all);
  if (by === "owner") return ownersOf(all);
  const [what, key] = split(by);
  if (what === "attribute") return all[0].attributes[key] ?? "";
  const [entity, variable] = key.includes(".") && key.includes(":") ? apart(key) : ["", key];
  const view = entity ? all.find((one) => `${one.kind}:${one.name}` === entity) : all[0];
  return view ? valueOf(view, variable) : "";
}

// The worst of a node and what is on it; dark while it is off. The CLI has the same rule.
export function conditionOf(all) {
  const worst = WORST_FIRST.find((one) => all.some((view) => view.condition === one));
  if (worst) return worst;
  const power = all[0].observed.power;
  return power?.known && power.value === "on" ? "converged" : "dark";
}

// Whose desired values are not as it is.
function ownersOf(all) {
  const owners = new Set();
  for (const view of all) {
    const seen = Object.entries(view.desired).filter(([name]) => view.observed[name]);
    const other = seen.filter(([name, { value }]) => differs(view.observed[name], value));
    const unsettled = !["converged", "idle"].includes(view.condition);
    const told = other.length || !unsettled ? other : Object.entries(view.desired);
    for (const [, { owner }] of told) owners.add(owner);
  }
  if (!owners.size) return "as desired";
  return owners.size > 1 ? "several owners" : [...owners][0];
}

function differs(seen, wanted) {
  return !seen.known || seen.value !== String(wanted);
}

// A remembered value is told as such, and plain data as it is desired.
function valueOf(view, variable) {
  const seen = view.observed[variable];
  if (seen) return seen.value + (seen.known ? "" : "?");
  const wanted = view.desired[variable];
  return wanted && typeof wanted.value === "number" ? String(wanted.value) : "unknown";
}

function split(by) {
  const colon = by.indexOf("=");
  return [by.slice(0, colon), by.slice(colon + 1)];
}

// KIND:NAME and the variable; a service's name may have dots, a variable of its own has none.
function apart(key) {
  const dot = key.lastIndexOf(".");
  return [key.slice(0, dot), key.slice(dot + 1)];
}
