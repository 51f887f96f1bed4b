// The chart of cost against recall. Labels are moved until none overlaps another or a point.

const LABEL = 13;
const LINE = 15;

function showFrontier(data) {
  const shown = data.summaries.filter((each) => each.cost[0] !== null && each.usable[0] !== null);
  const figure = byId("frontier");
  drawn(figure, (width) => {
    const xs = ticksUpTo(Math.max(1, ...shown.map((each) => each.cost[0])), width < 500 ? 4 : 8);
    const most = xs[xs.length - 1];
    const plot = frame(width, width < 500 ? 340 + 12 * shown.length : 440, xs, [0, 0.2, 0.4, 0.6, 0.8, 1], {
      label: `Cost against needed facts kept: ${shown.map((each) =>
        `${each.name} ${each.cost[0].toFixed(2)}, ${percent(each.usable[0])}`).join("; ")}. The table below has these figures.`,
      xLabel: width < 500 ? "cost, share of sending everything" : "cost of all requests, as a share of sending everything",
      yLabel: "needed facts kept, %", xText: (value) => value.toFixed(value % 0.1 > 1e-9 && value % 0.1 < 0.0999 ? 2 : 1), yText: percent,
    });
    const { svg, x, y } = plot;
    const taken = [], crossed = [];
    figure.replaceChildren(svg);
    const least = data.minimum_recall;
    svg.append(shape("path", { class: "least", d: `M${plot.left} ${y(least)}H${plot.right}` }));
    const first = (each) => each.name === data.recommended.lead ? 0 : data.baselines.includes(each.name) ? 2 : 1;
    const ordered = [...shown].sort((one, other) => first(one) - first(other));
    for (const each of ordered.toReversed()) {
      const [cost, cheap, dear] = each.cost, [recall, low, high] = each.usable;
      const group = shape("g", { class: seriesOf(each.name) });
      if (cheap !== null) group.append(shape("path", { class: "interval",
        d: `M${x(cheap)} ${y(recall)}H${x(Math.min(dear, most))}M${x(cost)} ${y(low)}V${y(high)}` }));
      if (cheap !== null) crossed.push([x(cheap), y(recall) - 1, x(Math.min(dear, most)), y(recall) + 1], [x(cost) - 1, y(high), x(cost) + 1, y(low)]);
      if (each.name === data.recommended.lead) group.append(shape("circle", { class: "ring", cx: x(cost), cy: y(recall), r: 13 }));
      group.append(shape("path", { class: "dot", d: outline(each.name, x(cost), y(recall), 6) },
        shape("title", { text: `${each.name}: cost ${interval(each.cost, 2, 1)}, facts ${interval(each.usable, 0, 100)} %` })));
      svg.append(group);
      const around = each.name === data.recommended.lead ? 16 : 9;
      taken.push([x(cost) - around, y(recall) - around, x(cost) + around, y(recall) + around]);
    }
    drawBetter(plot, taken);
    crossed.push([plot.left, y(least) - 1, plot.right, y(least) + 1]);
    for (const each of ordered) {
      placeLabel(plot, taken, crossed, linesOf(each.name), x(each.cost[0]), y(each.usable[0]), "name");
    }
    placeLabel(plot, taken, crossed, [`minimum ${percent(least)}`], plot.left + 4, y(least), "soft");
  });
}

// An arrow to the upper left, as high at the left edge as there is room.
function drawBetter({ svg, left, top, bottom }, taken) {
  const x = left + 14;
  let y = top + 12;
  while (y < bottom - 40 && taken.some(([a, b, c, d]) => x + 78 > a && x < c && y + 30 > b && y - 6 < d)) y += 12;
  svg.append(shape("path", { class: "better", d: `M${x + 24} ${y + 24}L${x} ${y}m0 9v-9h9` }),
    shape("text", { class: "better-text", x: x + 30, y: y + 22, text: "better" }));
  taken.push([x - 6, y - 6, x + 76, y + 30]);
}

function linesOf(name) { return name.match(/.{1,22}(?=[\s_/.-]|$)[\s_/.-]?|.{1,22}/g) || [name]; }

// Put a label at the first free place around a point, near ones first, off all lines if there is room nearby.
// It gets a line to its point if it is far.
function placeLabel(plot, taken, crossed, lines, x, y, kind) {
  const { svg, left, right, top, bottom } = plot;
  const text = shape("text", { class: `${kind} label` }, ...lines.map((line) => shape("tspan", { text: line })));
  svg.append(text);
  const width = Math.max(...[...text.children].map((line) => line.getComputedTextLength())) + 4, height = LINE * lines.length;
  const apart = ([x1, y1, x2, y2]) => ([a, b, c, d]) => x2 < a || x1 > c || y2 < b || y1 > d;
  const free = (place, obstacles) => place[0] >= left + 2 && place[2] <= right + 16 && place[1] >= top - 12 && place[3] <= bottom - 2 &&
    obstacles.every(apart(place));
  const [box, far] = nearby(x, y, width, height, (box) => free(box, [...taken, ...crossed])) ||
    nearest(plot, x, y, width, height, (box) => free(box, taken)) || [[x + 14, y, x + 14 + width, y + height], false];
  taken.push(box);
  [...text.children].forEach((line, place) => {
    line.setAttribute("x", box[0] + 2);
    line.setAttribute("y", box[1] + LABEL - 1 + LINE * place);
  });
  if (far) {
    const nearX = Math.max(box[0], Math.min(x, box[2])), nearY = Math.max(box[1], Math.min(y, box[3]));
    text.before(shape("path", { class: "leader", d: `M${x} ${y}L${nearX} ${nearY}` }));
  }
}

// The first free box beside a point, and whether it needs a line to the point.
function nearby(x, y, width, height, free) {
  for (let reach = 14; reach < 50; reach += 8) {
    for (const [across, down] of [[1, 0], [-1, 0], [.7, -.5], [-.7, -.5], [.7, .5], [-.7, .5], [0, -1], [0, 1]]) {
      const x1 = x + across * reach + (across > 0 ? 0 : across < 0 ? -width : -width / 2);
      const y1 = y + down * reach + (down > 0 ? 0 : down < 0 ? -height : -height / 2);
      const box = [x1, y1, x1 + width, y1 + height];
      if (free(box)) return [box, reach > 22];
    }
  }
  return null;
}

// The free box nearest to a point in the whole chart.
function nearest({ left, right, top, bottom }, x, y, width, height, free) {
  let best = null, least = Infinity;
  for (let y1 = top - 12; y1 + height < bottom; y1 += 5) {
    for (let x1 = left + 2; x1 + width < right + 16; x1 += 6) {
      const away = Math.hypot(x1 + width / 2 - x, y1 + height / 2 - y);
      const box = [x1, y1, x1 + width, y1 + height];
      if (away < least && free(box)) [best, least] = [[box, true], away];
    }
  }
  return best;
}
