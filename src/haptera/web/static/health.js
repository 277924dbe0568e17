// How haptera itself is: its parents, and the figures that it tells Prometheus with what they mean.

import { ask, credentials } from "./api.js";
import { make, refill } from "./dom.js";
import { parentsTable } from "./parents.js";
import { table } from "./table.js";

const EVERY_MS = 5000;
const LINE = /^(\w+)(?:\{(.*)\})? (\S+)$/;
// Figures that tell whom they are about, or of each route: not what a person looks for first.
const LEFT_OUT = [
  ...["haptera_entities", "haptera_api_request_duration_seconds"],
  ...["process_start_time_seconds", "process_virtual_memory_bytes", "process_max_fds"],
];
// What a person looks for first; of the process itself last.
const FIRST = ["children", "standby_lag_commits", "store_disk_free_bytes", "turn_duration_seconds", "brake_engaged"];
const MIB = 2 ** 20;

export class Health {
  #timer = null;
  #shown = false;

  constructor(element) {
    this.element = element;
  }

  // Asked for only while somebody looks.
  update(shown) {
    if (shown === this.#shown) return;
    this.#shown = shown;
    clearTimeout(this.#timer);
    if (shown) this.#load();
  }

  async #load() {
    try {
      const [tree, answer] = await Promise.all([
        ask("GET", "parents"),
        fetch("metrics", { headers: credentials(), cache: "no-store" }),
      ]);
      if (!answer.ok) throw new Error((await answer.json()).what);
      const rows = figures(await answer.text()).sort((one, other) => rank(one) - rank(other)).map(row);
      refill(this.element, ...parentsTable(tree), table("figures", ["figure", "of", "value", "what it says"], rows));
    } catch (error) {
      refill(this.element, make("p", { classes: "wrong", textContent: `not known: ${error.message}` }));
    }
    if (this.#shown) this.#timer = setTimeout(() => this.#load(), EVERY_MS);
  }
}

// Prometheus' text format: of a histogram how many there were and what they took on average.
function figures(text) {
  const helps = new Map();
  const found = new Map();
  for (const line of text.split("\n")) {
    const help = /^# HELP (\w+) (.*)$/.exec(line);
    if (help) helps.set(help[1], help[2]);
    const [, name, labels = "", value] = LINE.exec(line) ?? [];
    if (name === undefined || name.endsWith("_bucket")) continue;
    found.set(`${name}{${labels}}`, { name, labels, value: Number(value) });
  }
  return [...found.values()].flatMap((one) => {
    if (one.name.endsWith("_count")) return [];
    const base = one.name.replace(/_sum$/, "");
    if (LEFT_OUT.includes(base)) return [];
    const count = base === one.name ? null : found.get(`${base}_count{${one.labels}}`)?.value;
    const help = helps.get(base) ?? helps.get(base.replace(/_total$/, "")) ?? "";
    return [{ ...one, name: base, help, count, value: count ? one.value / count : one.value }];
  });
}

function rank({ name }) {
  const place = FIRST.indexOf(name.replace(/^haptera_/, ""));
  return place >= 0 ? place : name.startsWith("process_") ? FIRST.length + 1 : FIRST.length;
}

function amount(value, unit) {
  if (unit === "bytes" && value >= 1024 * MIB) return `${(value / 1024 / MIB).toFixed(1)} GiB`;
  if (unit === "bytes" && value >= MIB) return `${Math.round(value / MIB)} MiB`;
  if (unit === "seconds" && value < 1) return `${(1000 * value).toPrecision(2)} ms`;
  const plain = Number.isInteger(value) ? value.toLocaleString("en") : value.toPrecision(3);
  return unit === null ? plain : `${plain} ${unit === "seconds" ? "s" : unit}`;
}

function row({ name, labels, value, help, count }) {
  const words = name.replace(/^haptera_/, "").replace(/_total$/, "");
  const shown = amount(value, /_(seconds|bytes)$/.exec(words)?.[1] ?? null);
  const each = count === null ? "" : ` on average, of ${count.toLocaleString("en")}`;
  return make(
    "tr",
    {},
    make("th", { scope: "row", textContent: words.replace(/_(seconds|bytes)$/, "").replaceAll("_", " ") }),
    make("td", { textContent: labels.replaceAll('"', "").replaceAll(",", ", ") }),
    make("td", { textContent: `${shown}${each}` }),
    make("td", { classes: "quiet", textContent: help }),
  );
}
