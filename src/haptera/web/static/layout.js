// Where each cell is: groups as boxes on shelves, cells in rows; a place is found by arithmetic.

export const SIZES = [6, 10, 14, 24, 40, 60, 88];
export const NAMED_SIZE = 60; // cells so large have their name below
const NAME_CHARACTERS = 9; // cells of that size have room for so many
export const NAME_HEIGHT = 20;
const PAD = 12;
const TITLE = 26;
const BETWEEN = 14;
const TITLE_CHARACTER = 7.2;

// The largest size with which so many still fit in a few screens.
export function sizeFor(names) {
  const count = names.length;
  if (count <= 32 && names.every((name) => name.length <= NAME_CHARACTERS)) return NAMED_SIZE;
  if (count <= 64) return 40;
  if (count <= 400) return 24;
  return count <= 2500 ? 14 : 10;
}

// `groups` are { name, members }, members numbers of nodes; returns the boxes, and how high all is.
export function layOut(groups, width, size) {
  const step = size + Math.max(1, Math.round(size * 0.18));
  const boxes = [];
  let [x, y, shelf] = [0, 0, 0];
  for (const { name, members } of groups) {
    const fit = Math.max(1, Math.floor((width - 2 * PAD) / step));
    const columns = Math.min(fit, Math.max(2, Math.ceil(Math.sqrt(members.length))));
    const rows = Math.ceil(members.length / columns);
    const wide = Math.max(columns * step, Math.min(name.length * TITLE_CHARACTER, width - 2 * PAD));
    const box = { name, members, columns, width: wide + 2 * PAD, height: TITLE + rows * step + PAD + 4 };
    if (x > 0 && x + box.width > width) [x, y, shelf] = [0, y + shelf + BETWEEN, 0];
    boxes.push({ ...box, x, y });
    x += box.width + BETWEEN;
    shelf = Math.max(shelf, box.height);
  }
  return { boxes, step, size, height: y + shelf };
}

// The upper left corner of a box's cell.
export function corner(layout, box, position) {
  const row = Math.floor(position / box.columns);
  return [box.x + PAD + (position % box.columns) * layout.step, box.y + TITLE + 4 + row * layout.step];
}

export const titleAt = (box) => [box.x + PAD, box.y + 18];

// Which node is there, or null.
export function hit(layout, x, y) {
  for (const box of layout.boxes) {
    if (x < box.x || y < box.y || x >= box.x + box.width || y >= box.y + box.height) continue;
    const column = Math.floor((x - box.x - PAD) / layout.step);
    const row = Math.floor((y - box.y - TITLE - 4) / layout.step);
    if (column < 0 || column >= box.columns || row < 0) return null;
    return box.members[row * box.columns + column] ?? null;
  }
  return null;
}

// The name of the group whose title is there, or null.
export function titleUnder(layout, x, y) {
  const over = ({ x: left, y: top, width }) => x >= left && x < left + width && y >= top && y < top + TITLE;
  return layout.boxes.find(over)?.name ?? null;
}

// Where each node is, by its number; NaN for those that are in no box.
export function places(layout, count) {
  const [xs, ys] = [new Float32Array(count).fill(NaN), new Float32Array(count).fill(NaN)];
  for (const box of layout.boxes) {
    box.members.forEach((number, position) => {
      [xs[number], ys[number]] = corner(layout, box, position);
    });
  }
  return { xs, ys };
}

// The node that an arrow key goes to: the nearest in its direction of those that count.
export function towards(key, from, { xs, ys }, counts) {
  const sign = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
  const upright = key === "ArrowUp" || key === "ArrowDown";
  let [best, least] = [from, Infinity];
  for (let one = 0; one < xs.length; one += 1) {
    if (!counts(one)) continue;
    const [x, y] = [xs[one] - xs[from], ys[one] - ys[from]];
    const [along, aside] = upright ? [y * sign, Math.abs(x)] : [x * sign, Math.abs(y)];
    const distance = along + 3 * aside;
    if (along >= 2 && distance < least) [best, least] = [one, distance];
  }
  return best;
}
