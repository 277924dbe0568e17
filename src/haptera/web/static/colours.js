// What a cell's colour says: the label of each node as a small number, and what stands for each.

import { short } from "./dom.js";

const WORST_FIRST = ["stuck", "acting", "waiting"];
const CONDITIONS = ["converged", "acting", "waiting", "stuck", "dark"];
const LABELS_MAX = 48; // of more values than this the rest is told together
const OTHERS = "other values";
const NOTHING = ["", "unknown", "as desired", "no job", "no image"];
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
    const known = `${by}\n${fleet.shape}\n${fleet.jobs === null}`;
    if (known !== this.#known) this.#begin(fleet, by);
    else this.#again(fleet, by, changed);
    this.#known = known;
  }

  of(number) {
    return this.labels[this.#of[number]];
  }

  // The class of a label in the style sheet: conditions have theirs, values take turns.
  style(label, by) {
    if (by === "condition") return label;
    if (NOTHING.includes(label)) return "dark";
    const number = this.labels.filter((one) => one !== "").indexOf(label);
    return number < 0 ? "dark" : `value${number % VALUE_COLOURS}`;
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

  // None of them has a label before the first gets one: what they leave is free for the others.
  #again(fleet, by, changed) {
    const all = [...changed].map((name) => fleet.index.get(name)).filter((at) => at !== undefined);
    for (const at of all) this.counts[this.#of[at]] -= 1;
    for (const at of all) this.#label(fleet, by, at);
  }

  #label(fleet, by, at) {
    const name = fleet.nodes[at];
    const label = labelOf(fleet, by, name);
    if (this.labels.length >= LABELS_MAX - 1 && !this.#number.has(label)) this.#reuse(label);
    const number = this.#numberOf(label);
    this.counts[number] += 1;
    this.#of[at] = number;
    this.frozen[at] = anyFrozen(fleet, name);
  }

  // Jobs come and go for as long as the page is open: the number of a label without nodes is free.
  #reuse(label) {
    const free = this.labels.findIndex((one, number) => one !== OTHERS && this.counts[number] === 0);
    if (free < 0) return;
    this.#number.delete(this.labels[free]);
    this.#number.set(label, free);
    this.labels[free] = label;
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
  if (by === "image") return imageOf(all);
  if (by === "job") return fleet.jobs === null ? "unknown" : jobOf(fleet.jobsOn(name));
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
  return one(owners, "as desired", "several owners");
}

// An array is one job, however many of its members there are; it has the number of the first.
function jobOf(jobs) {
  const told = new Set(jobs.map((job) => `${job.array ?? job.id} ${job.name}`));
  return one(told, "no job", "several jobs");
}

// Which image is to run there, and whether it is the one that does.
function imageOf(all) {
  const systems = all.filter(({ kind, desired }) => kind === "system" && desired.image);
  const told = systems.map(({ desired, observed }) => {
    const runs = observed.applied?.known && observed.applied.value === "current";
    return `${desired.image.value}${runs ? "" : ", not yet"}`;
  });
  return one(new Set(told), "no image", "several images");
}

function one(labels, none, several) {
  if (labels.size > 1) return several;
  return [...labels][0] ?? none;
}

// What reads otherwise once it has come about: who desires a node to be draining has it drained.
export const readAs = (wanted) => (wanted === "draining" ? "drained" : String(wanted));

function differs(seen, wanted) {
  return !seen.known || seen.value !== readAs(wanted);
}

// As it is, remembered values with a mark; and as it should be, where that is something else. Plain
// data is not read back one by one: it is told as it is desired.
function valueOf(view, variable) {
  const [seen, wanted] = [view.observed[variable], view.desired[variable]];
  if (!seen && typeof wanted?.value === "number") return String(wanted.value);
  const now = seen ? seen.value + (seen.known ? "" : "?") : "unknown";
  const other = wanted !== undefined && now !== readAs(wanted.value);
  return other ? short(`${now} \u2192 ${wanted.value}`) : now;
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
