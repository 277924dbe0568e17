// The graph of an entity's class: all that can be known of it, where it stands, and the chain.

import { ask } from "./api.js";
import { make, refill } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDE, LINE, GAP_X, GAP_Y, EDGE] = [132, 14, 56, 22, 12];
const STATES_MAX = 40; // more cannot be read; `haptera graph` draws them in parts

export class Graph {
  #views = [];
  #shown = null; // of which entity, as of when

  // `details` holds a select of entities, and a place for the picture.
  constructor(details) {
    this.details = details;
    [this.select, this.place] = [details.querySelector("select"), details.querySelector("div")];
    details.addEventListener("toggle", () => this.#begin());
    this.select.addEventListener("change", () => this.#begin());
  }

  // What is chosen has these views.
  offer(views) {
    this.#views = views;
    this.details.hidden = !views.length;
    const told = views.map((view) => view.entity).join();
    if (told !== this.select.dataset.told) {
      this.select.dataset.told = told;
      this.select.replaceChildren(...views.map(({ entity }) => new Option(entity, entity)));
    }
    this.#begin();
  }

  // Asked for again whenever the entity is another, or stands elsewhere.
  async #begin() {
    const view = this.details.open ? this.#views.find((one) => one.entity === this.select.value) : null;
    const shown = view ? `${view.entity} ${view.arrived}` : null;
    if (shown === this.#shown) return;
    this.#shown = shown;
    if (!view) return;
    let content;
    try {
      const told = await ask("GET", `entities/${encodeURIComponent(view.entity)}/graph`);
      content = [...told.graphs.flatMap(drawn), ...nothing(told)];
    } catch (error) {
      content = [make("p", { classes: "wrong", textContent: error.message })];
    }
    if (shown === this.#shown) refill(this.place, ...content);
  }
}

const nothing = ({ graphs }) =>
  graphs.length ? [] : [make("p", { classes: "quiet", textContent: "no module says what can be known of it" })];

function drawn(graph) {
  const now = graph.path[0] ?? null;
  const here = graph.edges.filter((one) => one.from === now);
  const ways = here.map((one) => make("li", { textContent: wayOf(one, graph) }));
  const list = ways.length ? [make("h3", { textContent: "From here" }), make("ul", {}, ...ways)] : [];
  if (graph.states.length > STATES_MAX) {
    const text = `${graph.states.length} states: haptera graph -o svg draws them`;
    return [make("p", { classes: "quiet", textContent: text }), ...list];
  }
  return [picture(graph, now), ...list];
}

function wayOf({ part, expect, to, cost, disruptive }, { states }) {
  const found = expect === null ? "" : `, finds ${expect}`;
  return `${part}${found} \u2192 ${nameOf(states[to]).join(", ")} (cost ${cost}${disruptive ? ", disruptive" : ""})`;
}

function nameOf(state) {
  const known = Object.entries(state).map(([name, value]) => `${name}=${value}`);
  return known.length ? known : ["nothing known"];
}

function picture(graph, now) {
  const boxes = placed(graph, now);
  const [right, below] = [Math.max(...boxes.map((one) => one.x)), Math.max(...boxes.map((one) => one.y + one.high))];
  const size = { width: right + WIDE + EDGE, height: below + EDGE };
  const name = now === null ? "its states" : `${graph.states.length} states; it is at ${nameOf(graph.states[now]).join(", ")}`;
  const drawing = shape("svg", { ...size, role: "img", "aria-label": name });
  for (const arrow of arrows(graph)) drawing.append(...drawArrow(arrow, boxes));
  boxes.forEach((box, number) => drawing.append(...drawBox(box, graph, number, now)));
  return make("div", { classes: "drawing", tabIndex: 0 }, drawing);
}

// Columns by how many arrows lie between a state and the present one, whichever way they lead.
function placed({ states, edges }, now) {
  const column = new Array(states.length).fill(null);
  let [some, depth] = [[now ?? 0], 0];
  while (some.length) {
    for (const one of some) column[one] = depth;
    const beside = edges.flatMap(({ from, to }) => (some.includes(from) ? [to] : some.includes(to) ? [from] : []));
    some = [...new Set(beside)].filter((one) => column[one] === null);
    depth += 1;
  }
  const tops = [];
  return states.map((state, number) => {
    const at = column[number] ?? depth;
    const [lines, y] = [nameOf(state), tops[at] ?? EDGE];
    const high = lines.length * LINE + 10;
    tops[at] = y + high + GAP_Y;
    return { column: at, x: EDGE + at * (WIDE + GAP_X), y, high, lines };
  });
}

// One for each two states; of several parts that lead there the names are one title.
function arrows({ edges }) {
  const found = new Map();
  for (const { from, to, part, expect, links, disruptive } of edges) {
    if (from === to) continue;
    const key = `${from} ${to}`;
    if (!found.has(key)) found.set(key, { from, to, names: [], links: [], disruptive: true });
    const one = found.get(key);
    one.names.push(expect === null ? part : `${part} finds ${expect}`);
    one.links.push(...links);
    one.disruptive &&= disruptive;
  }
  return [...found.values()].sort((a, b) => a.links.length - b.links.length); // the chain on top
}

function drawArrow({ from, to, names, links, disruptive }, boxes) {
  const [a, b] = [boxes[from], boxes[to]];
  const back = b.column < a.column;
  const [x1, x2] = b.column === a.column ? [a.x + WIDE, b.x + WIDE] : back ? [a.x, b.x + WIDE] : [a.x + WIDE, b.x];
  const shift = back ? 5 : -5; // there and back are two lines
  const [y1, y2] = [a.y + a.high / 2 + shift, b.y + b.high / 2 + shift];
  const [c1, c2] = b.column === a.column ? [x1 + GAP_X / 2, x2 + GAP_X / 2] : [(x1 + x2) / 2, (x1 + x2) / 2];
  const classes = `arrow${links.length ? " link" : ""}${disruptive ? " disruptive" : ""}`;
  const line = shape("path", { class: classes, d: `M${x1} ${y1}C${c1} ${y1} ${c2} ${y2} ${x2} ${y2}` });
  const lead = x2 > c2 ? -6 : 6;
  const tip = shape("path", { class: `${classes} tip`, d: `M${x2} ${y2}l${lead} -3v6z` });
  line.append(shape("title", {}, names.join("; ")));
  const number = { class: "number", x: (x1 + x2 + c1 + c2) / 4, y: (y1 + y2) / 2 - 3 };
  return links.length ? [line, tip, shape("text", number, links.join(", "))] : [line, tip];
}

function drawBox({ x, y, high, lines }, { goal }, number, now) {
  const classes = ["state", number === now && "now", goal.includes(number) && "goal"].filter(Boolean).join(" ");
  const box = shape("rect", { class: classes, x, y, width: WIDE, height: high, rx: 5 });
  const texts = lines.map((text, place) => shape("text", { x: x + 8, y: y + 16 + place * LINE }, text));
  return [box, ...texts];
}

function shape(tag, attributes, ...children) {
  const one = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  one.append(...children);
  return one;
}
