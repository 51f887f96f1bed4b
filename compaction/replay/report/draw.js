// Elements are created here. Text is always set as text: nothing in a transcript is parsed as markup.

const COLOURS = ["#8c959f", "#bf8700", "#cf222e", "#0969da", "#2da44e", "#8250df", "#0f8b8d", "#bf3989", "#9a6700", "#57606a"];
const SVG = "http://www.w3.org/2000/svg";

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

function colourOf(place) { return COLOURS[place % COLOURS.length]; }

// Round ticks of an axis that starts at zero.
function ticksUpTo(most) {
  const rough = Math.max(most, 1e-9) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  const ticks = [];
  for (let at = 0; at < most + step; at += step) ticks.push(at);
  return ticks;
}

// An SVG with axes, and the functions that map a value to its position.
function frame(width, height, xs, ys, { label, xLabel, yLabel, xText = String, yText = String }) {
  const left = 56, right = width - 14, top = 12, bottom = height - 38;
  const x = (value) => left + (right - left) * (value - xs[0]) / (xs[xs.length - 1] - xs[0] || 1);
  const y = (value) => bottom - (bottom - top) * (value - ys[0]) / (ys[ys.length - 1] - ys[0] || 1);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  svg.append(shape("path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` }));
  for (const tick of xs) svg.append(shape("text", { x: x(tick), y: bottom + 16, "text-anchor": "middle", text: xText(tick) }));
  for (const tick of ys) svg.append(shape("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end", text: yText(tick) }));
  svg.append(shape("text", { x: right, y: height - 4, "text-anchor": "end", text: xLabel }));
  svg.append(shape("text", { x: left + 6, y: top + 8, text: yLabel }));
  return { svg, x, y };
}

function keys(names, colours) {
  return make("ul", { class: "keys" }, ...names.map((name, place) => {
    const swatch = make("span");
    swatch.style.background = colours[place];
    return make("li", {}, swatch, name);
  }));
}
