"use strict";

(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const root = document.documentElement;
  const narrow = matchMedia("(max-width: 640px)");
  const touch = matchMedia("(hover: none)");
  const variable = /^var\((--[a-z]+)\)$/;

  // Only what is a colour is looked up: a name that reads like one of our variables stays a name.
  function painted(value, colours, isColour) {
    if (typeof value === "string") {
      const match = isColour && variable.exec(value);
      return match ? colours.getPropertyValue(match[1]).trim() : value;
    }
    if (Array.isArray(value)) return value.map((each) => painted(each, colours, isColour));
    if (value === null || typeof value !== "object") return value;
    const entries = Object.entries(value);
    return Object.fromEntries(entries.map(([key, each]) => [key, painted(each, colours, /color(scale)?$/.test(key))]));
  }

  function put(target, path, value) {
    const keys = path.split(".");
    const last = keys.pop();
    keys.reduce((at, key) => (at[key] ??= {}), target)[last] = value;
  }

  function draw(id) {
    const node = document.getElementById(id);
    const figure = painted(charts[id], getComputedStyle(root), false);
    const { data, layout } = figure;
    if (narrow.matches) for (const [path, value] of Object.entries(figure.narrow)) put(layout, path, value);
    // A finger that moves over a chart scrolls the page.
    if (touch.matches) {
      layout.dragmode = false;
      for (const axis of [layout.xaxis, layout.yaxis]) axis.fixedrange = true;
    }
    layout.width = node.clientWidth;
    layout.height = node.clientHeight;
    return Plotly.react(node, data, layout, {
      displaylogo: false,
      displayModeBar: touch.matches ? false : "hover",
      modeBarButtonsToRemove: ["select2d", "lasso2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d"],
      typesetMath: false,
    });
  }

  async function drawAll() {
    await Promise.all(Object.keys(charts).map(draw));
    root.dataset.drawn = String(Number(root.dataset.drawn ?? 0) + 1);
  }

  function printing(on) {
    root.classList.toggle("printing", on);
    drawAll();
  }

  let asked = 0;
  let width = innerWidth;
  addEventListener("resize", () => {
    // A phone's address bar comes and goes, and moves only the height.
    if (innerWidth === width) return;
    width = innerWidth;
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(drawAll);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("beforeprint", () => printing(true));
  addEventListener("afterprint", () => printing(false));
  drawAll();
})();
