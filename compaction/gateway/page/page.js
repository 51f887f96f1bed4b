"use strict";
// Reads status.json every two seconds. Names from requests are set as text: nothing in them is parsed as markup.

const SECONDS = 2;
const open = new Set();

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const byId = (id) => document.getElementById(id);
const count = (number) => Math.round(number).toLocaleString("en");
const several = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
const dollars = (number) => `$${number.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: number < 1 ? 4 : 2 })}`;
const milliseconds = (seconds) => `${(1000 * seconds).toFixed(seconds < 0.1 ? 1 : 0)} ms`;

function short(tokens) {
  if (tokens < 1000) return count(tokens);
  return tokens < 1e6 ? `${(tokens / 1e3).toFixed(tokens < 1e5 ? 1 : 0)}k` : `${(tokens / 1e6).toFixed(2)}M`;
}

function ago(seconds) {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${Math.max(0, Math.floor(seconds))} s`;
}

function card(name, value, note, title) {
  return make("div", { class: "card", title }, make("span", { class: "name", text: name }),
    make("strong", { text: value }), make("span", { class: "note", text: note }));
}

function showTotals(data) {
  const { totals } = data;
  const requests = data.requests.reduce((sum, each) => sum + each.count, 0);
  const read = totals.prompt_tokens ? `${Math.round((100 * totals.cached_tokens) / totals.prompt_tokens)} % from the cache` : "no usage reported";
  const failed = Object.values(data.failures).reduce((sum, each) => sum + each, 0);
  const mean = totals.requests ? totals.seconds_total / totals.requests : 0;
  byId("totals").replaceChildren(
    card("Requests", count(requests), several(data.conversations.length, "conversation"), "Answers of all routes"),
    card("Sent", `${short(totals.prompt_tokens)} tokens`, read, "Tokens of requests, as the provider reported them"),
    card("Saved", `${short(totals.tokens_saved)} tokens`, dollars(totals.dollars_saved), "Tokens that were not sent, at the price of cached tokens"),
    card("Lost to the cache", `${short(totals.tokens_lost)} tokens`, dollars(totals.dollars_lost),
      "Tokens that the provider had cached and had to read again after a cut, by the usage that it reported"),
    card("Cuts", count(totals.cuts), data.is_shadow ? "would have been" : "runs that changed a request", "Compactions"),
    card("Time added", milliseconds(mean), "mean of a request", "From the last byte of a request to sending it on"),
    card("Failures", count(failed), failed ? "see below" : "none", "Each such request was sent unchanged, or answered as the provider did"),
  );
}

function bar(each) {
  const share = each.window ? each.tokens / each.window : 0;
  const fill = make("span", { class: share > 0.9 ? "fill high" : "fill" });
  fill.style.width = `${Math.min(100, 100 * share)}%`;
  const label = `${short(each.tokens)} of ${short(each.window)} tokens, ${Math.round(100 * share)} %`;
  return make("div", { class: "window" },
    make("div", { class: "bar", role: "meter", "aria-label": "Window used", "aria-valuemin": 0, "aria-valuemax": each.window,
      "aria-valuenow": Math.min(each.tokens, each.window) }, fill), make("span", { class: "note", text: label }));
}

function showCut(cut, at) {
  const edits = Object.entries(cut.edits).map(([what, times]) => make("li", { text: times > 1 ? `${what} (${count(times)} times)` : what }));
  const left = Object.entries(cut.left).map(([what, times]) => `${count(times)} ${what.replace("_", " ")}`).join(", ");
  const notes = [`saved ${short(cut.tokens_before - cut.tokens_after)} tokens a request`];
  if (left) notes.push(`left: ${left}`);
  if (cut.tokens_lost) notes.push(`read again, not from the cache: ${short(cut.tokens_lost)} tokens`);
  const instead = cut.summary ? [make("p", { class: "note", text: "Sent instead:" }), make("pre", { text: cut.summary })] : [];
  return make("li", {}, make("span", { text: `${ago(at - cut.at)} ago: ${short(cut.tokens_before)} to ${short(cut.tokens_after)} tokens` }),
    make("p", { class: "note", text: notes.join(" · ") }), make("ul", {}, ...edits), ...instead);
}

function showConversation(each, at) {
  const notes = [several(each.requests, "request"), `last ${ago(at - each.last_at)} ago`];
  if (each.tokens_saved) notes.push(`saved ${short(each.tokens_saved)} tokens, ${dollars(each.dollars_saved)}`);
  if (each.tokens_lost) notes.push(`lost ${short(each.tokens_lost)} tokens to the cache, ${dollars(each.dollars_lost)}`);
  notes.push(`added at most ${milliseconds(each.most_seconds)}`);
  const failed = Object.entries(each.failures).map(([what, times]) => make("li", { class: "alert", text: `${what}: ${count(times)}` }));
  if (each.is_left_alone) failed.push(make("li", { class: "alert", text: "sent unchanged until its next length error: the provider refused a compacted request" }));
  const cuts = make("details", {}, make("summary", { text: several(each.cuts.length, "cut") }),
    make("ul", { class: "cuts" }, ...each.cuts.slice().reverse().map((cut) => showCut(cut, at))));
  cuts.open = open.has(each.id);
  cuts.addEventListener("toggle", () => (cuts.open ? open.add(each.id) : open.delete(each.id)));
  return make("li", {},
    make("div", { class: "title" }, make("strong", { text: each.model || "no model named" }),
      make("code", { text: each.id.slice(-12) }), make("span", { class: "note", text: `${each.route}, ${each.upstream}` })),
    bar(each), make("p", { class: "note", text: notes.join(" · ") }),
    ...(failed.length ? [make("ul", {}, ...failed)] : []), ...(each.cuts.length ? [cuts] : []));
}

function showCounts(id, counts) {
  const rows = Object.entries(counts).sort((one, other) => other[1] - one[1]);
  byId(id).parentElement.hidden = !rows.length;
  byId(id).replaceChildren(...rows.flatMap(([name, times]) => [make("dt", { text: name }), make("dd", { text: count(times) })]));
}

function show(data) {
  byId("state").textContent = `Running for ${ago(data.at - data.started_at)} · ${several(data.held, "conversation")} in memory, ` +
    `${(data.held_bytes / 1048576).toFixed(1)} MiB of messages`;
  byId("state").classList.remove("alert");
  byId("shadow").hidden = !data.is_shadow;
  byId("none").hidden = data.conversations.length > 0;
  showTotals(data);
  byId("conversations").replaceChildren(...data.conversations.map((each) => showConversation(each, data.at)));
  for (const id of ["failures", "windows", "passed_through", "retries"]) showCounts(id, data[id]);
}

async function refresh() {
  try {
    const answer = await fetch(new URL("status.json", location.origin + location.pathname), { cache: "no-store" });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    show(await answer.json());
  } catch (error) {
    byId("state").textContent = `The gateway does not answer (${error.message}); these figures are old.`;
    byId("state").classList.add("alert");
  }
  setTimeout(refresh, 1000 * SECONDS);
}

refresh();
