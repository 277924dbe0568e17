// Making elements, and how times are written: what all parts of the page share.

export const at = (id) => document.getElementById(id);

// Texts become text nodes, never markup: much of it is what modules wrote.
export function make(tag, options = {}, ...children) {
  const { classes = "", data = {}, aria = {}, ...rest } = options;
  const element = Object.assign(document.createElement(tag), rest);
  if (classes) element.className = classes;
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(aria)) element.setAttribute(`aria-${name}`, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function badge(condition, text = condition) {
  return make("span", { classes: `badge ${condition}`, textContent: text });
}

const SHORT_MAX = 60;

export const short = (text) => (text.length > SHORT_MAX ? `${text.slice(0, SHORT_MAX - 1)}\u2026` : text);

export function pairs(rows) {
  if (!rows.length) return null;
  const lines = rows.flatMap(([name, ...values]) => [
    make("dt", { textContent: name }),
    make("dd", {}, ...values),
  ]);
  return make("dl", {}, ...lines);
}

export function duration(ms) {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 60_000) return `${Math.floor(ms / 1000)} s`;
  return ms < 3_600_000 ? `${Math.floor(ms / 60_000)} min` : `${Math.floor(ms / 3_600_000)} h`;
}

// Changes an attribute or a text only where it differs: what is read aloud is not read again.
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Fills an element anew; what had the focus in it, by its key, has it again.
export function refill(element, ...children) {
  const active = document.activeElement;
  const key = element.contains(active) ? active.dataset.key : undefined;
  element.replaceChildren(...children);
  if (key === undefined) return;
  [...element.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key)?.focus();
}
