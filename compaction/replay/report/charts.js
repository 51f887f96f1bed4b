// The charts and tables over all conversations, and the chart of one conversation's request sizes.

function showFigures(data) {
  const heads = ["strategy", "cost", "usable", "old", "words", "spans", "constraints", "over", "bad", "edited", "breaks", "peak", "CPU s"];
  const table = byId("figures");
  table.append(make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { scope: "col", text })))));
  const body = make("tbody");
  for (const each of data.summaries) {
    const shares = [each.old, each.words, each.spans, each.constraints].map(percent);
    const counts = [each.over, each.bad, each.edited, each.breaks, each.peak].map(count);
    const cells = [interval(each.cost, 2, 1), interval(each.usable, 0, 100), ...shares, ...counts, each.seconds.toFixed(1)];
    body.append(make("tr", {}, make("th", { scope: "row", text: each.name }), ...cells.map((text) => make("td", { text }))));
  }
  table.append(body);
}

function interval([value, low, high], digits, unit) {
  if (value === null) return "-";
  const text = (unit * value).toFixed(digits);
  return low === null ? text : `${text} (${(unit * low).toFixed(digits)}-${(unit * high).toFixed(digits)})`;
}

function showFrontier(data) {
  const shown = data.summaries.filter((each) => each.cost[0] !== null && each.usable[0] !== null);
  const xs = ticksUpTo(Math.max(1, ...shown.map((each) => Math.min(each.cost[2] ?? each.cost[0], 3))));
  const { svg, x, y } = frame(760, 360, xs, [0, 0.25, 0.5, 0.75, 1], {
    label: "Cost against recall of each strategy, with 95 % intervals", xLabel: "cost, as a share of sending everything",
    yLabel: "needed facts usable", xText: (value) => value.toFixed(1), yText: percent,
  });
  const most = xs[xs.length - 1];
  for (const each of shown) {
    const colour = colourOf(data.contenders.indexOf(each.name));
    const [cost, cheap, dear] = each.cost, [recall, low, high] = each.usable;
    const at = x(Math.min(cost, most));
    if (cheap !== null) svg.append(shape("path", { stroke: colour, "stroke-opacity": .45, "stroke-width": 2, fill: "none",
      d: `M${x(cheap)} ${y(recall)}H${x(Math.min(dear, most))}M${at} ${y(low)}V${y(high)}` }));
    svg.append(shape("circle", { cx: at, cy: y(recall), r: 6, fill: colour },
      shape("title", { text: `${each.name}: cost ${interval(each.cost, 2, 1)}, usable ${interval(each.usable, 0, 100)} %` })));
    const end = at > 600;
    svg.append(shape("text", { class: "name", x: at + (end ? -10 : 10), y: y(recall) - 8, "text-anchor": end ? "end" : "start",
      text: each.name }));
  }
  byId("frontier").append(svg);
}

// A group of bars for each class, with one bar per strategy.
function showBars(id, data, field, classes, caption) {
  const shown = classes.filter((name) => data.summaries.some((each) => each[field][name]));
  const names = data.summaries.map((each) => each.name);
  const colours = names.map((name) => colourOf(data.contenders.indexOf(name)));
  const { svg, x, y } = frame(560, 260, [0, shown.length || 1], [0, 0.25, 0.5, 0.75, 1], {
    label: caption, xLabel: "", yLabel: "usable", xText: () => "", yText: percent,
  });
  shown.forEach((name, place) => {
    const left = x(place + 0.08), width = (x(place + 0.92) - left) / names.length;
    data.summaries.forEach((each, number) => {
      const [found, needed] = each[field][name] || [0, 0];
      const share = needed ? found / needed : 0;
      svg.append(shape("rect", { x: left + number * width, y: y(share), width: Math.max(1, width - 1), height: y(0) - y(share),
        fill: colours[number] }, shape("title", { text: `${each.name}, ${name}: ${percent(share)} of ${count(needed)}` })));
    });
    svg.append(shape("text", { x: x(place + 0.5), y: y(0) + 16, "text-anchor": "middle", text: name }));
  });
  byId(id).append(make("figcaption", { text: caption }), svg, keys(names, colours));
}

function showCauses(data) {
  const table = byId("causes");
  const heads = ["strategy", "cause", "breaks", "cached tokens lost"];
  table.append(make("thead", {}, make("tr", {}, ...heads.map((text) =>
    make("th", { scope: "col", text, class: text === "cause" && "words" })))));
  const rows = data.summaries.flatMap((each) => each.causes.map(([cause, breaks, lost]) =>
    make("tr", {}, make("td", { text: each.name }), make("td", { class: "words", text: cause }),
      make("td", { text: count(breaks) }), make("td", { text: count(lost) }))));
  if (!rows.length) rows.push(make("tr", {}, make("td", { colspan: 4, text: "No prefix broke." })));
  table.append(make("tbody", {}, ...rows.slice(0, 200)));
}

// ---------------------------------------------------------------- one conversation

function showSizes(data, conversation, chosen, call, onPick) {
  const names = Object.keys(conversation.runs);
  const figure = byId("sizes");
  const calls = conversation.calls.length;
  const most = Math.max(data.window, ...names.filter((name) => name !== "none")
    .flatMap((name) => [largest(conversation.runs[name].tokens)]));
  const xs = ticksUpTo(Math.max(calls - 1, 1));
  const { svg, x, y } = frame(1120, 320, xs, ticksUpTo(most), {
    label: "Size of each request, by strategy", xLabel: "call", yLabel: "tokens", xText: count, yText: count,
  });
  const ceiling = y(ticksUpTo(most).at(-1));
  svg.append(shape("path", { class: "window", d: `M${x(0)} ${y(data.window)}H${x(xs[xs.length - 1])}` }));
  const ordered = [...names.filter((name) => name !== chosen), chosen];
  for (const name of ordered) {
    const run = conversation.runs[name], colour = colourOf(data.contenders.indexOf(name));
    const strong = name === chosen;
    const dot = (place) => `M${x(place).toFixed(1)} ${Math.max(ceiling, y(run.tokens[place])).toFixed(1)}h0`;
    svg.append(shape("path", { d: curve(run.tokens, x, y, ceiling), fill: "none", stroke: colour,
      "stroke-width": strong ? 2 : 1.2, "stroke-opacity": strong ? 1 : .5 }));
    svg.append(shape("path", { d: run.edited.map(dot).join(""), stroke: colour, "stroke-width": strong ? 7 : 4, class: "edited",
      "stroke-linecap": "round", "stroke-opacity": strong ? 1 : .5 }));
    if (strong) svg.append(shape("path", { d: run.breaks.map(([place]) => `M${x(place).toFixed(1)} ${y(0)}v-9`).join(""),
      stroke: colour, "stroke-width": 1.5 }));
  }
  if (calls) svg.append(shape("path", { class: "axis", d: `M${x(call)} ${ceiling}V${y(0)}` }));
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect();
    const place = (event.clientX - box.left) / box.width * 1120;
    onPick(Math.round((place - x(0)) / (x(1) - x(0))));
  });
  const caption = "Tokens of each request. Dots: the request was compacted. Ticks at the bottom: the cached prefix of the chosen strategy broke. Dashed: the window.";
  figure.replaceChildren(make("figcaption", { text: caption }), svg,
    keys(names, names.map((name) => colourOf(data.contenders.indexOf(name)))));
}

function largest(values) { return values.reduce((most, value) => Math.max(most, value), 0); }

// A line of a few thousand points at most: the minimum and maximum of each stretch of calls.
function curve(values, x, y, ceiling) {
  const stride = Math.max(1, Math.ceil(values.length / 2000));
  const points = [];
  for (let start = 0; start < values.length; start += stride) {
    let low = start, high = start;
    for (let at = start; at < Math.min(start + stride, values.length); at += 1) {
      if (values[at] < values[low]) low = at;
      if (values[at] > values[high]) high = at;
    }
    for (const at of low === high ? [low] : [Math.min(low, high), Math.max(low, high)]) {
      points.push(`${x(at).toFixed(1)} ${Math.max(ceiling, y(values[at])).toFixed(1)}`);
    }
  }
  return points.length ? `M${points.join("L")}` : "";
}
