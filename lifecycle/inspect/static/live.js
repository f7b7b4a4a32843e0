// Refreshes the page after a change, and every 15 seconds, because ages grow and deadlines
// pass without a change. A page that is not visible has no connection. Where a browser has
// no EventSource, the page stays as it was loaded.
const pause = 2000; // the least time between two refreshes, in milliseconds
const idle = 15000; // the greatest one
const status = document.getElementById("live");
const machine = new URLSearchParams(location.search).get("machine");
let source; // the connection; undefined while the page is hidden
let timer, due; // the next refresh and its time
let last = Date.now(); // the time of the last refresh

function show(state, text) {
  if (status.dataset.state === state) return; // a screen reader reads it once
  status.dataset.state = state;
  status.textContent = text;
}

function connect() {
  source = new EventSource("events" + (machine === null ? "" : "?machine=" + encodeURIComponent(machine)));
  source.onopen = () => {
    show("live", "Live");
    refreshIn(0); // what changed while there was no connection
  };
  source.onerror = () => {
    if (source?.readyState === EventSource.CLOSED) show("polling", "Refreshed every 15 s");
    else show("lost", "Connection lost");
  };
  source.addEventListener("change", () => refreshIn(0));
  source.addEventListener("problem", () => refreshIn(0));
}

function refreshIn(delay) {
  const at = Math.max(Date.now() + delay, last + pause);
  if (timer && due <= at) return;
  clearTimeout(timer);
  due = at;
  timer = setTimeout(refresh, at - Date.now());
}

async function refresh() {
  timer = undefined;
  last = Date.now();
  if (source?.readyState === EventSource.CLOSED) connect(); // the server has refused it
  try {
    if (getSelection().type !== "Range") { // text that is being copied stays
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
      if (answer.redirected) throw new Error("the server redirects, load the page again"); // to log in
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      page.getElementById("live").replaceWith(status.cloneNode(true));
      document.title = page.title;
      merge(document.body, page.body);
      for (const frame of document.querySelectorAll("iframe")) frame.contentWindow.postMessage("refresh", location.origin);
      if (status.dataset.state === "failed") show("live", "Live");
    }
  } catch (err) {
    show("failed", `Not refreshed: ${err.message}`);
  }
  if (source) refreshIn(idle);
}

// key returns what a row or section is about, or null.
function key(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return null;
  if (node.localName === "iframe") return node.getAttribute("src"); // a new one has no place in the history of the tab
  if (node.matches("tr, li, article")) return node.querySelector("a")?.getAttribute("href") ?? null;
  return node.id || node.getAttribute("aria-labelledby");
}

// merge makes an element like another one. What is about the same thing stays, and with it
// the focus, the position of scrolled tables, what is unfolded, and the frame of the picture.
export function merge(old, next) {
  for (const a of [...old.attributes]) {
    if (!next.hasAttribute(a.name) && a.name !== "open") old.removeAttribute(a.name);
  }
  for (const a of next.attributes) {
    if (old.getAttribute(a.name) !== a.value) old.setAttribute(a.name, a.value);
  }
  const wanted = new Set([...next.children].map(key));
  const kept = new Map();
  for (const child of [...old.children]) {
    const k = key(child);
    if (wanted.has(k)) kept.set(k, child);
    else child.remove();
  }
  let at = old.firstChild;
  for (const child of [...next.childNodes]) {
    const k = key(child);
    const same = k === null ? at : kept.get(k);
    if (!same || same.nodeName !== child.nodeName || key(same) !== k) {
      old.insertBefore(child, at);
      continue;
    }
    kept.delete(k);
    while (at && at !== same && key(at) === null) at = removed(at);
    if (at === same) at = at.nextSibling;
    else old.insertBefore(same, at);
    if (same.nodeType === Node.ELEMENT_NODE) merge(same, child);
    else if (same.data !== child.data) same.data = child.data;
  }
  while (at) at = removed(at);
}

// removed removes a node and returns the one behind it.
function removed(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

function visible() {
  if (document.hidden) {
    source?.close();
    source = undefined;
    clearTimeout(timer);
    timer = undefined;
  } else if (!source) {
    connect();
    refreshIn(idle); // also if the server refuses the connection
  }
}

if ("EventSource" in window) {
  document.addEventListener("visibilitychange", visible);
  visible();
}
