// The chart of one session's request sizes.

function showSizes(data, conversation, chosen, call, onPick) {
  const names = Object.keys(conversation.runs), figure = byId("sizes");
  const calls = conversation.calls.length;
  const most = Math.max(data.window, ...names.filter((name) => name !== "none")
    .flatMap((name) => [largest(conversation.runs[name].tokens)]));
  const width = Math.max(280, Math.floor(figure.clientWidth));
  const xs = ticksUpTo(Math.max(calls - 1, 1), width < 500 ? 4 : 8), ys = ticksUpTo(1.05 * most, 4);
  const { svg, x, y, left, right, bottom } = frame(width, 300, xs, ys, {
    label: `Tokens of each request of each strategy; ${chosen} is drawn strong`, xLabel: "call", yLabel: "tokens of the request",
    xText: count, yText: count,
  });
  const ceiling = y(ys.at(-1));
  for (const name of [...names.filter((each) => each !== chosen), chosen]) {
    const run = conversation.runs[name];
    const mark = (place) => outline(name, x(place), Math.max(ceiling, y(run.tokens[place])), name === chosen ? 4 : 2.5);
    const group = shape("g", { class: `${seriesOf(name)} ${name === chosen ? "strong" : "faint"}` },
      shape("path", { class: "line", d: curve(run.tokens, x, y, ceiling) }),
      shape("path", { class: "dot edited", d: run.edited.map(mark).join("") }));
    if (name === chosen) group.append(shape("path", { class: "broke", d: run.breaks.map(([place]) => `M${x(place).toFixed(1)} ${bottom}v-9`).join("") }));
    svg.append(group);
  }
  if (calls) svg.append(shape("path", { class: "cursor", d: `M${x(call)} ${ceiling}V${bottom}` }));
  svg.append(shape("path", { class: "window", d: `M${left} ${y(data.window)}H${right}` }),
    shape("text", { class: "name label", x: right, y: y(data.window) - 5, "text-anchor": "end", text: `window, ${count(data.window)}` }));
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect();
    const place = (event.clientX - box.left) / box.width * width;
    onPick(Math.round((place - x(0)) / (x(1) - x(0))));
  });
  const caption = "Size of each request. A shape on a line: the request was compacted. Ticks at the bottom: the cached prefix of the " +
    "selected strategy broke. Upright dashes: the selected call. A request larger than the chart is drawn at its top edge.";
  figure.replaceChildren(make("figcaption", { text: caption }), svg, keys(names, chosen));
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
