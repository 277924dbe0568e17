// Asking the parent: requests with the token, and the stream of events, followed for good.

const BACK_OFF_MS = [200, 500, 1000, 2000, 5000];
const SILENCE_MS = 45_000; // the server says that it is there every 15 s
const TOKEN_KEY = "haptera-token";

// What the parent refused, in its own words.
export class Problem extends Error {
  constructor(problem, status) {
    super([problem.what, problem.do].filter(Boolean).join(": "));
    this.what = problem.what;
    this.status = status;
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN_KEY),
  set: (text) => sessionStorage.setItem(TOKEN_KEY, text),
  forget: () => sessionStorage.removeItem(TOKEN_KEY),
};

// Without a token none is sent: over TLS the browser may have shown a certificate.
export function credentials() {
  const text = token.get();
  return text === null ? {} : { Authorization: `Bearer ${text}` };
}

export async function ask(method, path, { query = {}, body, signal } = {}) {
  const text = new URLSearchParams(query).toString();
  const headers = credentials();
  const content = body === undefined ? undefined : JSON.stringify(body);
  const url = `v1/${path}${text && "?"}${text}`;
  const answer = await fetch(url, { method, headers, body: content, signal, cache: "no-store" });
  const told = await answer.json().catch(() => ({ what: `answered ${answer.status}` }));
  if (!answer.ok) throw new Problem(told, answer.status);
  return told;
}

// Follows until it is aborted or refused. EventSource cannot send a token, so fetch reads.
export async function follow({ signal, live, lost, refused, taken }) {
  let lastId = null;
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      lastId = await read(lastId, signal, live, (kind, event, id) => {
        taken(kind, event);
        lastId = id ?? lastId;
        attempt = 0;
      });
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem) return refused(error);
    }
    if (signal.aborted) return;
    lost();
    const wait = BACK_OFF_MS[Math.min(attempt, BACK_OFF_MS.length - 1)];
    await new Promise((done) => setTimeout(done, wait));
  }
}

// Reads until the stream ends; returns where it can be gone on from.
async function read(lastId, signal, live, taken) {
  const headers = credentials();
  if (lastId !== null) headers["Last-Event-ID"] = lastId;
  const silence = new AbortController();
  const either = AbortSignal.any([signal, silence.signal]);
  const answer = await fetch("v1/events", { headers, signal: either, cache: "no-store" });
  if (answer.status === 410) return null;
  if (answer.status === 401 || answer.status === 403) {
    throw new Problem(await answer.json(), answer.status);
  }
  if (!answer.ok) throw new Error(`answered ${answer.status}`);
  live();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let pieces = [];
  for (;;) {
    const timer = setTimeout(() => silence.abort(), SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return lastId;
    pieces.push(value);
    if (!value.includes("\n")) continue;
    const blocks = pieces.join("").split("\n\n");
    pieces = [blocks.pop()];
    for (const block of blocks) lastId = take(block, taken) ?? lastId;
  }
}

// Takes one event in; returns its id, or null if it has none.
function take(block, taken) {
  const fields = {};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
  }
  if (fields.data === undefined) return null;
  taken(fields.event, JSON.parse(fields.data), fields.id ?? null);
  return fields.id ?? null;
}
