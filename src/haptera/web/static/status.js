// The status page: follows the events, paints what changed, and puts its parts together.

import { Actions } from "./acting.js";
import { ask, follow, token } from "./api.js";
import { Brake } from "./brake.js";
import { CauseList, causesOf } from "./causes.js";
import { Colouring } from "./colours.js";
import { Counts } from "./counts.js";
import { Differences } from "./differences.js";
import { at, duration, write } from "./dom.js";
import { Faults } from "./faults.js";
import { Fleet } from "./fleet.js";
import { Health } from "./health.js";
import { Jobs } from "./jobs.js";
import { NodeList } from "./list.js";
import { Log } from "./log.js";
import { NodeMap } from "./map.js";
import { NodeJobs } from "./nodejobs.js";
import { Panel } from "./panel.js";
import { leavePlace, onlyLabels, place, readPlace, writePlace } from "./place.js";
import { Graph } from "./graph.js";
import { offer } from "./groups.js";
import { fleetAt } from "./past.js";
import { Plots } from "./plots.js";
import { Running } from "./running.js";
import { SavedPlan } from "./saved.js";
import { cellSize, nextSize, sceneOf } from "./scene.js";
import { Search } from "./searching.js";
import { EntityTable } from "./table.js";
import { HEALTH, JOBS, OTHERS, Tabs } from "./tabs.js";
import { Timeline } from "./timeline.js";
import { spokenTime } from "./told.js";
import { Zoom } from "./zoom.js";

const CAUSES_EVERY_MS = 250;
const WHERE = "open the address that haptera printed";

let live = new Fleet(); // as the events tell it
let fleet = live; // what is shown: this, or the past
let since = null; // what is shown is compared with; null for the present
let going = 0; // how often another time was asked for
const colouring = new Colouring();
let scene = null;
let causes = [];
let causesAt = -Infinity;
let picked = null; // the cause or the difference whose nodes alone are lit
let matchesOf = [];
let painting = false;
let following = null;
let lostAt = null;

// ---- painting

function paintSoon() {
  if (painting) return;
  painting = true;
  requestAnimationFrame(() => {
    painting = false;
    paint();
  });
}

function paint() {
  running.follow(place.colour === "job" && following !== null ? live : null);
  const changed = fleet.settle();
  colouring.update(fleet, place.colour, changed);
  paintHead();
  if (changed.size) paintClock(); // else it goes on by itself, once a second
  zoom.update(fleet);
  paintOthers();
  const asked = { width: map.width, focused: at("list").matches(":focus-visible"), within: zoom.within };
  scene = { ...sceneOf(fleet, colouring, asked, scene), matches: matching(changed) };
  map.draw(scene);
  list.update(scene);
  paintCauses(changed);
  paintDifferences();
  counts.update(scene, colouring);
  const views = chosenViews();
  panel.update(place.node, views, rightsText(), fleet);
  const here = !actions.past && following !== null && views[0]?.kind === "node" ? views[0].name : null;
  nodeJobs.follow(live, here);
  log.offer(actions.past ? [] : views);
  plots.offer(views.length && !place.node.startsWith("job:") ? place.node : null);
  graph.offer(actions.past ? [] : views.filter((view) => view.kind !== "job"));
}

function paintHead() {
  write(at("cluster"), fleet.cluster);
  offer(at("group"), at("colour"), fleet, place);
  document.body.classList.toggle("as-list", place.view === "list");
  at("as-list").setAttribute("aria-pressed", String(place.view === "list"));
}

// What is no node: of one kind, the jobs, or haptera itself.
function paintOthers() {
  const [kind, rights] = [place.show, rightsText()];
  tabs.update(fleet, kind);
  at("overview").hidden = at("bar").hidden = at("legend").hidden = kind !== "" || zoom.alone;
  document.body.classList.toggle("alone", kind === "" && zoom.alone);
  at("table").hidden = kind === "" || OTHERS.includes(kind);
  at("jobs").hidden = kind !== JOBS;
  at("health").hidden = kind !== HEALTH;
  if (!at("table").hidden) table.update(kind, fleet, place.node);
  jobs.update(kind === JOBS, place.node, rights);
  health.update(kind === HEALTH);
}

function chosenViews() {
  if (place.node.startsWith("job:")) return jobs.view(place.node);
  return place.node ? fleet.all(place.node) : [];
}

// Which nodes are lit: null for all, else a byte for each; the same array while nothing changed.
function matching(changed) {
  const only = new Set(onlyLabels());
  const of = [place.only, place.colour, picked, search.nodes, fleet.shape, picked && causes, picked && differences.rows];
  const stale = changed.size > 0 && only.size > 0;
  if (!stale && of.every((one, number) => one === matchesOf[number])) return scene?.matches ?? null;
  matchesOf = of;
  const on = found(picked) ? new Set(found(picked).on) : null;
  const searched = search.nodes;
  if (!only.size && !on && !searched) return null;
  return Uint8Array.from(fleet.nodes, (name, number) => {
    if (only.size && !only.has(colouring.of(number))) return 0;
    return (!on || on.has(name)) && (!searched || searched.has(name)) ? 1 : 0;
  });
}

const found = (key) => [...causes, ...differences.rows].find((one) => one.key === key);

function pick(key) {
  picked = picked === key ? null : key;
  place.within = place.alone = ""; // its nodes may be anywhere
  go();
}

function paintCauses(changed) {
  const now = performance.now();
  if (changed.size && now - causesAt < CAUSES_EVERY_MS) {
    for (const name of changed) fleet.changed.add(name);
    setTimeout(paintSoon, CAUSES_EVERY_MS);
  } else if (changed.size) {
    causesAt = now;
    causes = causesOf(fleet);
    if (picked !== null) paintSoon(); // its nodes are others now, or it is gone
    if (!found(picked)) picked = null;
    if (place.select) search.soon();
  }
  causeList.update(causes, picked);
  // Whoever has other pages in front of it sees there that something is stuck.
  const stuck = causes.reduce((sum, { condition, on }) => sum + (condition === "stuck" ? on.length : 0), 0);
  document.title = `${stuck ? `${stuck} stuck \u00b7 ` : ""}${fleet.cluster} \u00b7 haptera`;
}

// Of the kept time and the one that is shown; or of the one that is shown, and now.
function paintDifferences() {
  const times = place.since ? [place.since, place.at] : [place.at, ""];
  const known = place.since ? since !== null : fleet !== live; // it may still be asked for
  const title = known ? `Changed between ${times.map(spokenTime).join(" and ")}` : null;
  const [then, now] = place.since ? [since, fleet] : [fleet, live];
  differences.update(title, then, now, picked);
  at("keep").hidden = place.since === "" && place.at === "";
  write(at("keep"), place.since ? "Compare with now" : "Compare with this time");
}

// What the parent says of how long it lasts: the longest that is under way, or since when all rests.
function paintClock() {
  if (!fleet.views.size || lostAt !== null) return paintLost();
  if (fleet !== live) return write(at("elapsed"), "");
  let [acting, rest, now] = [null, Infinity, performance.now()];
  for (const view of fleet.views.values()) {
    const lasted = view.since_ms + now - view.arrived;
    if (view.condition === "acting") acting = Math.max(acting ?? 0, lasted);
    rest = Math.min(rest, lasted);
  }
  const text = acting === null ? `at rest for ${duration(rest)}` : `acting for ${duration(acting)}`;
  write(at("elapsed"), text);
}

// Nobody answers: what is shown was so once, and looks like it.
function paintLost() {
  if (lostAt === null) return;
  const since = new Date(lostAt).toLocaleTimeString("en-GB");
  document.body.classList.add("stale");
  write(at("elapsed"), "");
  say(`no answer since ${since} (${duration(Date.now() - lostAt)}): what is shown is old; trying again`);
}

function say(text) {
  write(at("link"), text);
}

// ---- what is asked for

function choose(number) {
  if (number === null) return;
  place.node = fleet.nodes[number];
  go();
  map.reveal(number);
}

function chooseEntity(entity) {
  place.node = entity;
  go();
}

// What is looked at is another: it is kept in the address, and painted.
function go() {
  writePlace();
  paintSoon();
}

// Shows another time; the last one that was asked for wins.
async function travel() {
  const mine = (going += 1);
  const when = place.at === "" ? null : Number(place.at);
  timeline.show(when);
  let [shown, kept] = [live, null];
  try {
    if (when !== null) shown = await fleetAt(when, live.cluster);
    if (place.since) kept = await fleetAt(Number(place.since), live.cluster);
    if (mine === going) write(at("searched"), "");
  } catch (error) {
    if (mine === going) write(at("searched"), error.message);
    return;
  }
  if (mine !== going) return;
  [fleet, since] = [shown, kept];
  fleet.touch();
  actions.past = when !== null;
  document.body.classList.toggle("past", actions.past);
  if (place.select) search.now();
  paintSoon();
}

const map = new NodeMap({
  scroller: at("map"),
  spacer: at("spacer"),
  canvas: at("canvas"),
  choose: (number) => {
    at("list").focus({ preventScroll: true });
    choose(number);
  },
  enter: (group) => zoom.enter(group),
  open: () => zoom.in(),
  redraw: paintSoon,
});
const list = new NodeList(at("list"), choose);
const zoom = new Zoom(at("zoom"), go);
const counts = new Counts(at("counts"), go);
const search = new Search(at("select"), paintSoon);
const causeList = new CauseList(at("causes"), pick);
const differences = new Differences({ element: at("differences"), heading: at("compared"), pick });
const actions = new Actions(at("ask"), (text) => write(at("done"), text));
const panel = new Panel({ element: at("entity"), history: at("history"), actions });
const log = new Log(at("log"));
new SavedPlan(at("saved"), actions);
const graph = new Graph(at("graph"));
const plots = new Plots(at("plots"));
const brake = new Brake(at("brake"), actions);
const faults = new Faults(at("faults"));
const table = new EntityTable(at("table"), chooseEntity);
const jobs = new Jobs({ element: at("jobs"), actions, choose: chooseEntity, changed: paintSoon });
const nodeJobs = new NodeJobs(at("held"), (job) => {
  place.show = JOBS;
  chooseEntity(job);
});
let jobsWrong = "";
const running = new Running((error) => {
  const text = error === null ? "" : `the jobs are not known: ${error.message}`;
  if (text !== jobsWrong) write(at("searched"), text);
  jobsWrong = text;
  paintSoon();
});
const health = new Health(at("health"));
const tabs = new Tabs(at("tabs"), (kind) => {
  place.show = kind;
  go();
});
const rightsText = () => [actions.rights.scope, actions.rights.within, actions.past].join();
const timeline = new Timeline(at("time"), (when) => {
  place.at = when === null ? "" : String(when);
  writePlace();
  travel();
});

at("keep").addEventListener("click", () => {
  place.since = place.since ? "" : place.at;
  writePlace();
  travel();
});
at("group").addEventListener("change", () => {
  [place.group, place.within] = [at("group").value, ""];
  go();
});
at("colour").addEventListener("change", () => {
  [place.colour, place.only] = [at("colour").value, ""];
  go();
});
at("as-list").addEventListener("click", () => {
  place.view = place.view === "list" ? "" : "list";
  go();
});
for (const [button, by] of [["larger", 1], ["smaller", -1]]) {
  at(button).addEventListener("click", () => {
    place.zoom = String(nextSize(cellSize(fleet, scene.members), by));
    go();
  });
}
at("list").addEventListener("focus", paintSoon);
at("list").addEventListener("blur", paintSoon);

addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input, select, textarea")) return;
  event.preventDefault();
  at("select").focus();
});

// ---- signing in; the token comes in the fragment, which browsers never send, or is pasted

function signedOut(text) {
  following?.abort();
  brake.stop();
  faults.stop();
  lostAt = null;
  document.body.classList.add("stale");
  say(text);
  at("sign-in").hidden = false;
  at("sign-out").hidden = true;
  write(at("who"), "");
  if (actions.rights.scope === null) return;
  actions.rights = { scope: null, within: null }; // what stays in sight has no buttons any more
  paintSoon();
}

function begin() {
  const given = readPlace();
  search.begin(following !== null);
  if (following !== null && !given) return travel();
  following?.abort();
  if (token.get() === null && !location.protocol.startsWith("https")) return signedOut(`no token: ${WHERE}`);
  const mine = (following = new AbortController());
  fleet = live = new Fleet();
  actions.rights = { scope: null, within: null };
  at("sign-in").hidden = true;
  follow({
    signal: mine.signal,
    live: () => {
      lostAt = null;
      document.body.classList.remove("stale");
      say("live");
      who();
    },
    lost: () => {
      lostAt ??= Date.now();
      paintLost();
    },
    refused: (problem) => {
      following = null;
      signedOut(`${problem.what}: ${WHERE}`);
    },
    taken: (kind, event) => {
      const first = !live.views.size;
      live.take(kind, event);
      if (first && (place.at || place.since)) travel();
      if (fleet === live) paintSoon();
    },
  });
}

// What the token may decides which buttons there are; the parent decides what is done.
async function who() {
  const told = await ask("GET", "caller").catch(() => ({ name: null, scope: null, within: null }));
  actions.rights = told;
  const limit = told.within === null ? "" : ` within ${told.within}`;
  const how = token.get() === null ? ", by certificate" : "";
  write(at("who"), told.scope === null ? "" : `${told.name}: ${told.scope}${limit}${how}`);
  at("sign-out").hidden = token.get() === null; // the browser shows its certificate again
  brake.follow();
  faults.follow();
  if (place.select) search.now();
  paintSoon();
}

at("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = at("token").value.trim();
  at("token").value = "";
  if (!text) return;
  token.set(text);
  following = null;
  begin();
});
at("sign-out").addEventListener("click", () => {
  following?.abort();
  leavePlace();
  location.reload();
});

addEventListener("hashchange", begin);
setInterval(paintClock, 1000);
begin();
