// Refreshes the page: when the server reports a change, and every 15 seconds, because ages
// grow and deadlines pass without a change. A page that is not visible has no connection.
// Where a browser has no EventSource, the page stays as it was loaded.
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
  source = new EventSource(new URL("events" + (machine === null ? "" : "?machine=" + encodeURIComponent(machine)), location.href));
  source.onopen = () => {
    show("live", "Live");
    refreshIn(0); // what changed while there was no connection
  };
  source.onerror = () => {
    if (source?.readyState === EventSource.CLOSED) show("polling", "Refreshed every 15 s");
    else show("lost", "Connection lost");
  };
  source.addEventListener("change", () => refreshIn(0));
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
  try {
    if (!document.hidden && getSelection().type !== "Range") {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
      replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
      for (const target of [window, ...frames]) target.postMessage("refresh", location.origin);
      if (status.dataset.state === "failed") show("live", "Live");
    }
  } catch (err) {
    show("failed", `Not refreshed: ${err.message}`);
  }
  if (source) refreshIn(idle);
}

// replace takes the live parts of the page from a newer one. The focus and the position of
// scrolled tables stay.
function replace(page) {
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = page.getElementById(part.id);
    if (!next || next.innerHTML === part.innerHTML) continue;
    const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const left = [...part.querySelectorAll(".scroll")].map((e) => e.scrollLeft);
    part.replaceChildren(...next.childNodes);
    part.querySelectorAll(".scroll").forEach((e, i) => (e.scrollLeft = left[i] ?? 0));
    if (focused !== null) part.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }
}

function visible() {
  if (document.hidden) {
    source?.close();
    source = undefined;
    clearTimeout(timer);
    timer = undefined;
  } else if (!source) connect();
}

if (status && "EventSource" in window && window.parent === window) {
  document.addEventListener("visibilitychange", visible);
  visible();
}
