// What asks for attention, worst first: entities that stand alike for one reason are one line.

import { badge, make, refill } from "./dom.js";

const ORDER = ["stuck", "waiting", "acting"];
const SHOWN_MAX = 40;
const JOINS = /[\p{L}\p{N}_-]/u;

export function causesOf(fleet) {
  const found = new Map();
  for (const view of fleet.views.values()) {
    if (!ORDER.includes(view.condition)) continue;
    const why = causeOf(view.why ?? view.condition, view.node ?? view.name);
    const what = view.kind === "node" ? "node" : `${view.kind} ${view.name}`;
    const key = [view.condition, what, why, view.frozen ?? ""].join("\n");
    if (!found.has(key)) {
      const { condition, frozen, node, kind } = view;
      const placed = kind === "node" || node !== null;
      found.set(key, { key, condition, what, why, frozen, placed, on: [] });
    }
    found.get(key).on.push(view.node ?? view.name);
  }
  return [...found.values()].sort(
    (a, b) => ORDER.indexOf(a.condition) - ORDER.indexOf(b.condition) || b.on.length - a.on.length,
  );
}

// Told of `the node` where it names the entity's own: as `haptera status` groups them.
export function causeOf(why, node) {
  const told = [];
  let begin = 0;
  for (let at = why.indexOf(node); at >= 0; at = why.indexOf(node, begin)) {
    const end = at + node.length;
    const joined = JOINS.test(why[at - 1] ?? " ") || JOINS.test(why[end] ?? " ");
    told.push(why.slice(begin, at), joined ? node : "the node");
    begin = end;
  }
  return told.join("") + why.slice(begin);
}

// "12 nodes", "n1", "service web on 3 nodes", "module ipmi".
export function whoIs({ what, on, placed }) {
  if (!placed) return what;
  const nodes = on.length === 1 ? on[0] : `${on.length} nodes`;
  return what === "node" ? nodes : `${what} on ${nodes}`;
}

export class CauseList {
  #shown = null;

  constructor(element, pick) {
    this.element = element;
    element.addEventListener("click", (event) => {
      const key = event.target.closest("button")?.dataset.key;
      if (key !== undefined) pick(key);
    });
  }

  update(causes, picked) {
    const told = causes.map((one) => `${one.key}\n${one.on.length}`).join("\n") + `\n${picked}`;
    if (told === this.#shown) return;
    this.#shown = told;
    const rows = causes.slice(0, SHOWN_MAX).map((one) => make("li", {}, button(one, picked)));
    const more = causes.length - rows.length;
    if (more > 0) rows.push(make("li", { classes: "quiet", textContent: `and ${more} more causes` }));
    if (!rows.length) rows.push(make("li", { classes: "quiet", textContent: "nothing" }));
    refill(this.element, ...rows);
  }
}

function button(cause, picked) {
  const aria = { pressed: String(cause.key === picked) };
  return make(
    "button",
    { type: "button", classes: "cause", data: { key: cause.key }, aria },
    badge(cause.condition),
    make("strong", { textContent: ` ${whoIs(cause)}: ` }),
    cause.why,
    cause.frozen && cause.frozen !== cause.why && make("small", { textContent: ` ${cause.frozen}` }),
  );
}
