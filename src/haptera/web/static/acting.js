// What a token may do here: freeze, thaw, retry; each says whom it affects before it is done.

import { ask } from "./api.js";
import { make } from "./dom.js";

const NAMED_MAX = 12;
const SPANS = [
  ["", "until it is thawed"],
  ["3600", "for an hour"],
  ["28800", "for eight hours"],
  ["86400", "for a day"],
];

const DEEDS = {
  freeze: { says: "Freeze", then: "No step begins on these until they are thawed:", reason: "needed" },
  thaw: { says: "Thaw", then: "Steps may begin again on these, at once:", reason: "welcome" },
  retry: { says: "Retry", then: "What failed is tried again now:", reason: "welcome" },
};

export class Actions {
  rights = { scope: null, within: null };
  past = false; // what was is not acted on

  constructor(dialog, done) {
    this.dialog = dialog;
    this.done = done;
    dialog.addEventListener("submit", (event) => event.preventDefault());
  }

  get mayWrite() {
    return !this.past && ["write", "admin"].includes(this.rights.scope);
  }

  // Freezes are about the cluster: a token that is limited to some entities may not.
  ofNode(name, all) {
    if (!this.mayWrite || this.rights.within !== null) return [];
    const frozen = all.filter((view) => view.frozen);
    const free = all.filter((view) => !view.frozen);
    const buttons = [];
    if (free.length) buttons.push(this.#button("freeze", name, free));
    if (frozen.length) buttons.push(this.#button("thaw", name, frozen));
    return [make("p", { classes: "actions" }, ...buttons)];
  }

  ofEntity(view) {
    if (!this.mayWrite || view.condition !== "stuck") return [];
    return [make("p", { classes: "actions" }, this.#button("retry", view.entity, [view]))];
  }

  #button(deed, target, affected) {
    // Whose freeze is thawed is said: it may be another's.
    const whose = (view) => (deed === "thaw" ? `: ${view.frozen}` : "");
    const names = affected.map((view) => view.entity + whose(view));
    return make("button", {
      type: "button",
      data: { key: `${deed} ${target}`, deed },
      textContent: deed === "retry" ? "Retry now" : `${DEEDS[deed].says} ${target}`,
      onclick: () => this.#confirm(deed, target, names),
    });
  }

  #confirm(deed, target, names) {
    const { says, then, reason } = DEEDS[deed];
    const needed = reason === "needed";
    const why = make("input", { id: "why", required: needed, maxLength: 500, autocomplete: "off" });
    const span = make("select", { id: "span" }, ...SPANS.map(([value, text]) => new Option(text, value)));
    const wrong = make("p", { classes: "wrong", role: "alert" });
    const go = make("button", { type: "submit", classes: "go", textContent: says });
    const more = names.length - NAMED_MAX;
    const form = make(
      "form",
      { onsubmit: () => this.#act(deed, target, why.value.trim(), span.value, go, wrong) },
      make("h2", { id: "deed", textContent: `${says} ${target}?` }),
      make("p", { textContent: then }),
      make("ul", {}, ...names.slice(0, NAMED_MAX).map((name) => make("li", { textContent: name }))),
      more > 0 ? make("p", { textContent: `and ${more} more` }) : null,
      make("label", {}, needed ? "Why (for whoever finds it)" : "Why (optional)", why),
      deed === "freeze" ? make("label", {}, "How long", span) : null,
      wrong,
      make(
        "p",
        { classes: "actions" },
        go,
        make("button", { type: "button", textContent: "Cancel", onclick: () => this.dialog.close() }),
      ),
    );
    this.dialog.replaceChildren(form);
    this.dialog.showModal();
    why.focus();
  }

  async #act(deed, target, why, span, go, wrong) {
    go.disabled = true;
    try {
      await send(deed, target, why, span);
      this.dialog.close();
      this.done(`${DEEDS[deed].says}: ${target}, done`);
    } catch (error) {
      wrong.textContent = error.message;
      go.disabled = false;
    }
  }
}

function send(deed, target, why, span) {
  const query = why ? { why } : {};
  if (deed === "retry") return ask("POST", `entities/${encodeURIComponent(target)}/retry`, { query });
  if (deed === "thaw") return ask("DELETE", "freezes", { query: { ...query, selector: target } });
  const body = { selector: target, reason: why };
  if (span) body.for_s = Number(span);
  return ask("POST", "freezes", { body });
}
