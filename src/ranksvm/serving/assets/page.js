// The page of a service: it asks /v1/models and /v1/events every two seconds, and shows what they say. All text is set as
// text, never as markup.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const EVERY = 2000;
const $ = id => document.getElementById(id);
let key = sessionStorage.getItem("ranksvm-key");
let paused = false, timer = null, weights = [];

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
}

function drawn(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.textContent = text;
  return made;
}

const row = (...cells) => { const made = element("tr"); made.append(...cells); return made; };
const cell = text => element("td", text);
const number = text => element("td", text, { class: "number" });
const shown = (value, digits = 4) => value === null || value === undefined ? "–" : value.toFixed(digits);
const counted = value => value.toLocaleString("en");
const time = at => new Date(at * 1000).toLocaleTimeString("en-GB");
const short = value => Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-4) ? value.toExponential(2) : value.toFixed(4);

async function ask(path, options = {}) {
  const headers = { "Content-Type": "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  const answer = await fetch(path, { ...options, headers, cache: "no-store" });
  const found = await answer.json();
  if (answer.status === 401) $("key-form").hidden = false;
  if (!answer.ok) throw new Error(found.detail || answer.statusText);
  return found;
}

function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) { bytes /= 1000; unit += 1; }
  return `${unit ? bytes.toPrecision(3) : bytes} ${units[unit]}`;
}

// Rows are replaced only where their text changes, so that the focus stays where it is.
function fill(body, rows) {
  const same = body.children.length === rows.length && rows.every((one, i) => one.textContent === body.children[i].textContent);
  if (!same) body.replaceChildren(...rows);
}

function showFacts(now) {
  const facts = [
    ["model", now.model],
    ["version that ranks", counted(now.serving)],
    ["learned from", counted(now.learning.position)],
    ["learning lag", counted(now.learning.lag)],
    ["this process", now.learning.here ? "learns" : "follows"],
    ["log", size(now.store.bytes)],
    ["waiting for the disk", counted(now.store.waiting)],
    ["not learned from", counted(now.skipped)],
  ];
  $("facts").replaceChildren(...facts.map(([name, value]) => {
    const one = element("div");
    one.append(element("dt", name), element("dd", value));
    return one;
  }));
  const trouble = now.learning.trouble || now.reason || "";
  if ($("trouble").textContent !== trouble) $("trouble").textContent = trouble;
  $("trouble").hidden = !trouble;
}

function showMeans(now) {
  const names = Object.keys(now.measures);
  $("metric").textContent = now.metric.toUpperCase();
  $("by-labels").hidden = !names.length;
  fill($("means"), names.map(name => {
    const { queries, mean, history } = now.measures[name];
    const half = history.length ? history[history.length - 1][2] : null;
    return row(cell(name), number(counted(queries)), number(shown(mean)), number(half ? `± ${shown(half)}` : "–"));
  }));
  drawCurves($("curve"), names.map(name => [name, now.measures[name].history]), "queries", now.metric, 1);
  const said = names.map(name => `${name} ${shown(now.measures[name].mean)}`).join(", ");
  $("curve-text").textContent = `Mean ${now.metric} by number of queries with labels. Now: ${said}.`;
}

function showEstimates({ clicks }) {
  const names = Object.keys(clicks.estimates);
  $("click-metric").textContent = clicks.metric.toUpperCase();
  $("by-clicks").hidden = !names.length;
  fill($("estimates"), names.map(name => {
    const { rankings, clicks: n, mean, low, high } = clicks.estimates[name];
    return row(cell(name), number(counted(rankings)), number(counted(n)), number(shown(mean)), number(`${shown(low)} to ${shown(high)}`));
  }));
  drawCurves($("click-curve"), names.map(name => [name, clicks.estimates[name].history]), "rankings", clicks.metric, Infinity);
  const said = names.map(name => `${name} ${shown(clicks.estimates[name].mean)}`).join(", ");
  $("click-curve-text").textContent = `Estimated ${clicks.metric} by number of rankings. Now: ${said}.`;
  $("propensities").textContent = `${propensities(clicks.propensities)} ${drifts(clicks.drifts)}`;
}

function propensities({ source, eta, rankings, values, note }) {
  const curve = eta === null ? values.slice(0, 5).map(value => value.toFixed(2)).join(", ") + ", …" : `1 / rank^${eta.toFixed(2)}`;
  const origin = {
    estimated: rankings ? `estimated from ${counted(rankings)} rankings` : "until there are clicks enough to estimate it",
    given: "from a file",
  }[source] || "as set";
  return `Propensities: ${curve}, ${origin}.${note ? ` No newer estimate: ${note}` : ""}`;
}

function drifts(entries) {
  if (!entries.length) return "";
  return `Clicks contradicted the champion at entry ${entries.map(counted).join(", ")} of the log; it then forgot most of what it had learned.`;
}

// Round steps: 1, 2 or 5 times a power of ten, about four between two numbers.
function ticks(low, high) {
  const raw = (high - low) / 4, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find(factor => factor * power >= raw) * power;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high * (1 + 1e-9); at += 1) found.push(at * step + 0); // not -0
  return [found, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))];
}

function drawCurves(svg, curves, unit, metric, largest) {
  const [left, right, top, bottom] = [56, 550, 26, 226];
  const points = curves.flatMap(([, history]) => history);
  const parts = [];
  if (points.length) {
    const most = Math.max(...points.map(point => point[0]));
    const low = Math.max(0, Math.min(...points.map(([, mean, half]) => mean - half)));
    const high = Math.min(largest, Math.max(...points.map(([, mean, half]) => mean + half)));
    const spread = Math.max(high - low, 0.01);
    const x = queries => left + (right - left) * queries / most;
    const y = mean => bottom - (bottom - top) * Math.min(1, Math.max(0, (mean - low) / spread));
    const [levels, digits] = ticks(low, low + spread);
    for (const level of levels) {
      parts.push(drawn("line", { class: "axis", x1: left, x2: right, y1: y(level), y2: y(level) }));
      parts.push(drawn("text", { x: left - 6, y: y(level) + 4, "text-anchor": "end" }, level.toFixed(digits)));
    }
    const narrow = matchMedia("(max-width: 40rem)").matches;
    for (const n of narrow ? [0, most] : ticks(0, most)[0]) {
      parts.push(drawn("line", { class: "axis", x1: x(n), x2: x(n), y1: bottom, y2: bottom + 5 }));
      parts.push(drawn("text", { x: x(n), y: bottom + 20, "text-anchor": "middle" }, counted(n)));
    }
    parts.push(drawn("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
    parts.push(drawn("text", { x: (left + right) / 2, y: bottom + 38, "text-anchor": "middle" }, unit));
    parts.push(drawn("text", { x: left - 50, y: top - 12 }, metric));
    const ends = [];
    curves.forEach(([name, history], place) => {
      if (!history.length) return;
      const line = history.map(([queries, mean]) => `${x(queries).toFixed(1)},${y(mean).toFixed(1)}`).join("L");
      const upper = history.map(([queries, mean, half]) => `${x(queries).toFixed(1)},${y(mean + half).toFixed(1)}`);
      const lower = history.map(([queries, mean, half]) => `${x(queries).toFixed(1)},${y(mean - half).toFixed(1)}`);
      parts.push(drawn("path", { class: `band s${place % 3}`, d: `M${upper.concat(lower.reverse()).join("L")}Z` }));
      parts.push(drawn("path", { class: `s${place % 3}`, d: `M${line}` }));
      ends.push([name, y(history[history.length - 1][1])]);
    });
    // names at the ends of the lines, one below the other
    ends.sort((one, other) => one[1] - other[1]);
    const height = narrow ? 20 : 14; // of a letter, by page.css
    let last = -Infinity;
    for (const [name, place] of ends) {
      last = Math.max(place + 4, last + height);
      parts.push(drawn("text", { x: right + 6, y: last }, name));
    }
  } else {
    parts.push(drawn("text", { x: left, y: 120 }, `The curve begins after 16 ${unit}.`));
  }
  svg.replaceChildren(...parts);
}

function showWeights() {
  const wanted = $("search").value.toLowerCase();
  const found = weights.filter(one => one.feature.toLowerCase().includes(wanted));
  const most = Math.max(1e-300, ...weights.map(one => Math.abs(one.weight)));
  fill($("weight-rows"), found.map(one => {
    const bar = element("td", "", { class: "signs" });
    const size = Math.abs(one.weight) / most, sign = one.weight < 0 ? "negative" : "positive";
    const picture = drawn("svg", { viewBox: "-1 0 2 1", preserveAspectRatio: "none", role: "img", "aria-label": `${one.feature}: ${sign}` });
    picture.append(drawn("rect", { class: sign, x: one.weight < 0 ? -size : 0, y: 0.15, width: size, height: 0.7 }));
    picture.append(drawn("line", { class: "zero", x1: 0, x2: 0, y1: 0, y2: 1 }));
    bar.append(picture);
    return row(cell(one.feature), number(short(one.weight)), bar, number(short(one.moved)));
  }));
  $("found").textContent = `${found.length} of ${weights.length} features`;
  $("moved").textContent = weights.length ? `Movement is since version ${weights[0].since}.` : "The model has no weights yet.";
}

function showExperiments(now) {
  const { champion, challenger, ties, share, interval, better } = now.team_draft;
  const kinds = {
    none: "Nothing is explored.",
    epsilon: "Random orders are shown now and then.",
    "fair-pairs": "Neighbors are exchanged at random.",
  };
  let text = kinds[now.explore] || "";
  if (now.explore === "team-draft" || champion + challenger + ties > 0) {
    const verdict = better ? `The ${better} is better.` : "Neither is better so far.";
    text = `Interleaved rankings: the champion won ${counted(champion)}, the challenger ${counted(challenger)}, ${counted(ties)} were ties. ` +
      `The challenger wins ${shown(share, 3)} of them, 95 % interval ${shown(interval[0], 3)} to ${shown(interval[1], 3)}, at any time. ${verdict}`;
  }
  $("experiment").textContent = text;
  $("fits").hidden = now.refits.length === 0;
  fill($("refits"), now.refits.map(one => row(number(counted(one.seq)), cell(one.activated ? "yes" : "no"), element("td", one.reason, { class: "long" }))));
}

function showVersions(now) {
  fill($("version-rows"), now.versions.map(one => {
    const act = element("td");
    const button = element("button", "Roll back", { type: "button", "aria-label": `Roll back to version ${one.version}` });
    button.addEventListener("click", () => rollBack(one.version));
    act.append(one.version === now.serving ? "ranks now" : button);
    return row(number(counted(one.version)), cell(time(one.at)), number(counted(one.position)), cell(one.kept ? "yes" : ""), act);
  }));
}

function rollBack(version) {
  const dialog = $("confirm");
  $("question").textContent = `Make the champion of version ${version} rank and learn from now on?`;
  dialog.returnValue = "no";
  dialog.onclose = async () => {
    if (dialog.returnValue !== "yes") return;
    try {
      const found = await ask(`v1/models/${version}/activate`, { method: "POST", body: "{}" });
      $("rolled").textContent = `Version ${version} becomes the champion, as number ${found.seq} of the log.`;
      refresh();
    } catch (error) {
      $("rolled").textContent = `It was not rolled back: ${error.message}`;
    }
  };
  dialog.showModal();
}

function showEvents({ events }) {
  fill($("event-rows"), events.map(one => {
    const why = element("td");
    const button = element("button", "Why", { type: "button", "aria-label": `Why was ${one.query || one.event} ranked so` });
    button.addEventListener("click", () => explain(one.event));
    why.append(button);
    const first = one.top.join(", ") + (one.documents > one.top.length ? ", …" : "");
    return row(cell(time(one.at)), cell(one.query || "–"), cell(first), number(counted(one.version)), cell(one.feedback || "–"), why);
  }));
}

async function explain(event) {
  const place = $("explanation");
  try {
    const found = await ask(`v1/events/${event}/explain`);
    $("explained").textContent = `Why ${found.query || event} was ranked so`;
    $("explained-text").textContent = `By version ${found.version}; the mean score is ${short(found.mean_score)}.`;
    $("explained-rows").replaceChildren(...found.documents.map(one => {
      const parts = Object.entries(one.contributions || {}).filter(([, part]) => part !== 0);
      const moved = parts.map(([feature, part]) => `${feature} ${part > 0 ? "+" : ""}${short(part)}`).join(", ");
      return row(number(one.rank), cell(one.id), number(short(one.score)), element("td", moved || "nothing", { class: "long" }));
    }));
  } catch (error) {
    $("explained").textContent = "There is no explanation";
    $("explained-text").textContent = error.message;
    $("explained-rows").replaceChildren();
  }
  place.hidden = false;
  place.focus();
}

async function refresh() {
  clearTimeout(timer);
  try {
    const [now, events] = await Promise.all([ask("v1/models"), ask("v1/events?limit=10")]);
    $("key-form").hidden = true;
    weights = now.weights;
    showFacts(now);
    showMeans(now);
    showEstimates(now);
    $("no-feedback").hidden = !$("by-labels").hidden || !$("by-clicks").hidden;
    showWeights();
    showExperiments(now);
    showVersions(now);
    showEvents(events);
    say(paused ? "Paused" : "Up to date");
  } catch (error) {
    say(`No answer: ${error.message}`);
  }
  if (!paused) timer = setTimeout(refresh, EVERY);
}

function say(text) {
  if ($("status").textContent !== text) $("status").textContent = text;
}

$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  refresh();
});
$("close").addEventListener("click", () => { $("explanation").hidden = true; });
$("search").addEventListener("input", showWeights);
$("key-form").addEventListener("submit", event => {
  event.preventDefault();
  key = $("key").value;
  sessionStorage.setItem("ranksvm-key", key);
  $("key").value = "";
  refresh();
});
refresh();
