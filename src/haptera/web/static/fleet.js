// The cluster as the events tell it: each entity's view, and which nodes changed since the last look.

export const natural = new Intl.Collator("en", { numeric: true }).compare;

const REFERRING = ["image", "roll"]; // desired values that name another entity, of the kind so called

let shapes = 0; // of all fleets: no two have the same

export class Fleet {
  cluster = "haptera";
  views = new Map(); // by entity; each with `arrived`, when it came
  nodes = []; // names, in their natural order
  index = new Map(); // of a node in `nodes`
  shape = (shapes += 1); // another number whenever nodes came, went, or have other attributes
  variables = new Set(); // what can be known or desired of a node, or of `service:web.`
  attributes = new Set();
  changed = new Set(); // nodes, since `settle`
  jobs = null; // by their number, those that run; null where nobody looks
  kinds = new Map(); // what is on no node and none itself, by its kind: names of entities
  references = 0; // another number whenever something refers to another entity than before
  #refers = new Map(); // names of entities, by that of what they refer to
  #on = new Map(); // what is on a node, by its name
  #jobsOn = new Map(); // numbers of jobs, by the name of their node
  #reshaped = false;

  take(kind, event) {
    if (kind === "snapshot") this.#clear();
    this.cluster = event.cluster;
    for (const view of event.entities) this.#put({ ...view, arrived: performance.now() });
    for (const entity of event.gone) this.#drop(entity);
  }

  // Puts the nodes in order again where that is needed; returns which changed.
  settle() {
    const changed = this.changed;
    this.changed = new Set();
    if (!this.#reshaped) return changed;
    this.#reshaped = false;
    const names = [...this.#on.keys()].filter((name) => this.views.has(`node:${name}`));
    this.nodes = names.sort(natural);
    this.index = new Map(this.nodes.map((name, number) => [name, number]));
    this.shape = shapes += 1;
    return changed;
  }

  // Takes jobs that run, and the numbers of others that do no more; null: all but these.
  run(jobs, others) {
    if (this.jobs === null || others === null) {
      [this.jobs, this.#jobsOn] = [new Map(), new Map()];
      this.touch();
    }
    for (const key of [...(others ?? []), ...jobs.map((job) => job.id)]) this.#leave(key);
    for (const job of jobs) {
      if (!this.#jobsOn.has(job.holder)) this.#jobsOn.set(job.holder, new Set());
      this.#jobsOn.get(job.holder).add(job.id);
      this.jobs.set(job.id, job);
      this.changed.add(job.holder);
    }
  }

  jobsOn(name) {
    return [...(this.#jobsOn.get(name) ?? [])].map((key) => this.jobs.get(key));
  }

  // All is to be looked at again: another fleet was shown meanwhile.
  touch() {
    for (const name of this.nodes) this.changed.add(name);
  }

  // What is on no node, of one kind.
  of(kind) {
    const names = [...(this.kinds.get(kind) ?? [])];
    return names.sort(natural).map((entity) => this.views.get(entity));
  }

  // Names of what is desired to run, or to be in, this entity.
  standsOn(entity) {
    return [...(this.#refers.get(entity) ?? [])].sort(natural);
  }

  node(name) {
    return this.views.get(`node:${name}`);
  }

  // A node's views: its own, then those of what is on it. What is on no node stands alone.
  all(name) {
    if (name.includes(":")) return this.views.has(name) ? [this.views.get(name)] : [];
    const node = this.node(name);
    if (!node) return [];
    const others = [...(this.#on.get(name) ?? [])].map((entity) => this.views.get(entity));
    return [node, ...others];
  }

  #leave(key) {
    const job = this.jobs.get(key);
    if (!job) return;
    this.jobs.delete(key);
    this.#jobsOn.get(job.holder).delete(key);
    this.changed.add(job.holder);
  }

  #clear() {
    this.views.clear();
    this.#on.clear();
    this.#refers.clear();
    this.kinds.clear();
    this.#reshaped = true;
  }

  #put(view) {
    const before = this.views.get(view.entity);
    this.views.set(view.entity, view);
    this.#refer(before, view);
    const name = view.kind === "node" ? view.name : view.node;
    if (name !== null) this.#place(view, name);
    else this.#list(view);
    const prefix = view.kind === "node" ? "" : `${view.kind}:${view.name}.`;
    for (const one in view.desired) this.variables.add(prefix + one);
    for (const one in view.observed) this.variables.add(prefix + one);
    if (view.kind !== "node") return;
    for (const one in view.attributes) this.attributes.add(one);
    if (!before || !same(before.attributes, view.attributes)) this.#reshaped = true;
  }

  // `before` refers to nothing any more, `view` does.
  #refer(before, view) {
    const [left, found] = [referred(before), referred(view)];
    if (left.join() === found.join()) return;
    this.references += 1;
    for (const one of left) this.#refers.get(one).delete(before.entity);
    for (const one of found) {
      if (!this.#refers.has(one)) this.#refers.set(one, new Set());
      this.#refers.get(one).add(view.entity);
    }
  }

  #place(view, name) {
    if (!this.#on.has(name)) this.#on.set(name, new Set());
    if (view.kind !== "node") this.#on.get(name).add(view.entity);
    this.changed.add(name);
  }

  #list(view) {
    if (!this.kinds.has(view.kind)) this.kinds.set(view.kind, new Set());
    this.kinds.get(view.kind).add(view.entity);
    this.changed.add(view.name); // of no node: what is told of the cluster is told anew
  }

  #drop(entity) {
    const view = this.views.get(entity);
    if (!view) return;
    this.views.delete(entity);
    this.#refer(view, undefined);
    if (view.kind === "node") this.#reshaped = true;
    else if (view.node !== null) this.#on.get(view.node)?.delete(entity);
    else this.kinds.get(view.kind)?.delete(entity);
    this.changed.add(view.node ?? view.name);
  }
}

// A replica is called by its group and its rank in it.
function referred(view) {
  if (view?.kind === "replica") return [`group:${view.name.replace(/\.\d+$/, "")}`];
  return REFERRING.filter((one) => view?.desired[one]).map((one) => `${one}:${view.desired[one].value}`);
}

function same(one, other) {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((n) => one[n] === other[n]);
}
