// Elements are created here. Text is always set as text: nothing in a transcript is parsed as markup.

const SVG = "http://www.w3.org/2000/svg";
// Each strategy has a shape of its own beside its colour: sides, turn in degrees, depth of the notches of a star.
const SHAPES = [[0], [4, 45], [3, -90], [4, 0], [3, 90], [5, -90, .45], [6, 0], [4, 45, .4], [4, 0, .4], [5, -90], [3, 0], [8, 0, .6]];
const COLOURS = 8;

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

function shape(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function byId(id) { return document.getElementById(id); }

function count(number) { return Math.round(number).toLocaleString("en"); }

function percent(share) { return share === null || share === undefined ? "-" : `${(100 * share).toFixed(0)} %`; }

function dollars(amount) {
  const digits = Math.abs(amount) >= 1000 ? 0 : 2;
  return `$${amount.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}

// The class of a strategy's colour; baselines are grey and hollow.
function seriesOf(name) {
  if (data.baselines.includes(name)) return "series base";
  return `series s${data.candidates.filter((each) => !data.baselines.includes(each)).indexOf(name) % COLOURS}`;
}

// The path of a strategy's shape around a point.
function outline(name, x, y, radius) {
  const [sides, turn, notch] = SHAPES[data.candidates.indexOf(name) % SHAPES.length];
  if (!sides) return `M${x - radius} ${y}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0Z`;
  const corners = notch ? 2 * sides : sides;
  const points = Array.from({ length: corners }, (_, place) => {
    const angle = (turn + 360 * place / corners) * Math.PI / 180;
    const reach = 1.25 * radius * (place % 2 && notch ? notch : 1);
    return `${(x + reach * Math.cos(angle)).toFixed(1)} ${(y + reach * Math.sin(angle)).toFixed(1)}`;
  });
  return `M${points.join("L")}Z`;
}

function markOf(name) {
  return shape("svg", { class: `mark-of ${seriesOf(name)}`, viewBox: "0 0 16 16", "aria-hidden": "true" },
    shape("path", { class: "dot", d: outline(name, 8, 8, 5) }));
}

// Round ticks of an axis that starts at zero.
function ticksUpTo(most, wanted = 5) {
  const rough = Math.max(most, 1e-9) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  const ticks = [];
  for (let at = 0; at < most + step - 1e-9; at += step) ticks.push(at);
  return ticks;
}

// An SVG with axes as wide as its place on the page, and the functions that map a value to its position.
function frame(width, height, xs, ys, { label, xLabel, yLabel, xText = String, yText = String }) {
  const left = 56, right = width - 20, top = 28, bottom = height - 42;
  const x = (value) => left + (right - left) * (value - xs[0]) / (xs[xs.length - 1] - xs[0] || 1);
  const y = (value) => bottom - (bottom - top) * (value - ys[0]) / (ys[ys.length - 1] - ys[0] || 1);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const tick of ys) svg.append(shape("path", { class: "grid", d: `M${left} ${y(tick)}H${right}` }));
  svg.append(shape("path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` }));
  for (const tick of xs) {
    svg.append(shape("path", { class: "axis", d: `M${x(tick)} ${bottom}v4` }),
      shape("text", { x: x(tick), y: bottom + 17, "text-anchor": "middle", text: xText(tick) }));
  }
  for (const tick of ys) svg.append(shape("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end", text: yText(tick) }));
  svg.append(shape("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle", text: xLabel }),
    shape("text", { x: 4, y: 14, text: yLabel }));
  return { svg, x, y, left, right, top, bottom };
}

// Draw a chart at the width of its figure, and again when that changes.
function drawn(figure, draw) {
  let width = 0;
  const redraw = () => {
    const found = Math.max(280, Math.floor(figure.clientWidth));
    if (found === width) return;
    width = found;
    draw(width);
  };
  new ResizeObserver(redraw).observe(figure);
  redraw();
}

function keys(names, chosen) {
  return make("ul", { class: "keys", "aria-label": "Strategies" },
    ...names.map((name) => make("li", { class: name === chosen && "chosen" }, markOf(name), name)));
}
