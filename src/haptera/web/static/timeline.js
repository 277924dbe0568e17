// Time: when things happened in the last hours, and a slider back to how the cluster was.

import { ask } from "./api.js";
import { make, refill, write } from "./dom.js";
import { failed, spokenTime, told } from "./told.js";

const ASKED_MAX = 2000; // of changes, and of happenings
const AGAIN_MS = 15_000;
const BARS = 120;
const LISTED_MAX = 40;
const [HEIGHT, TICKS] = [44, 4];
const TICK_HEIGHT = 14;

export class Timeline {
  #changes = [];
  #happened = [];
  #to_s = 0; // the right end
  #asking = null;
  at_s = null; // what is looked at; null for now

  // `went` is told the time that is looked at, in whole seconds since 1970, null for now.
  constructor(element, went) {
    this.element = element;
    this.went = went;
    const find = (selector) => element.querySelector(selector);
    [this.canvas, this.slider, this.span] = [find("canvas"), find("[type=range]"), find("select")];
    [this.label, this.list, this.now] = [find("output"), find("ol"), find("button")];
    this.slider.max = String(BARS);
    this.slider.addEventListener("input", () => went(this.#timeOf(Number(this.slider.value))));
    this.span.addEventListener("change", () => this.#load());
    this.now.addEventListener("click", () => went(null));
    element.addEventListener("toggle", () => this.#load());
    addEventListener("resize", () => this.#draw());
  }

  // Shows which time is looked at.
  show(at_s) {
    this.at_s = at_s;
    if (at_s !== null) this.element.open = true;
    const position = at_s === null ? BARS : Math.round((at_s - this.#from_s) / this.#bar_s);
    this.slider.value = String(Math.min(BARS, Math.max(0, position)));
    const text = at_s === null ? "now" : `as it was at ${spokenTime(at_s)}`;
    this.slider.setAttribute("aria-valuetext", text);
    write(this.label, text);
    this.now.hidden = at_s === null;
    this.#tell();
    this.#draw();
  }

  get #bar_s() {
    return Number(this.span.value) / BARS;
  }

  get #from_s() {
    return this.#to_s - Number(this.span.value);
  }

  #timeOf(position) {
    return position >= BARS ? null : Math.round(this.#from_s + position * this.#bar_s);
  }

  // What happened is asked for while somebody looks.
  async #load() {
    clearTimeout(this.#asking);
    if (!this.element.open) return;
    const query = { limit: ASKED_MAX };
    try {
      const [changed, happened] = await Promise.all([
        ask("GET", "history", { query }),
        ask("GET", "happenings", { query }),
      ]);
      [this.#changes, this.#happened] = [changed.changes, happened.happened];
      if (this.at_s === null || !this.#to_s) this.#to_s = Date.now() / 1000;
      this.show(this.at_s);
    } catch (error) {
      write(this.label, `not known: ${error.message}`);
    }
    this.#asking = setTimeout(() => this.#load(), AGAIN_MS);
  }

  // Of the bar before the time that is looked at, or the last of all.
  #tell() {
    const until = this.at_s ?? Infinity;
    const from = this.at_s === null ? -Infinity : this.at_s - this.#bar_s;
    const within = (one) => one.at_s > from && one.at_s <= until;
    const rows = told(this.#changes.filter(within), this.#happened.filter(within), LISTED_MAX);
    refill(this.list, ...rows);
  }

  #draw() {
    const width = this.canvas.parentElement.clientWidth;
    if (!this.element.open || !width) return;
    const [ratio, style] = [devicePixelRatio || 1, getComputedStyle(document.documentElement)];
    Object.assign(this.canvas, { width: width * ratio, height: (HEIGHT + TICK_HEIGHT) * ratio });
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${HEIGHT + TICK_HEIGHT}px` });
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const [bars, wide] = [this.#bars(), width / BARS];
    const most = Math.max(1, ...bars.map((bar) => bar.reduce((sum, one) => sum + one, 0)));
    bars.forEach((bar, number) => {
      let top = HEIGHT;
      COLOURS.forEach((name, sort) => {
        // A single failure among thousands is seen all the same.
        const high = bar[sort] && Math.max(2, (bar[sort] / most) * (HEIGHT - 4));
        top -= high;
        pen.fillStyle = style.getPropertyValue(name);
        pen.fillRect(number * wide, top, Math.max(1, wide - 1), high);
      });
    });
    this.#ticks(pen, width, style.getPropertyValue("--quiet"));
    if (this.at_s === null) return;
    pen.fillStyle = style.getPropertyValue("--ink");
    pen.fillRect(((this.at_s - this.#from_s) / this.#bar_s) * wide - 1, 0, 2, HEIGHT);
  }

  // When its parts begin.
  #ticks(pen, width, colour) {
    [pen.fillStyle, pen.font] = [colour, "11px system-ui, sans-serif"];
    for (let tick = 0; tick < TICKS; tick += 1) {
      const text = spokenTime(this.#from_s + (tick * Number(this.span.value)) / TICKS).slice(0, -3);
      pen.fillText(text, (tick * width) / TICKS, HEIGHT + TICK_HEIGHT - 2);
    }
  }

  // How many failed, were done or seen, and were asked for, in each bar.
  #bars() {
    const bars = Array.from({ length: BARS }, () => [0, 0, 0]);
    const count = (at_s, sort) => {
      const number = Math.floor((at_s - this.#from_s) / this.#bar_s);
      if (number >= 0 && number < BARS) bars[number][sort] += 1;
    };
    for (const one of this.#happened) count(one.at_s, failed(one) ? 0 : 1);
    for (const one of this.#changes) count(one.at_s, 2);
    return bars;
  }
}

const COLOURS = ["--stuck", "--converged", "--waiting"];
