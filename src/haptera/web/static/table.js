// What is on no node as a table, one kind at a time: groups, rolls, pools, images, modules, rules.

import { badge, make, refill, short } from "./dom.js";
import { bar, progressOf } from "./rolls.js";

const ROWS_MAX = 500;

export class EntityTable {
  #shown = "";

  constructor(element, choose) {
    this.element = element;
    element.addEventListener("click", (event) => {
      const key = event.target.closest("button")?.dataset.key;
      if (key !== undefined) choose(key);
    });
  }

  update(kind, fleet, chosen) {
    const views = fleet.of(kind);
    const shown = views.slice(0, ROWS_MAX);
    const far = new Map(kind === "roll" ? shown.map((view) => [view, progressOf(view, fleet.views.values())]) : []);
    const told = [kind, chosen, views.length, ...shown.map((view) => `${view.entity} ${view.arrived} ${far.get(view)?.text}`)].join();
    if (told === this.#shown) return;
    this.#shown = told;
    const names = [...new Set(views.flatMap((view) => [...Object.keys(view.observed), ...Object.keys(view.desired)]))];
    const rows = shown.map((view) => row(view, names, view.entity === chosen, far.get(view)));
    const more = views.length - rows.length;
    const heading = more > 0 ? `${kind}: ${views.length}, of which the first ${ROWS_MAX}` : `${kind}: ${views.length}`;
    refill(this.element, table(heading, ["name", "", ...(far.size ? ["progress"] : []), ...names, "why"], rows));
  }
}

export function table(caption, headings, rows) {
  const cells = headings.map((one) => make("th", { scope: "col", textContent: one }));
  return make(
    "table",
    {},
    make("caption", { textContent: caption }),
    make("thead", {}, make("tr", {}, ...cells)),
    make("tbody", {}, ...rows),
  );
}

function row(view, names, chosen, far) {
  const aria = { pressed: String(chosen) };
  const name = make("button", { type: "button", data: { key: view.entity }, aria, textContent: view.name });
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, name),
    make("td", {}, badge(view.condition)),
    far ? make("td", {}, bar(far)) : null,
    ...names.map((one) => value(view.observed[one], view.desired[one])),
    make("td", { classes: "why", textContent: [view.why, view.frozen].filter(Boolean).join("; ") }),
  );
}

// As it is; and as it should be, where that is something else.
function value(seen, wanted) {
  const now = seen ? seen.value + (seen.known ? "" : "?") : "";
  const other = wanted !== undefined && now !== String(wanted.value);
  const text = other ? [now, String(wanted.value)].filter(Boolean).join(" \u2192 ") : now;
  const cell = make("td", { textContent: short(text), classes: other && now ? "differs" : "" });
  if (cell.textContent !== text) cell.title = text;
  return cell;
}
