// What was seen of each variable over time: of numbers a line, of all else a strip of its values.
// Below them, what was measured in the last hours: a line for each series.

import { ask } from "./api.js";
import { make } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const HAPPENED_MAX = 1000;
const [WIDTH, HEIGHT] = [1000, 20];
const TOLD_MAX = 6;
const COLOURS = 10; // value0 to value9
const MEASURED = { last_s: 6 * 3600, step_s: 120 };
const SERIES_MAX = 24;
const NUMBER = /^-?\d+(\.\d+)?(e[+-]?\d+)?$/;

export class Plots {
  #name = null;

  // `details` holds a div for the plots; they are asked for when somebody looks.
  constructor(details) {
    this.details = details;
    this.place = details.querySelector("div");
    details.addEventListener("toggle", () => this.#load());
  }

  offer(name) {
    this.details.hidden = name === null;
    if (name === this.#name) return;
    this.#name = name;
    this.details.open = false;
    this.place.replaceChildren();
  }

  async #load() {
    const name = this.#name;
    if (!this.details.open || name === null) return;
    let content;
    try {
      const { happened } = await ask("GET", "happenings", { query: { select: name, limit: HAPPENED_MAX } });
      const now_s = Date.now() / 1000;
      const all = [...seenOf(happened)].sort(([one], [other]) => (one < other ? -1 : 1));
      content = all.map(([what, seen]) => plot(what, seen, happened.at(-1).at_s, now_s, told(seen)));
      content.push(...(await measuredOf(name, now_s)));
      if (!content.length) content = [make("p", { classes: "quiet", textContent: "nothing was seen yet" })];
    } catch (error) {
      content = [make("p", { classes: "wrong", textContent: `not known: ${error.message}` })];
    }
    if (name === this.#name) this.place.replaceChildren(...content);
  }
}

// A plot of each series that is measured now, of the node and what is on it.
async function measuredOf(name, now_s) {
  const { entities } = await ask("GET", "samples", { query: { select: name } });
  const all = entities.flatMap(({ entity, series }) => Object.keys(series).map((one) => [entity, one]));
  const views = all.slice(0, SERIES_MAX).map(([entity, series]) =>
    ask("GET", `entities/${encodeURIComponent(entity)}/samples`, { query: { series, ...MEASURED } }),
  );
  return (await Promise.all(views)).filter(({ points }) => points.length).map((view) => measured(view, now_s));
}

// A step without a point is a gap.
function measured({ entity, series, unit, since_s, points }, now_s) {
  const seen = points.flatMap(({ at, mean }, number) => {
    const next = points[number + 1]?.at ?? now_s;
    const gap = next - at > 2 * MEASURED.step_s ? [{ at_s: at + MEASURED.step_s, value: null }] : [];
    return [{ at_s: Math.max(at, since_s), value: String(mean) }, ...gap];
  });
  const [low, high] = [Math.min(...points.map((one) => one.low)), Math.max(...points.map((one) => one.high))];
  const last = points.at(-1).mean;
  const words = `${short(last)} ${unit}, from ${short(low)} to ${short(high)} in 6 h`;
  return plot(`${entity} ${series}`, seen, since_s, now_s, [words]);
}

const short = (value) => Number(value.toPrecision(3)).toLocaleString();

// Of each variable when it had which value; null where nothing was known of it.
function seenOf(happened) {
  const all = new Map();
  for (const one of happened.toReversed()) {
    if (one.sort === "seen") {
      const what = `${one.entity} ${one.name}`;
      if (!all.has(what)) all.set(what, []);
      all.get(what).push({ at_s: one.at_s, value: one.value ?? null });
    } else if (one.sort === "begun" || one.sort === "gone") {
      const whose = (what) => one.sort === "begun" || what.startsWith(`${one.entity} `);
      for (const [what, seen] of all) if (whose(what)) seen.push({ at_s: one.at_s, value: null });
    }
  }
  return all;
}

const told = (seen) =>
  seen.slice(-TOLD_MAX).map(({ at_s, value }) => `${value ?? "unknown"} since ${new Date(at_s * 1000).toLocaleTimeString()}`);

function plot(what, seen, from_s, now_s, told) {
  const x = (at_s) => Math.round((WIDTH * (at_s - from_s)) / Math.max(now_s - from_s, 1));
  const spans = seen.map(({ at_s, value }, number) => ({ value, from: x(at_s), to: x(seen[number + 1]?.at_s ?? now_s) }));
  const known = spans.filter(({ value }) => value !== null);
  const numbers = known.length > 0 && known.every(({ value }) => NUMBER.test(value));
  const parts = numbers ? lines(known) : strip(known);
  const shown = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" };
  const drawing = svg("svg", { ...shown, class: "plot", "aria-label": `${what}: ${told.join(", ")}` }, ...parts);
  return make("figure", {}, make("figcaption", {}, `${what} `, make("small", { textContent: told.at(-1) })), drawing);
}

function strip(spans) {
  const values = [...new Set(spans.map(({ value }) => value))];
  return spans.map(({ value, from, to }) => {
    const colour = `value${values.indexOf(value) % COLOURS}`;
    const title = svg("title", {});
    title.textContent = value;
    return svg("rect", { x: from, y: 0, width: Math.max(to - from, 2), height: HEIGHT, class: colour }, title);
  });
}

// Level while nothing else was seen; a gap is where nothing was known.
function lines(spans) {
  const [low, high] = [Math.min, Math.max].map((most) => most(...spans.map(({ value }) => Number(value))));
  const y = (value) => (high === low ? HEIGHT / 2 : HEIGHT - 1 - ((HEIGHT - 2) * (value - low)) / (high - low));
  const points = ({ value, from, to }) => `${from},${y(Number(value))} ${to},${y(Number(value))}`;
  const runs = [];
  for (const one of spans) {
    if (runs.at(-1)?.at(-1).to === one.from) runs.at(-1).push(one);
    else runs.push([one]);
  }
  return runs.map((run) => svg("polyline", { points: run.map(points).join(" ") }));
}

function svg(tag, attributes, ...children) {
  const one = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  one.append(...children);
  return one;
}
