// The chosen node with all on it: as it should be, as it is, the chain, why, and what happened.

import { ask } from "./api.js";
import { readAs } from "./colours.js";
import { badge, duration, make, pairs, refill } from "./dom.js";
import { natural } from "./fleet.js";
import { told } from "./told.js";

const HISTORY_MAX = 20;
const STANDING_MAX = 12;
const WORST_FIRST = ["stuck", "acting", "waiting"];

export class Panel {
  #ages = []; // what grows older in it
  #shown = "";
  #node = null;

  // `actions` gives the buttons for a node's views, or for one of them: none where the token may not.
  constructor({ element, history, actions }) {
    Object.assign(this, { element, history, actions });
    history.addEventListener("toggle", () => this.#load());
    setInterval(() => this.#paintAges(), 1000);
  }

  // Made anew only where something came, so that what is selected in it stays so.
  update(name, all, rights, fleet) {
    const now = [name, rights, fleet.references, ...all.map((view) => view.arrived)].join();
    if (now === this.#shown) return;
    this.#shown = now;
    if (name !== this.#node) this.#choose(name);
    this.history.hidden = !all.length || name.startsWith("job:");
    this.#ages = [];
    if (!all.length) {
      const what = name
        ? `${name} is not declared, or not for this token to see.`
        : "Choose a node to see what it is, what it should be, and why it is not.";
      return refill(this.element, make("p", { classes: "quiet", textContent: what }));
    }
    const buttons = this.actions.ofNode(name, all);
    refill(this.element, ...buttons, ...worstFirst(all).map((view) => this.#article(view, fleet)));
    this.#paintAges();
  }

  // What happened is asked for when somebody looks.
  #choose(name) {
    this.#node = name;
    this.history.open = false;
    this.history.querySelector("ol").replaceChildren();
  }

  async #load() {
    if (!this.history.open || !this.#node) return;
    const [node, list] = [this.#node, this.history.querySelector("ol")];
    const query = { select: node, limit: HISTORY_MAX };
    list.replaceChildren(make("li", { textContent: "asking" }));
    try {
      const [changed, happened] = await Promise.all([
        ask("GET", "history", { query }),
        ask("GET", "happenings", { query }),
      ]);
      if (node === this.#node) list.replaceChildren(...told(changed.changes, happened.happened, HISTORY_MAX));
    } catch (error) {
      list.replaceChildren(make("li", { textContent: `not known: ${error.message}` }));
    }
  }

  #article(view, fleet) {
    const again = view.again_in_ms === null ? null : `tried again in ${duration(view.again_in_ms)}`;
    return make(
      "article",
      { data: { entity: view.entity }, classes: view.condition },
      make("h2", {}, view.entity, badge(view.condition, view.state)),
      view.why && make("p", { classes: "why", textContent: view.why + lasting(view.doing) }),
      view.frozen && view.frozen !== view.why && make("p", { classes: "frozen", textContent: view.frozen }),
      ...section("What would unblock it", line([view.unblock, again])),
      ...section("Chain", view.chain.length ? chain(view) : null),
      ...section("Last error", view.error && make("p", {}, make("code", { textContent: view.error }))),
      ...section("State", this.#variables(view)),
      ...section("Attributes", pairs(Object.entries(view.attributes))),
      ...section("What stands on it", standing(fleet.standsOn(view.entity))),
      ...this.actions.ofEntity(view),
    );
  }

  // Desired and observed together, each with where it comes from.
  #variables(view) {
    const names = [...new Set([...Object.keys(view.desired), ...Object.keys(view.observed)])];
    return pairs(names.map((name) => [name, ...this.#told(view, name)]));
  }

  #told(view, name) {
    const [seen, wanted, lines] = [view.observed[name], view.desired[name], []];
    if (seen && seen.by !== null) {
      const element = make("small");
      this.#ages.push({ element, seen, arrived: view.arrived });
      lines.push(element);
      if (seen.note) lines.push(make("small", { textContent: seen.note }));
    }
    // Plain data is read back as a whole: whether it is all in force.
    const applied = view.observed.applied?.known && view.observed.applied.value === "current";
    if (wanted && !seen && applied) {
      lines.push(make("small", { textContent: `as desired${wanted.owner === null ? "" : ` by ${wanted.owner}`}` }));
    } else if (wanted) {
      const other = seen && !(seen.known && seen.value === readAs(wanted.value));
      const whose = wanted.owner === null ? "" : `, says ${wanted.owner}`;
      const text = `desired: ${wanted.value}${whose}`;
      lines.push(make("small", { classes: other ? "differs" : "", textContent: text }));
    }
    const value = seen ? seen.value + (seen.known ? "" : "?") : applied ? String(wanted.value) : "unknown";
    return [value, ...lines];
  }

  #paintAges() {
    for (const { element, seen, arrived } of this.#ages) {
      const age = duration(seen.age_ms + performance.now() - arrived);
      const how = seen.known ? seen.method : "remembered, read";
      element.textContent = `${how} ${age} ago by ${seen.by}${contested(seen)}`;
    }
  }
}

// The node itself comes first; of what is on it, what is wrong, and modules last.
function worstFirst([own, ...others]) {
  const bad = (view) => (WORST_FIRST.indexOf(view.condition) + 4) % 4;
  const module = (view) => Number(view.kind === "module");
  others.sort((a, b) => bad(a) - bad(b) || module(a) - module(b) || natural(a.entity, b.entity));
  return [own, ...others];
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

// The first link is what is done now, or what would be next.
function chain(view) {
  const links = view.chain.map((one, number) => {
    const item = make("li", {}, link(one));
    if (number === 0) {
      item.setAttribute("aria-current", "step");
      item.append(make("small", { textContent: view.doing ? "now" : "next" }));
    }
    return item;
  });
  return make("ol", { classes: "steps" }, ...links);
}

function link(one) {
  const where = one.where === "self" ? "on the node" : `on the ${one.where}`;
  const expect = one.expect === null ? "" : `, expecting ${one.expect}`;
  return make(
    "span",
    {},
    `${one.does}${expect} `,
    make("small", { textContent: `${one.part} ${where}` }),
    one.disruptive ? make("small", { classes: "disruptive", textContent: " disruptive" }) : null,
  );
}

function standing(names) {
  if (!names.length) return null;
  const more = names.length - STANDING_MAX;
  const shown = names.slice(0, STANDING_MAX).join(", ");
  return make("p", { textContent: more > 0 ? `${shown}, and ${more} more` : shown });
}

function section(heading, content) {
  return content ? [make("h3", { textContent: heading }), content] : [];
}

function line(texts) {
  const text = texts.filter(Boolean).join("; ");
  return text ? make("p", { textContent: text }) : null;
}
