"use strict";

(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const root = document.documentElement;
  const narrow = matchMedia("(max-width: 640px)");
  const touch = matchMedia("(hover: none)");
  const variable = /^var\((--[a-z]+)\)$/;

  // Replace CSS variables by their values, only where Plotly expects a color: a feature may have such a name.
  function resolveColors(value, colors, isColor) {
    if (typeof value === "string") {
      const match = isColor && variable.exec(value);
      return match ? colors.getPropertyValue(match[1]).trim() : value;
    }
    if (Array.isArray(value)) return value.map((each) => resolveColors(each, colors, isColor));
    if (value === null || typeof value !== "object") return value;
    const entries = Object.entries(value);
    return Object.fromEntries(entries.map(([key, each]) => [key, resolveColors(each, colors, /color(scale)?$/.test(key))]));
  }

  function setByPath(target, path, value) {
    const keys = path.split(".");
    const last = keys.pop();
    keys.reduce((at, key) => (at[key] ??= {}), target)[last] = value;
  }

  function draw(id) {
    const node = document.getElementById(id);
    const figure = resolveColors(charts[id], getComputedStyle(root), false);
    const { data, layout } = figure;
    if (narrow.matches) for (const [path, value] of Object.entries(figure.narrow)) setByPath(layout, path, value);
    // On a touch screen, a finger that moves over a chart scrolls the page.
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

  // Plotly is in the page as gzip in base 85, with , . : in place of < & >.
  const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%.()*+-;,=:?@^_`{|}~";

  function decode(text) {
    const values = new Uint8Array(128);
    for (let i = 0; i < digits.length; i++) values[digits.charCodeAt(i)] = i;
    const padded = text.padEnd(5 * Math.ceil(text.length / 5), "~");
    const bytes = new DataView(new ArrayBuffer((padded.length / 5) * 4));
    for (let i = 0, at = 0; i < padded.length; at += 4) {
      let value = 0;
      for (const end = i + 5; i < end; i++) value = value * 85 + values[padded.charCodeAt(i)];
      bytes.setUint32(at, value);
    }
    return bytes.buffer.slice(0, bytes.byteLength - (padded.length - text.length));
  }

  async function loadPlotly() {
    const packed = new Blob([decode(document.getElementById("plotly").textContent)]);
    const script = document.createElement("script");
    script.textContent = await new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).text();
    document.head.append(script);
  }

  const loaded = loadPlotly();

  async function drawAll() {
    await loaded;
    await Promise.all(Object.keys(charts).map(draw));
    root.dataset.drawn = String(Number(root.dataset.drawn ?? 0) + 1);
  }

  function setPrinting(on) {
    root.classList.toggle("printing", on);
    drawAll();
  }

  let frame = 0;
  let width = innerWidth;
  addEventListener("resize", () => {
    // The address bar of a phone changes only the height.
    if (innerWidth === width) return;
    width = innerWidth;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(drawAll);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("beforeprint", () => setPrinting(true));
  addEventListener("afterprint", () => setPrinting(false));
  drawAll();
})();
