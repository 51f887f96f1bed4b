// The tables over all sessions. Each column is explained in its head, with its unit.

const COLUMNS = [
  ["Cost", "share (95 % interval)", "Price of all requests, divided by that of sending everything. Lower is better.",
    (each) => interval(each.cost, 2, 1)],
  ["Input", "$ a month", "Price of the requests at the calls a month given above. Lower is better.", (each) => monthly(each)],
  ["Facts", "% (95 % interval)", "Needed facts that were kept, in requests that would be accepted. Higher is better.", (each) => interval(each.usable, 0, 100)],
  ["Old facts", "%", "The same, of facts that keeping only the newest messages loses. Higher is better.", (each) => figure(each.old)],
  ["User's words", "%", "Words of the user's messages that are still sent, in requests that would be accepted. Higher is better.",
    (each) => figure(each.said)],
  ["Over", "requests", "Requests that exceed the window: a provider refuses them. Fewer is better.", (each) => count(each.over)],
  ["Bad", "requests", "Requests that break a rule of their format that the log does not break. Fewer is better.", (each) => count(each.bad)],
  ["Breaks", "requests", "Requests that lost a cached prefix. Lower is better.", (each) => count(each.breaks)],
];
const MORE = [
  ["Words", "%", "Rare words of earlier messages that an answer uses. Higher is better.", (each) => figure(each.words)],
  ["Spans", "%", "Runs of twelve characters that an answer copies from earlier messages. Higher is better.", (each) => figure(each.spans)],
  ["User's sentences", "%", "Sentences of the user that are still sent word for word. Higher is better.", (each) => figure(each.sentences)],
  ["Rules", "%", "The user's instructions that are still word for word in the request after a compaction. Higher is better.",
    (each) => figure(each.constraints)],
  ["Edited", "requests", "Calls at which the strategy changed anything. Fewer is better for the cache.", (each) => count(each.edited)],
  ["Largest", "tokens", "The largest request.", (each) => count(each.peak)],
  ["CPU", "seconds", "Time of the strategy over all calls, on the machine of the replay.", (each) => each.seconds.toFixed(1)],
];

function showFigures(data) {
  fillTable(byId("figures"), "Cost and recall of each strategy: means over the sessions that exceed the window", COLUMNS, data.summaries);
  fillTable(byId("more"), "More figures of each strategy: means and sums over the same sessions", MORE, data.summaries);
}

function fillTable(table, caption, columns, summaries) {
  const heads = columns.map(([name, unit, words]) => make("th", { scope: "col" }, make("span", { class: "title", text: name }),
    make("span", { class: "unit", text: unit }), make("span", { class: "why", text: words })));
  const rows = summaries.map((each) => make("tr", { class: each.name === data.recommended.lead && "lead" }, strategyHead(each.name),
    ...columns.map(([, , , text]) => make("td", { text: text(each) }))));
  table.replaceChildren(captioned(caption),
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, make("span", { class: "title", text: "Strategy" })), ...heads)),
    make("tbody", {}, ...rows));
}

function strategyHead(name) {
  const kind = data.recommended.names[0] === name ? "recommended" : data.baselines.includes(name) ? "baseline" : "";
  return make("th", { scope: "row" }, markOf(name), make("span", { class: "strategy" }, ...breakable(name)),
    ...(kind ? [make("span", { class: `badge ${kind}`, text: kind })] : []));
}

function captioned(text) { return make("caption", {}, make("span", { text })); }

// The pieces of a name, with places where its line may break.
function breakable(name) { return name.split(/(?<=[_/.-])/).flatMap((piece) => [piece, make("wbr")]); }

function figure(share) { return share === null ? "-" : (100 * share).toFixed(0); }

function monthly(each) { return each.dollars_per_call === null ? "-" : dollars(volume() * each.dollars_per_call).slice(1); }

function interval([value, low, high], digits, unit) {
  if (value === null) return "-";
  const text = (unit * value).toFixed(digits);
  return low === null ? text : `${text} (${(unit * low).toFixed(digits)} to ${(unit * high).toFixed(digits)})`;
}

// A table of the facts kept in each class, with a bar in each cell.
function showShares(id, data, field, classes, caption, unit) {
  const shown = classes.filter((name) => data.summaries.some((each) => each[field][name]));
  const needed = (name) => data.summaries.find((each) => each[field][name])[field][name][1];
  const heads = shown.map((name) => make("th", { scope: "col" }, make("span", { class: "title", text: name }),
    make("span", { class: "unit", text: `${unit}% of ${count(needed(name))} ${needed(name) === 1 ? "fact" : "facts"}` })));
  const rows = data.summaries.map((each) => make("tr", { class: each.name === data.recommended.lead && "lead" }, strategyHead(each.name),
    ...shown.map((name) => {
      const [found, all] = each[field][name] || [0, 0];
      const share = all ? found / all : 0;
      return make("td", { class: "share" }, make("span", { class: "bar", style: `width:calc((100% - 8px) * ${share.toFixed(3)})` }),
        make("span", { text: all ? figure(share) : "-" }));
    })));
  byId(id).append(captioned(caption),
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, make("span", { class: "title", text: "Strategy" })), ...heads)),
    make("tbody", {}, ...rows));
}

function showCauses(data) {
  const heads = [["Strategy", "", ""], ["Cause", "strategy's step and its reason", "words"], ["Breaks", "requests", ""],
    ["Lost", "cached tokens", ""]];
  const rows = data.summaries.flatMap((each) => each.causes.map(([cause, breaks, lost]) =>
    make("tr", {}, strategyHead(each.name), make("td", { class: "words", text: cause }), make("td", { text: count(breaks) }),
      make("td", { text: count(lost) }))));
  if (!rows.length) rows.push(make("tr", {}, make("td", { colspan: 4, text: "No prefix broke." })));
  byId("causes").append(captioned("Causes of broken prefixes, most lost tokens first"),
    make("thead", {}, make("tr", {}, ...heads.map(([name, unit, kind]) => make("th", { scope: "col", class: kind },
      make("span", { class: "title", text: name }), make("span", { class: "unit", text: unit }))))),
    make("tbody", {}, ...rows.slice(0, 200)));
}
