// The status page: follows the stream of events, paints a cell for each node, tells why.

const BACK_OFF_MS = [200, 500, 1000, 2000, 5000];
const SILENCE_MS = 45_000; // the server says that it is there every 15 s
const CELLS = ["converged", "acting", "waiting", "stuck", "dark"];
const WORST_FIRST = ["stuck", "acting", "waiting"];
const SIGNS = { stuck: "\u2715", waiting: "\u2026" }; // not by colour alone
const FROZEN_SIGN = "\u2744";
const TOKEN_KEY = "haptera-token";
const natural = new Intl.Collator("en", { numeric: true }).compare;

const views = new Map(); // by entity; each with `arrived`, when it came
const cells = new Map(); // buttons by node
let cluster = "haptera";
const ages = []; // what in the panel grows older
let chosen = null;
let shown = "";
let lost = null; // since when nobody answers
let painting = false;
let following = null;

const at = (id) => document.getElementById(id);

function make(tag, options = {}, ...children) {
  const { classes = "", ...rest } = options;
  const element = Object.assign(document.createElement(tag), rest);
  if (classes) element.className = classes;
  element.append(...children.filter((child) => child !== null));
  return element;
}

// ---- following the stream: EventSource cannot send a token, so fetch reads it

class Refused extends Error {}

async function follow(token, signal) {
  let lastId = null;
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      lastId = await read(token, lastId, signal, (id) => {
        lastId = id;
        attempt = 0;
      });
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused) return say(error.message);
    }
    lost ??= Date.now();
    paintLost();
    const wait = BACK_OFF_MS[Math.min(attempt, BACK_OFF_MS.length - 1)];
    await new Promise((done) => setTimeout(done, wait));
  }
}

// Reads until the stream ends; returns where it can be gone on from.
async function read(token, lastId, signal, arrived) {
  const headers = { Authorization: `Bearer ${token}` };
  if (lastId !== null) headers["Last-Event-ID"] = lastId;
  const silence = new AbortController();
  const either = AbortSignal.any([signal, silence.signal]);
  const answer = await fetch("v1/events", { headers, signal: either, cache: "no-store" });
  if (answer.status === 410) return null;
  if (answer.status === 401 || answer.status === 403) {
    const problem = await answer.json();
    throw new Refused(`${problem.what}: open the address that haptera printed`);
  }
  if (!answer.ok) throw new Error(`answered ${answer.status}`);
  lost = null;
  document.body.classList.remove("stale");
  say("live");
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const timer = setTimeout(() => silence.abort(), SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return lastId;
    const blocks = (text + value).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      lastId = take(block) ?? lastId;
      arrived(lastId);
    }
  }
}

// Takes one event in; returns its id, or null where it has none.
function take(block) {
  const fields = {};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
  }
  if (fields.data === undefined) return null;
  const event = JSON.parse(fields.data);
  if (fields.event === "snapshot") views.clear();
  cluster = event.cluster;
  for (const view of event.entities) views.set(view.entity, { ...view, arrived: performance.now() });
  for (const entity of event.gone) views.delete(entity);
  paintSoon();
  return fields.id ?? null;
}

// ---- painting

function paintSoon() {
  if (painting) return;
  painting = true;
  requestAnimationFrame(() => {
    painting = false;
    paint();
  });
}

function paint() {
  const nodes = nodesWithAll();
  at("cluster").textContent = cluster;
  document.title = `${cluster} \u00b7 haptera`;
  paintCells(nodes);
  paintCounts(nodes);
  paintPanel(nodes);
  paintClock();
}

// Each node's views, its own first, by its name.
function nodesWithAll() {
  const nodes = new Map();
  for (const view of [...views.values()].sort((a, b) => natural(a.entity, b.entity))) {
    if (view.kind === "node") nodes.set(view.name, [view]);
  }
  for (const view of views.values()) {
    if (view.kind !== "node") nodes.get(view.node)?.push(view);
  }
  return nodes;
}

// The worst of a node and what is on it; dark while it is off. The CLI has the same rule.
function cellOf(all) {
  const worst = WORST_FIRST.find((one) => all.some((view) => view.condition === one));
  if (worst) return worst;
  const power = all[0].observed.power;
  return power?.known && power.value === "on" ? "converged" : "dark";
}

function paintCells(nodes) {
  if (nodes.size !== cells.size || [...nodes.keys()].some((name) => !cells.has(name))) {
    buildRacks(nodes);
  }
  for (const [name, all] of nodes) {
    const cell = cells.get(name);
    const colour = cellOf(all);
    if (!cell.classList.contains(colour)) cell.className = `cell ${colour}`;
    const frozen = all.some((view) => view.frozen);
    cell.textContent = SIGNS[colour] ?? (frozen ? FROZEN_SIGN : "");
    const words = colour === "dark" ? "off or unknown" : colour;
    cell.setAttribute("aria-label", `${name}: ${words}${frozen ? ", frozen" : ""}`);
    cell.setAttribute("aria-pressed", String(name === chosen));
  }
}

function buildRacks(nodes) {
  const focused = document.activeElement?.dataset?.node;
  const racks = new Map();
  cells.clear();
  for (const [name, [node]] of nodes) {
    const rack = node.attributes.rack ?? "";
    const cell = make("button", { type: "button", title: name });
    cell.dataset.node = name;
    cell.tabIndex = -1;
    cells.set(name, cell);
    if (!racks.has(rack)) racks.set(rack, []);
    racks.get(rack).push(cell);
  }
  const sections = [...racks.keys()].sort(natural).map((rack) => {
    const grid = make("div", { classes: "cells" }, ...racks.get(rack));
    const columns = Math.min(10, Math.max(2, Math.ceil(Math.sqrt(racks.get(rack).length))));
    grid.style.setProperty("--columns", columns);
    return make("div", { classes: "rack" }, make("h2", { textContent: rack || "no rack" }), grid);
  });
  at("racks").replaceChildren(...sections);
  if (cells.size) (cells.get(chosen) ?? cells.values().next().value).tabIndex = 0;
  cells.get(focused)?.focus();
}

function paintCounts(nodes) {
  const counts = Object.fromEntries(CELLS.map((one) => [one, 0]));
  for (const all of nodes.values()) counts[cellOf(all)] += 1;
  const items = CELLS.filter((one) => counts[one]).map((one) =>
    make("li", { classes: one, textContent: `${counts[one]} ${one === "dark" ? "off" : one}` }),
  );
  at("counts").replaceChildren(...items);
}

// Made anew only where something came, so that what is selected in it stays so.
function paintPanel(nodes) {
  const all = nodes.get(chosen);
  const now = [chosen, ...(all ?? []).map((view) => view.arrived)].join();
  if (!all || now === shown) return;
  shown = now;
  ages.length = 0;
  at("panel").replaceChildren(...all.map(article));
  paintAges();
}

function paintAges() {
  for (const { element, seen, arrived } of ages) {
    const age = duration(seen.age_ms + performance.now() - arrived);
    element.textContent = `${seen.known ? seen.method : "remembered, read"} ${age} ago by ${seen.by}${contested(seen)}`;
  }
}

// A reading that cannot be so together with this one.
function contested(seen) {
  const other = seen.contested;
  return other ? `; contested: ${other.by} says ${other.variable} ${other.value}` : "";
}

// How long the part under way has lasted, where that is much longer than usual.
function lasting(doing) {
  const usual = doing?.usual_ms ?? null;
  if (usual === null || doing.since_ms <= 2 * usual + 1000) return "";
  return `, for ${duration(doing.since_ms)} (usually ${duration(usual)})`;
}

function article(view) {
  return make(
    "article",
    {},
    make("h2", {}, view.entity, make("span", { classes: `badge ${view.condition}`, textContent: view.condition })),
    view.frozen && view.frozen !== view.why && make("p", { classes: "why", textContent: view.frozen }),
    view.why && make("p", { classes: "why", textContent: view.why + lasting(view.doing) }),
    ...part("Chain", view.chain.length ? make("ol", {}, ...view.chain.map(link)) : null),
    ...part("Last error", view.error && make("p", { classes: "why" }, make("code", { textContent: view.error }))),
    ...part("State", variables(view)),
    ...part("Attributes", pairs(Object.entries(view.attributes))),
  );
}

function part(heading, content) {
  return content ? [make("h3", { textContent: heading }), content] : [];
}

function link(one) {
  const where = one.where === "self" ? "on the node" : `on the ${one.where}`;
  const expect = one.expect === null ? "" : `, expecting ${one.expect}`;
  return make(
    "li",
    {},
    `${one.does}${expect} `,
    make("small", { textContent: `${one.part} ${where}` }),
    one.disruptive ? make("small", { classes: "disruptive", textContent: " disruptive" }) : null,
  );
}

// Desired and observed side by side, each with where it comes from.
function variables(view) {
  const names = [...new Set([...Object.keys(view.desired), ...Object.keys(view.observed)])];
  return pairs(names.map((name) => [name, ...told(view, name)]));
}

function told(view, name) {
  const seen = view.observed[name];
  const wanted = view.desired[name];
  const lines = [];
  if (seen) {
    const element = make("small");
    ages.push({ element, seen, arrived: view.arrived });
    lines.push(element);
  }
  if (wanted) lines.push(make("small", { textContent: `desired: ${wanted.value}, says ${wanted.owner}` }));
  const value = seen ? seen.value + (seen.known ? "" : "?") : wanted ? "unknown" : "";
  return [value, ...lines];
}

function pairs(rows) {
  if (!rows.length) return null;
  return make("dl", {}, ...rows.flatMap(([name, ...values]) => [make("dt", { textContent: name }), make("dd", {}, ...values)]));
}

// What the parent says of how long it lasts: the longest that is under way, or else since when all rests.
function paintClock() {
  if (!views.size || lost !== null) return paintLost();
  const all = [...views.values()];
  const lasted = (some) => some.map((view) => view.since_ms + performance.now() - view.arrived);
  const acting = lasted(all.filter((view) => view.condition === "acting"));
  const text = acting.length ? `acting for ${duration(Math.max(...acting))}` : `at rest for ${duration(Math.min(...lasted(all)))}`;
  at("elapsed").textContent = text;
}

// Nobody answers: what is shown was so once, and looks like it.
function paintLost() {
  if (lost === null) return;
  const since = new Date(lost).toLocaleTimeString("en-GB");
  document.body.classList.add("stale");
  at("elapsed").textContent = "";
  say(`no answer since ${since} (${duration(Date.now() - lost)}): what is shown is old; trying again`);
}

function duration(ms) {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 60_000) return `${Math.floor(ms / 1000)} s`;
  return ms < 3_600_000 ? `${Math.floor(ms / 60_000)} min` : `${Math.floor(ms / 3_600_000)} h`;
}

function say(text) {
  at("link").textContent = text;
}

// ---- choosing and moving

function choose(name) {
  chosen = name;
  paintSoon();
}

function move(from, key) {
  const sign = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
  const upright = key === "ArrowUp" || key === "ArrowDown";
  const here = from.getBoundingClientRect();
  let best = null;
  for (const cell of cells.values()) {
    const there = cell.getBoundingClientRect();
    const [x, y] = [there.x - here.x, there.y - here.y];
    const [along, aside] = upright ? [y * sign, Math.abs(x)] : [x * sign, Math.abs(y)];
    if (along < 2) continue;
    const distance = along + 3 * aside;
    if (best === null || distance < best.distance) best = { cell, distance };
  }
  if (!best) return;
  from.tabIndex = -1;
  best.cell.tabIndex = 0;
  best.cell.focus();
}

at("racks").addEventListener("click", (event) => {
  if (event.target.dataset.node) choose(event.target.dataset.node);
});
at("racks").addEventListener("focusin", (event) => {
  if (event.target.dataset.node) choose(event.target.dataset.node);
});
at("racks").addEventListener("keydown", (event) => {
  if (!event.key.startsWith("Arrow") || !event.target.dataset.node) return;
  event.preventDefault();
  move(event.target, event.key);
});

// ---- the token comes in the fragment, which browsers never send

function begin() {
  const given = location.hash.slice(1).replace(/^token=/, "");
  if (given) {
    sessionStorage.setItem(TOKEN_KEY, given);
    // It would stay in the history, in bookmarks, and on screens that are shown to others.
    history.replaceState(null, "", location.pathname + location.search);
  }
  const token = given || sessionStorage.getItem(TOKEN_KEY);
  following?.abort();
  if (!token) return say("no token: open the address that haptera printed");
  following = new AbortController();
  follow(token, following.signal);
}

addEventListener("hashchange", begin);
setInterval(paintClock, 100);
setInterval(paintAges, 1000);
begin();
