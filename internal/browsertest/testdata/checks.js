// What the tests ask of a page. Each function returns a list of complaints.
globalThis.checks = (() => {
  const short = (text) => text.trim().replace(/\s+/g, " ").slice(0, 60);
  const round = (r) => `${Math.round(r.left)},${Math.round(r.top)} ${Math.round(r.width)}x${Math.round(r.height)}`;

  // clip returns the part of a rectangle that the scrolling ancestors of the element show.
  function clip(rect, element) {
    let { left, top, right, bottom } = rect;
    for (let e = element; e && e !== document.documentElement; e = e.parentElement) {
      const style = getComputedStyle(e);
      if (style.clipPath !== "none") return { width: 0, height: 0 }; // for screen readers only
      if (style.overflow === "visible") continue;
      const box = e.getBoundingClientRect();
      [left, top] = [Math.max(left, box.left), Math.max(top, box.top)];
      [right, bottom] = [Math.min(right, box.right), Math.min(bottom, box.bottom)];
    }
    return { left, top, right, bottom, width: right - left, height: bottom - top };
  }

  // texts returns the rectangles of the lines of text that are seen.
  function texts() {
    const list = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (!node.data.trim() || !node.parentElement.checkVisibility({ visibilityProperty: true })) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const r of range.getClientRects()) {
        const rect = clip(r, node.parentElement);
        if (rect.width > 1 && rect.height > 1) list.push({ rect, text: short(node.data) });
      }
    }
    return list;
  }

  // overlaps returns the pairs of rectangles that share more than slack pixels each way.
  function overlaps(list, slack) {
    list.sort((a, b) => a.rect.top - b.rect.top);
    const bad = [];
    for (let i = 0; i < list.length; i++) {
      for (let k = i + 1; k < list.length && list[k].rect.top < list[i].rect.bottom - slack; k++) {
        const [a, b] = [list[i].rect, list[k].rect];
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) <= slack) continue;
        if (Math.min(a.bottom, b.bottom) - b.top <= slack) continue;
        bad.push(`"${list[i].text}" (${round(a)}) and "${list[k].text}" (${round(b)}) overlap`);
      }
    }
    return bad;
  }

  // layout: nothing is wider than the page, and no text lies upon another.
  function layout() {
    const bad = overlaps(texts(), 2);
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > width) {
      bad.push(`the page is ${document.documentElement.scrollWidth} pixels wide, the window ${width}`);
      for (const e of document.body.querySelectorAll("*")) {
        const rect = clip(e.getBoundingClientRect(), e.parentElement);
        if (rect.right > width + 1 && rect.width > 0) bad.push(`<${e.localName} class="${e.className}"> ends at ${rect.right}`);
      }
    }
    return bad;
  }

  // ages: no column moves when the ages in a table grow.
  function ages() {
    const times = [...document.querySelectorAll("td time")];
    const texts = times.map((e) => e.textContent);
    const columns = (text) => {
      for (const e of times) e.textContent = text;
      return [...document.querySelectorAll("thead th")].map((e) => e.getBoundingClientRect().left);
    };
    const young = columns("1 s ago");
    const bad = columns("in 119 min").flatMap((left, i) => (left === young[i] ? [] : [`column ${i} moves from ${young[i]} to ${left}`]));
    times.forEach((e, i) => (e.textContent = texts[i]));
    return bad;
  }

  // picture: no label lies upon another, and the name of a state is within its border.
  function picture() {
    const svg = document.querySelector("#picture svg");
    const labels = [...svg.querySelectorAll("text")].map((e) => ({ rect: e.getBoundingClientRect(), text: short(e.textContent) }));
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    const bad = overlaps(labels, 2 * scale);
    for (const node of svg.querySelectorAll(".node")) {
      const border = node.querySelector("path, polygon, ellipse").getBoundingClientRect();
      for (const text of node.querySelectorAll("text")) {
        const r = text.getBoundingClientRect();
        if (r.left < border.left - 1 || r.right > border.right + 1) bad.push(`"${text.textContent}" leaves its border`);
      }
    }
    return bad;
  }

  // fits: the button Fit shows the whole picture.
  function fits() {
    const view = document.getElementById("picture");
    [...document.querySelectorAll("button")].find((e) => e.textContent === "Fit").click();
    return view.scrollWidth <= view.clientWidth && view.scrollHeight <= view.clientHeight;
  }

  // focusable returns what the keyboard has to reach, and marks each with a number.
  function focusable() {
    const all = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')];
    return all.filter((e) => e.checkVisibility({ visibilityProperty: true })).map((e, i) => {
      e.reach = i;
      return `${e.localName} "${short(e.ariaLabel ?? e.textContent)}"`;
    });
  }

  // focused returns the number of the element that has the focus, and whether that is seen.
  function focused() {
    const e = document.activeElement;
    const style = getComputedStyle(e);
    return {
      frame: e.localName === "iframe",
      reach: e.reach ?? -1,
      visible: (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2) || style.boxShadow !== "none",
    };
  }

  // shift returns how much of the page has moved while it loaded.
  const shift = () => new Promise((resolve) => {
    let sum = 0;
    new PerformanceObserver((list) => {
      for (const e of list.getEntries()) sum += e.hadRecentInput ? 0 : e.value;
    }).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => resolve(sum), 100);
  });

  // accessible returns the violations that axe finds.
  async function accessible() {
    const result = await axe.run(document, {
      iframes: false, // the picture is a page of its own, and checked as such
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    });
    return result.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.html.slice(0, 200)}: ${n.failureSummary}`));
  }

  return { layout, ages, picture, fits, focusable, focused, shift, accessible };
})();
