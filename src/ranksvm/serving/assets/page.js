// The page of a service: it asks /v1/models and /v1/events every two seconds, and shows what they say. All text is set as
// text, never as markup.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const EVERY = 2000;
const $ = id => document.getElementById(id);
let key = sessionStorage.getItem("ranksvm-key");
let paused = false, timer = null, weights = [], quality = null;

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
// With the date, as in 2026-01-31, if it is not today.
function time(at) {
  const then = new Date(at * 1000);
  return then.toDateString() === new Date().toDateString() ? then.toLocaleTimeString("en-GB") : then.toLocaleString("sv-SE");
}
// A name within a sentence: letters written from right to left do not turn what follows.
const isolated = name => `\u2068${name}\u2069`;
const short = value => Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-4) ? value.toExponential(2) : value.toFixed(4);

const signed = value => `${value > 0 ? "+" : value < 0 ? "−" : ""}${short(Math.abs(value))}`;

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
    ["serving version", counted(now.serving)],
    ["entries learned", counted(now.learning.position)],
    ["learning lag", counted(now.learning.lag)],
    ["role", now.learning.here ? "learner" : "follower"],
    ["log", size(now.store.bytes)],
    ["waiting for the disk", counted(now.store.waiting)],
    ["entries skipped", counted(now.skipped)],
    ["outside the range", counted(now.outside)],
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

// "ndcg@10" as it is written in text: abbreviations are in capitals.
const titled = metric => metric.replace(/^(n?dcg|map|mrr|err|rbp|auc)(?=@|$)/, found => found.toUpperCase());

function showQuality(now) {
  const byLabels = showLabels(now.metric, now.measures), byClicks = showClicks(now.clicks);
  $("unmeasured").hidden = byLabels || byClicks;
}

function showLabels(metric, measures) {
  const names = Object.keys(measures).filter(name => measures[name].queries > 0);
  $("labels").hidden = names.length === 0;
  if (!names.length) return false;
  $("labels-title").textContent = `${titled(metric)} by labels`;
  fill($("labels-rows"), names.map(name => {
    const { queries, mean, history } = measures[name];
    const half = history.length ? history[history.length - 1][2] : null;
    return row(cell(name), number(counted(queries)), number(shown(mean)), number(half ? `± ${shown(half)}` : "–"));
  }));
  const said = names.map(name => `${name} ${shown(measures[name].mean)}`).join(", ");
  $("labels-text").textContent = `Mean ${titled(metric)} over the queries so far. Now: ${said}.`;
  drawCurves($("labels-curve"), names.map(name => [name, measures[name].history]), `mean ${titled(metric)}`, "queries with labels", 1);
  return true;
}

function showClicks({ metric, rule, propensities, drifts, estimates }) {
  const names = Object.keys(estimates).filter(name => estimates[name].rankings > 0);
  $("clicks").hidden = names.length === 0;
  if (!names.length) return false;
  $("clicks-title").textContent = `${titled(metric)} by clicks, corrected for position`;
  const learning = `Models learn from clicks by the rule "${rule.replaceAll("_", "-")}".`;
  $("propensities").textContent = [correction(propensities), learning, forgotten(drifts)].join(" ").trim();
  fill($("clicks-rows"), names.map(name => {
    const one = estimates[name];
    return row(cell(name), number(counted(one.rankings)), number(counted(one.clicks)), number(shown(one.mean)),
      number(`${shown(one.low, 3)} to ${shown(one.high, 3)}`));
  }));
  const said = names.map(name => `${name} ${shown(estimates[name].mean)}`).join(", ");
  $("clicks-text").textContent = `Estimated ${titled(metric)} over the lists so far. Now: ${said}.`;
  drawCurves($("clicks-curve"), names.map(name => [name, estimates[name].history]), `estimated ${titled(metric)}`, "lists shown", Infinity);
  return true;
}

// Which propensities correct the clicks, in a sentence.
function correction({ source, rankings, values, note }) {
  const of = {
    power: "The propensities of the ranks are assumed, not measured",
    given: "The propensities of the ranks are those that the service was given",
    estimated: `The propensities of the ranks were estimated from ${counted(rankings)} lists`,
  };
  const newer = note ? ` There is no newer estimate: ${note}` : "";
  return `${source === "estimated" && !rankings ? of.power : of[source]}: ${values.map(value => shown(value, 2)).join(", ")} for ranks 1 to ${values.length}.${newer}`;
}

// Entries at which drift was noticed, in a sentence.
function forgotten(drifts) {
  if (!drifts.length) return "";
  return `At entry ${drifts.map(counted).join(" and ")} of the log, users clicked as if the order had no information: SOLAR models then forgot most of what they had learned, and learned again from the feedback since the change.`;
}

// Round numbers for an axis, about `wanted` of them.
function ticks(low, high, wanted) {
  const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(factor => factor * power >= rough);
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return Array.from({ length: last - first + 1 }, (_, i) => [(first + i) * step, digits]);
}

// Curves of [number, mean, half of the interval], with axes that have numbers and titles. No axis goes beyond `highest`.
function drawCurves(svg, curves, title, unit, highest) {
  const [width, height] = [Math.max(280, svg.clientWidth), svg.clientHeight || 256];
  const [left, right, top, bottom] = [48, width - 84, 26, height - 42];
  const drawable = curves.filter(([, history]) => history.length);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  if (!drawable.length) {
    svg.replaceChildren(drawn("text", { x: left, y: height / 2 }, "The curve begins with more feedback."));
    return;
  }
  const most = Math.max(...drawable.map(([, history]) => history[history.length - 1][0]));
  // The first intervals are wide, so the axis only has room for the curves and the last intervals.
  const levels = drawable.flatMap(([, history]) => {
    const [, mean, half] = history[history.length - 1];
    return [mean - half, mean + half, ...history.map(point => point[1])];
  });
  const low = Math.max(0, Math.min(...levels)), high = Math.max(Math.min(highest, Math.max(...levels)), low + 0.01);
  const x = n => left + (right - left) * n / most;
  const y = mean => bottom - (bottom - top) * Math.min(1, Math.max(0, (mean - low) / (high - low)));
  const parts = [drawn("text", { x: 4, y: 14 }, title)];
  for (const [level, digits] of ticks(low, high, 6)) {
    parts.push(drawn("line", { class: "axis", x1: left, x2: right, y1: y(level), y2: y(level) }));
    parts.push(drawn("text", { x: left - 6, y: y(level) + 4, "text-anchor": "end" }, level.toFixed(digits)));
  }
  parts.push(drawn("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
  for (const [n] of ticks(0, most, width < 480 ? 3 : 6).filter(([n]) => Number.isInteger(n))) {
    parts.push(drawn("line", { class: "axis", x1: x(n), x2: x(n), y1: bottom, y2: bottom + 5 }));
    parts.push(drawn("text", { x: x(n), y: bottom + 18, "text-anchor": "middle" }, counted(n)));
  }
  parts.push(drawn("text", { x: right, y: bottom + 36, "text-anchor": "end" }, unit));
  const ends = [];
  curves.forEach(([name, history], place) => {
    if (!history.length) return;
    const line = edge => history.map(([n, mean, half]) => `${x(n).toFixed(1)},${y(mean + edge * half).toFixed(1)}`);
    parts.push(drawn("path", { class: `band s${place % 3}`, d: `M${line(1).concat(line(-1).reverse()).join("L")}Z` }));
    parts.push(drawn("path", { class: `s${place % 3}`, d: `M${line(0).join("L")}` }));
    ends.push([name, y(history[history.length - 1][1])]);
  });
  // names beside the ends of the lines, one below the other
  ends.sort((one, other) => one[1] - other[1]);
  let last = -Infinity;
  for (const [name, place] of ends) {
    last = Math.max(place + 4, last + 14);
    parts.push(drawn("text", { x: right + 6, y: last }, name));
  }
  svg.replaceChildren(...parts);
}

// A bar left or right of 0, in the middle of its cell; share is from -1 to 1. The number is in the cell beside it.
function bar(share) {
  const made = element("td"), track = element("div", "", { class: "bar", "aria-hidden": "true" });
  const part = element("span", "", { class: share < 0 ? "negative" : "positive" });
  part.style.width = `${50 * Math.abs(share)}%`;
  track.append(part);
  made.append(track);
  return made;
}

function showWeights() {
  const wanted = $("search").value.toLowerCase();
  const found = weights.filter(one => one.feature.toLowerCase().includes(wanted));
  const most = Math.max(1e-300, ...weights.map(one => Math.abs(one.weight)));
  fill($("weight-rows"), found.map(one => {
    return row(cell(one.feature), number(signed(one.weight)), bar(one.weight / most), number(signed(one.moved)));
  }));
  $("least").textContent = weights.length ? `−${most.toPrecision(2)}` : "";
  $("most").textContent = weights.length ? `+${most.toPrecision(2)}` : "";
  $("found").textContent = `${found.length} of ${weights.length} features`;
  $("moved").textContent = weights.length ? `Change since version ${weights[0].since}.` : "The model has no weights yet.";
}

function showExperiments(now) {
  const { champion, challenger, ties, share, interval, better } = now.team_draft;
  const kinds = { none: "No experiment is running (see --explore).", epsilon: "Random orders are shown now and then." };
  let text = kinds[now.explore] || "";
  if (now.explore === "team-draft" || champion + challenger + ties > 0) {
    const verdict = better ? `The ${better} is better.` : "Neither is better so far.";
    text = `Interleaved rankings: the champion won ${counted(champion)}, the challenger ${counted(challenger)}, ${counted(ties)} were ties. `;
    // the share does not count ties
    if (share !== null) text += `The challenger's share of the wins is ${shown(share, 3)}, 95 % interval ${shown(interval[0], 3)} to ${shown(interval[1], 3)}, at any time. ${verdict}`;
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
    $("explained").textContent = `Why ${isolated(found.query || event)} was ranked so`;
    $("explained-text").textContent = `By version ${found.version}; the mean score is ${short(found.mean_score)}.`;
    $("explained-rows").replaceChildren(...found.documents.map(one => {
      const parts = Object.entries(one.contributions || {}).filter(([, part]) => part !== 0);
      const moved = parts.map(([feature, part]) => `${isolated(feature)} ${signed(part)}`).join(", ");
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
    quality = now;
    showQuality(now);
    showWeights();
    showExperiments(now);
    showVersions(now);
    showEvents(events);
    say(paused ? "Paused" : state(now.learning));
  } catch (error) {
    say(`No answer: ${error.message}`);
  }
  if (!paused) timer = setTimeout(refresh, EVERY);
}

function state({ lag, state }) {
  return state === "keeps up" ? "Up to date" : `Learning ${state}, ${counted(lag)} entries behind`;
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
addEventListener("resize", () => { if (quality) showQuality(quality); });
$("search").addEventListener("input", showWeights);
$("key-form").addEventListener("submit", event => {
  event.preventDefault();
  key = $("key").value;
  sessionStorage.setItem("ranksvm-key", key);
  $("key").value = "";
  refresh();
});
refresh();
