// The canvas: only what is in sight is drawn, in one pass over the cells.

import { FROZEN_SIGN, SIGNS } from "./colours.js";
import { NAMED_SIZE, NAME_HEIGHT, corner, hit, titleAt, titleUnder } from "./layout.js";

const SIGN_SIZE_MIN = 14; // smaller cells hold no letter: a dot marks what is stuck
const ROUND_SIZE_MIN = 14;
const DIMMED = 0.13;

export class NodeMap {
  #colours = new Map();
  #scene = null;

  constructor({ scroller, spacer, canvas, choose, enter, open, redraw }) {
    Object.assign(this, { scroller, spacer, canvas });
    this.context = canvas.getContext("2d");
    new ResizeObserver(redraw).observe(scroller);
    scroller.addEventListener("scroll", redraw, { passive: true });
    matchMedia("(prefers-color-scheme: light)").addEventListener("change", () => {
      this.#colours.clear();
      redraw();
    });
    canvas.addEventListener("click", (event) => {
      const group = this.#titleUnder(event);
      if (group === null) choose(this.#under(event));
      else enter(group);
    });
    canvas.addEventListener("dblclick", (event) => {
      if (this.#under(event) !== null) open();
    });
    canvas.addEventListener("pointermove", (event) => this.#hover(event));
  }

  get width() {
    return this.scroller.clientWidth;
  }

  // Scrolls so that a node's cell is in sight.
  reveal(number) {
    const y = this.#scene?.at.ys[number];
    if (y === undefined) return;
    const [top, high] = [this.scroller.scrollTop, this.scroller.clientHeight];
    if (y < top + 30) this.scroller.scrollTop = y - 60;
    else if (y + 50 > top + high) this.scroller.scrollTop = y + 60 - high;
  }

  draw(scene) {
    this.#scene = scene;
    const [width, height] = this.#fit(scene.layout);
    const [top, scale, context] = [this.scroller.scrollTop, devicePixelRatio || 1, this.context];
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.translate(0, -top);
    for (const box of scene.layout.boxes) {
      if (box.y > top + height) break;
      if (box.y + box.height >= top) this.#box(scene, box, top, height);
    }
    if (scene.chosen !== null) this.#ring(scene);
  }

  #fit(layout) {
    const high = `${Math.ceil(layout.height)}px`;
    if (this.spacer.style.height !== high) this.spacer.style.height = high;
    const [width, height] = [this.scroller.clientWidth, this.scroller.clientHeight];
    const scale = devicePixelRatio || 1;
    const [across, down] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== across || this.canvas.height !== down) {
      Object.assign(this.canvas, { width: across, height: down });
      Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    }
    return [width, height];
  }

  #box(scene, box, top, height) {
    const context = this.context;
    context.beginPath();
    context.roundRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1, 12);
    context.fillStyle = this.#colour("card");
    context.fill();
    context.strokeStyle = this.#colour("edge");
    context.lineWidth = 1;
    context.stroke();
    context.fillStyle = this.#colour("quiet");
    context.font = "500 12.5px system-ui, sans-serif";
    context.fillText(box.name, ...titleAt(box), box.width - 20);
    this.#cells(scene, box, top, height);
  }

  #cells(scene, box, top, height) {
    const { size, step } = scene.layout;
    const [, firstY] = corner(scene.layout, box, 0);
    const from = Math.max(0, Math.floor((top - firstY) / step)) * box.columns;
    const rows = Math.max(0, Math.ceil((top + height - firstY) / step));
    const to = Math.min(box.members.length, rows * box.columns);
    const context = this.context;
    for (let position = from; position < to; position += 1) {
      const number = box.members[position];
      const [x, y] = corner(scene.layout, box, position);
      const style = scene.styleOf(number);
      context.globalAlpha = scene.matches && !scene.matches[number] ? DIMMED : 1;
      context.fillStyle = this.#colour(style);
      const high = size < NAMED_SIZE ? size : size - NAME_HEIGHT;
      if (size < ROUND_SIZE_MIN) context.fillRect(x, y, size, size);
      else this.#round(x, y, size, high);
      const sign = SIGNS[style] ?? (scene.frozen(number) ? FROZEN_SIGN : null);
      if (sign !== null) this.#sign(sign, x + (size - high) / 2, y, high);
      if (high < size) this.#name(scene.fleet.nodes[number], x, y + size, size);
    }
    context.globalAlpha = 1;
  }

  #round(x, y, size, high) {
    this.context.beginPath();
    this.context.roundRect(x, y, size, high, Math.min(size / 5, 12));
    this.context.fill();
  }

  #name(text, x, y, size) {
    this.context.fillStyle = this.#colour("ink");
    this.context.font = "12px system-ui, sans-serif";
    this.context.fillText(text, x, y - 5, size);
  }

  #sign(sign, x, y, size) {
    const context = this.context;
    context.fillStyle = this.#colour("on-colour");
    if (size >= SIGN_SIZE_MIN) {
      context.font = `600 ${Math.round(size * 0.42)}px system-ui, sans-serif`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(sign, x + size / 2, y + size / 2);
      context.textAlign = "start";
      context.textBaseline = "alphabetic";
    } else if (sign === SIGNS.stuck) {
      context.fillRect(x + size / 3, y + size / 3, size / 3, size / 3);
    }
  }

  #ring({ layout, at, chosen, focused }) {
    const [x, y] = [at.xs[chosen], at.ys[chosen]];
    this.context.strokeStyle = this.#colour(focused ? "ink" : "quiet");
    this.context.lineWidth = focused ? 3 : 2;
    this.context.strokeRect(x - 2.5, y - 2.5, layout.size + 5, layout.size + 5);
  }

  #colour(name) {
    if (!this.#colours.has(name)) {
      const style = getComputedStyle(document.documentElement);
      this.#colours.set(name, style.getPropertyValue(`--${name}`).trim() || "gray");
    }
    return this.#colours.get(name);
  }

  #under(event) {
    return this.#scene && hit(this.#scene.layout, ...this.#where(event));
  }

  #titleUnder(event) {
    return this.#scene && titleUnder(this.#scene.layout, ...this.#where(event));
  }

  #where(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top + this.scroller.scrollTop];
  }

  #hover(event) {
    const [number, group] = [this.#under(event), this.#titleUnder(event)];
    this.canvas.title = number === null ? "" : this.#scene.spoken(number);
    this.canvas.classList.toggle("over", number !== null || group !== null);
  }
}
