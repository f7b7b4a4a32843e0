// Draws the DOT text of this page's machine with Graphviz. The page is one of its own,
// because Graphviz is the only part that needs 'wasm-unsafe-eval'.
import { Graphviz } from "./graphviz/graphviz.js";

const view = document.getElementById("picture");
const source = new URL("picture.dot" + location.search, location.href);
const graphviz = await Graphviz.load();
let drawn = ""; // the DOT text of the present picture
let scale = 0; // CSS pixels for each unit of the picture; 0: not yet chosen

// Everything else that an SVG document may have is left out: scripts, styles, handlers,
// foreign content, identifiers.
const elements = new Set(["svg", "g", "title", "path", "polygon", "polyline", "ellipse", "text", "a"]);
const attributes = new Set([
  "viewBox", "class", "transform", "d", "points", "x", "y", "cx", "cy", "rx", "ry",
  "fill", "stroke", "stroke-width", "stroke-dasharray", "text-anchor", "font-size", "font-weight",
]);

// copy returns a copy of the element with what is allowed of it.
function copy(from) {
  const to = document.createElementNS("http://www.w3.org/2000/svg", from.localName);
  for (const a of from.attributes) {
    if (attributes.has(a.name)) to.setAttribute(a.name, a.value);
  }
  const link = from.getAttribute("xlink:href");
  if (link && new URL(link, location.href).origin === location.origin) {
    to.setAttribute("href", link);
    to.setAttribute("target", "_top");
  }
  for (const child of from.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) to.append(child.data);
    else if (elements.has(child.localName)) to.append(copy(child));
  }
  return to;
}

function parse(text) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (root.localName !== "svg") throw new Error("Graphviz returned no SVG");
  return copy(root);
}

// fitText makes the text smaller where the font of this system is wider than the one that
// Graphviz measured with, so that no text leaves its place.
function fitText(svg) {
  const sample = document.createElementNS(svg.namespaceURI, "text");
  sample.textContent = "abcdefghijklmnopqrstuvwxyz";
  sample.setAttribute("font-size", 100);
  svg.append(sample);
  const shrink = Math.min(1, 1270 / sample.getComputedTextLength());
  sample.remove();
  for (const text of svg.querySelectorAll("text")) {
    text.setAttribute("font-size", shrink * text.getAttribute("font-size"));
  }
  for (const node of svg.querySelectorAll(".node")) {
    const room = node.querySelector("path, polygon, ellipse").getBBox().width - 12;
    for (const text of node.querySelectorAll("text")) {
      const excess = text.getComputedTextLength() / room;
      if (excess > 1) text.setAttribute("font-size", text.getAttribute("font-size") / excess);
    }
  }
}

// name gives states and arrows the titles that a pointer shows, and connects each state
// with its arrows: Graphviz titles them s0, s1 and s0->s1.
function name(svg) {
  const title = (g) => g.querySelector("title");
  const words = (g) => [...g.querySelectorAll("text")].map((t) => t.textContent.trim()).join(" ");
  const nodes = new Map([...svg.querySelectorAll(".node")].map((g) => [title(g).textContent, g]));
  const names = new Map([...nodes].map(([id, g]) => [id, g.querySelector("text")?.textContent ?? "start"]));
  for (const edge of svg.querySelectorAll(".edge")) {
    const ends = title(edge).textContent.split("->");
    title(edge).textContent = `${names.get(ends[0])} → ${names.get(ends[1])}: ${words(edge)}`;
    for (const [event, on] of [["pointerenter", true], ["pointerleave", false], ["focusin", true], ["focusout", false]]) {
      for (const id of ends) nodes.get(id)?.addEventListener(event, () => edge.classList.toggle("near", on));
    }
  }
  for (const g of nodes.values()) title(g).textContent = words(g);
  svg.querySelector(".graph > title")?.remove();
  const legend = svg.querySelector(".graph > text");
  document.getElementById("legend").textContent = legend?.textContent ?? "";
  legend?.remove();
}

// zoom changes the scale and keeps the middle of what is seen.
function zoom(to) {
  const svg = view.querySelector("svg");
  if (!svg) return;
  const half = [view.clientWidth / 2, view.clientHeight / 2];
  const middle = [(view.scrollLeft + half[0]) / scale, (view.scrollTop + half[1]) / scale];
  const { width, height } = svg.viewBox.baseVal;
  scale = Math.min(3, Math.max(0.1, to));
  svg.setAttribute("width", width * scale);
  svg.setAttribute("height", height * scale);
  view.scrollTo(middle[0] * scale - half[0], middle[1] * scale - half[1]);
}

// fit returns the scale at which all of the picture is seen.
function fit() {
  const { width, height } = view.querySelector("svg").viewBox.baseVal;
  return Math.min((view.clientWidth - 2) / width, (view.clientHeight - 2) / height);
}

// first shows the picture for the first time: all of it if its text can be read then, else
// the state that wants attention, or the marked one. It does not scroll the page around the
// frame, as scrollIntoView would.
function first(svg) {
  scale = 1;
  zoom(Math.min(1.4, Math.max(1.1, fit())));
  const node = svg.querySelector('.stuck, .node:has([fill="#ffe08a"])') ?? svg.querySelector(".node");
  const [at, seen] = [node.getBoundingClientRect(), view.getBoundingClientRect()];
  view.scrollBy(at.left + at.width / 2 - seen.left - seen.width / 2, at.top + at.height / 2 - seen.top - seen.height / 2);
}

async function draw() {
  const answer = await fetch(source);
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  const dot = await answer.text();
  if (dot === drawn) return;
  const svg = parse(graphviz.dot(dot));
  view.replaceChildren(svg);
  drawn = dot;
  fitText(svg);
  name(svg);
  if (scale === 0) first(svg);
  else zoom(scale);
}

function show() {
  draw().catch((err) => {
    if (!drawn) view.textContent = `The picture cannot be drawn: ${err.message}`;
  });
}

for (const [label, to] of [["−", () => scale / 1.25], ["+", () => scale * 1.25], ["Fit", fit], ["1:1", () => 1]]) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.ariaLabel = { "−": "Zoom out", "+": "Zoom in" }[label] ?? null;
  button.addEventListener("click", () => drawn && zoom(to()));
  document.getElementById("legend").before(button);
}
addEventListener("message", (e) => e.origin === location.origin && e.data === "refresh" && show());
show();
