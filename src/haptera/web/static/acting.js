// What a token may do here; each deed says whom it affects, and asks, before it is done.

import { ask } from "./api.js";
import { make } from "./dom.js";
import { rollForm } from "./rolling.js";
import { settingForm } from "./setting.js";

const NAMED_MAX = 12;
const FREEZE_SPANS = [
  ["", "until it is thawed"],
  ["3600", "for an hour"],
  ["28800", "for eight hours"],
  ["86400", "for a day"],
];
const DRAIN_SPANS = [
  ["", "for as long as its jobs take"],
  ["600", "then stop its jobs after ten minutes"],
  ["3600", "then stop its jobs after an hour"],
  ["28800", "then stop its jobs after eight hours"],
];

const path = (entity) => `entities/${encodeURIComponent(entity)}`;
const because = (why) => (why ? { why } : {});

const wish = (entity, body, why) =>
  ask("PATCH", `${path(entity)}/desired`, { query: { take: 1, ...because(why) }, body });

// `reason`: whether there has to be one; `spans`: how long it may be for; `send` does it.
const DEEDS = {
  freeze: {
    says: "Freeze",
    then: "No step begins on these until they are thawed:",
    reason: true,
    spans: FREEZE_SPANS,
    send: (selector, why, for_s) =>
      ask("POST", "freezes", { body: { selector, reason: why, ...(for_s && { for_s: Number(for_s) }) } }),
  },
  thaw: {
    says: "Thaw",
    then: "Steps may begin again on these, at once:",
    send: (selector, why) => ask("DELETE", "freezes", { query: { ...because(why), selector } }),
  },
  retry: {
    says: "Retry",
    then: "What failed is tried again now:",
    send: (entity, why) => ask("POST", `${path(entity)}/retry`, { query: because(why) }),
  },
  drain: {
    says: "Drain",
    then: "It takes no new jobs until it is let. Jobs that run there now:",
    reason: true,
    spans: DRAIN_SPANS,
    send: (node, why, within_s) => {
      const until = within_s ? Math.floor(Date.now() / 1000) + Number(within_s) : null;
      return wish(`node:${node}`, { work: "draining", work_why: why, work_until: until }, why);
    },
  },
  resume: {
    says: "Resume",
    then: "It takes jobs again. Jobs that run there now run on:",
    send: (node, why) => wish(`node:${node}`, { work: null, work_why: null, work_until: null }, why),
  },
  cancel: {
    says: "Cancel",
    then: "Its processes are ended, and it does not run again:",
    send: (job, why) => ask("DELETE", `jobs/${job.replace("job:", "")}`, { query: because(why) }),
  },
  pause: {
    says: "Pause",
    then: "It takes no more systems until it goes on; what is under way is finished:",
    send: (roll, why) => wish(roll, { wish: "pause" }, why),
  },
  goOn: {
    says: "Go on with",
    then: "It takes further systems, within its budget:",
    send: (roll, why) => wish(roll, { wish: "run" }, why),
  },
  abort: {
    says: "Abort",
    then: "It takes no more systems; those that have not proven the image go back:",
    send: (roll, why) => wish(roll, { wish: "abort" }, why),
  },
  undo: {
    says: "Undo",
    then: "All its systems go back to the image that each had before, within its budget:",
    send: (roll, why) => wish(roll, { wish: "undo" }, why),
  },
  apply: {
    says: "Apply",
    then: "Just this is written, and refused if what it depends on has changed. It:",
    send: async (saved, why) => {
      await saved.send({ digest: saved.digest, ...because(why) });
      saved.applied();
    },
  },
  release: {
    says: "Release the brake",
    then: "What stands still for it goes on at once:",
    send: (_brake, why) => ask("DELETE", "brake", { query: because(why) }),
  },
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
    return !this.past && ["write", "exec", "admin"].includes(this.rights.scope);
  }

  // What is about more than some entities: a token that is limited to some may not.
  get mayAll() {
    return this.mayWrite && this.rights.within === null;
  }

  ofNode(name, all) {
    if (!this.mayWrite || name.startsWith("job:")) return [];
    const frozen = all.filter((view) => view.frozen);
    const free = all.filter((view) => !view.frozen);
    const buttons = [];
    if (free.length) buttons.push(this.#button("freeze", name, free.map(nameOf)));
    // Whose freeze is thawed is said: it may be another's.
    if (frozen.length) buttons.push(this.#button("thaw", name, frozen.map(nameAndFreeze)));
    return buttonLine(buttons);
  }

  ofEntity(view) {
    if (!this.mayWrite) return [];
    if (view.kind === "job") {
      const mine = this.rights.scope === "admin" || view.attributes.owner === `user:${this.rights.name}`;
      if (!mine || !["waiting", "acting"].includes(view.condition)) return [];
      return buttonLine([this.#button("cancel", view.entity, [view.attributes.name])]);
    }
    const buttons = [...this.#ofPower(view), this.#setting(view), ...this.#ofRoll(view), ...this.#ofImage(view)];
    if (view.condition === "stuck") buttons.push(this.#button("retry", view.entity, [view.entity], "Retry now"));
    return buttonLine(buttons);
  }

  // What it would disrupt is told of the whole cluster: a token that is limited may not begin one.
  #ofImage({ kind, name, entity, observed }) {
    if (kind !== "image" || !this.mayAll || observed.state?.value !== "built") return [];
    const open = () => {
      this.dialog.replaceChildren(rollForm(name, { close: () => this.dialog.close(), done: this.done }));
      this.dialog.showModal();
    };
    const data = { key: `roll ${entity}`, deed: "roll" };
    return [make("button", { type: "button", data, textContent: "Roll out", onclick: open })];
  }

  // One that halted or was aborted is gone on with by `haptera roll resume`, which tries its systems once more.
  #ofRoll({ kind, entity, desired }) {
    if (kind !== "roll" || desired.finished || desired.wish?.value === "undo") return [];
    const over = desired.halted || desired.wish?.value === "abort";
    const deeds = over ? ["undo"] : [desired.wish?.value === "pause" ? "goOn" : "pause", "abort", "undo"];
    const told = [`to ${desired.image?.value}`, `as ${desired.wish?.owner} says: that will be yours`];
    return deeds.map((deed) => this.#button(deed, entity, told));
  }

  // Who takes jobs: drained, or let take them again.
  ofHolder(one) {
    if (!this.mayAll || one.backend !== null) return [];
    const deed = one.reason === null ? "drain" : "resume";
    const jobs = one.jobs.map((job) => `job:${job}`);
    return [this.#button(deed, one.name, jobs.length ? jobs : ["none"], DEEDS[deed].says)];
  }

  // A saved plan, and the words for whom it disrupts.
  ofPlan(saved, disrupts) {
    return this.mayAll ? buttonLine([this.#button("apply", saved, [disrupts])]) : [];
  }

  ofBrake(why) {
    return this.mayAll ? [this.#button("release", "the brake", [why], DEEDS.release.says)] : [];
  }

  #button(deed, target, names, text = `${DEEDS[deed].says} ${target}`) {
    return make("button", {
      type: "button",
      data: { key: `${deed} ${target}`, deed },
      textContent: text,
      onclick: () => this.#confirm(deed, target, names),
    });
  }

  // The other of on and off; of a node whose power nobody knows or wants there is none.
  #ofPower(view) {
    const power = view.desired.power?.value ?? view.observed.power?.value;
    if (view.kind !== "node" || power === undefined) return [];
    const value = power === "on" ? "off" : "on";
    return [this.#setting(view, `Switch ${value}`, { name: "power", value })];
  }

  // What it would start is told of the whole cluster: a token that is limited is not shown it.
  #setting(view, text = "Set a value", wish = null) {
    const close = () => this.dialog.close();
    const open = () => {
      this.dialog.replaceChildren(settingForm(view, this.mayAll, { close, done: this.done, wish }));
      this.dialog.showModal();
    };
    const deed = wish?.name ?? "set";
    const data = { key: `${deed} ${view.entity}`, deed };
    return make("button", { type: "button", data, textContent: text, onclick: open });
  }

  #confirm(deed, target, names) {
    const { says, then, reason = false, spans = [] } = DEEDS[deed];
    const why = make("input", { id: "why", required: reason, maxLength: 500, autocomplete: "off" });
    const span = make("select", { id: "span" }, ...spans.map(([value, text]) => new Option(text, value)));
    const wrong = make("p", { classes: "wrong", role: "alert" });
    const go = make("button", { type: "submit", classes: "go", textContent: says });
    const more = names.length - NAMED_MAX;
    const form = make(
      "form",
      { onsubmit: () => this.#act(deed, target, why.value.trim(), span.value, go, wrong) },
      make("h2", { id: "deed", textContent: says.includes(target) ? `${says}?` : `${says} ${target}?` }),
      make("p", { textContent: then }),
      make("ul", {}, ...names.slice(0, NAMED_MAX).map((name) => make("li", { textContent: name }))),
      more > 0 ? make("p", { textContent: `and ${more} more` }) : null,
      make("label", {}, reason ? "Why (for whoever finds it)" : "Why (optional)", why),
      spans.length ? make("label", {}, "How long", span) : null,
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
      await DEEDS[deed].send(target, why, span);
      this.dialog.close();
      this.done(`${DEEDS[deed].says}: ${target}, done`);
    } catch (error) {
      wrong.textContent = error.message;
      go.disabled = false;
    }
  }
}

const nameOf = (view) => view.entity;
const nameAndFreeze = (view) => `${view.entity}: ${view.frozen}`;
const buttonLine = (buttons) => (buttons.length ? [make("p", { classes: "actions" }, ...buttons)] : []);
