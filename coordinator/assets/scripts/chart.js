// Draws charts over time with uPlot. The latest values of a chart also stand below it as text.
// The server serves all files in one folder, so uPlot is beside this file there.
import uPlot from "./uplot.js";
import { el } from "./dom.js";

const COLOURS = ["one", "two", "three", "four"];
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const clock = (_, ticks) => ticks.map(tick => new Date(1000 * tick).toLocaleTimeString("en", {
  hour: "2-digit", minute: "2-digit", ...(ticks[1] - ticks[0] < 60 ? { second: "2-digit" } : {}), hourCycle: "h23",
}));
const dark = matchMedia("(prefers-color-scheme: dark)");

/**
 * Creates a chart. Each of `lines` is `{ label, value, shown }`: the name of the line, a function from a point to its value, and a
 * function from a value to its text. `show(points)` draws the points, which have `at_ms`, oldest first. The chart ends with `signal`.
 */
export function chart(title, lines, signal) {
  const area = el("div", { class: "chart empty", "aria-hidden": "true" }, "The chart needs two points.");
  const caption = el("figcaption", {});
  const figure = el("figure", { "aria-label": title }, area, caption);
  let plot = null;
  let points = [];

  const data = () => [
    points.map(point => point.at_ms / 1000),
    ...lines.map(line => points.map(point => line.value(point) ?? null)),
  ];

  const draw = () => {
    plot?.destroy();
    plot = null;
    area.classList.toggle("empty", points.length < 2);
    if (points.length < 2) return;
    area.replaceChildren();
    const axis = { stroke: colour("dim"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 } };
    plot = new uPlot({
      width: Math.max(area.clientWidth, 50),
      height: 180,
      legend: { show: false },
      cursor: { show: false },
      scales: { y: { range: (_, low, high) => [0, Math.max(high ?? 0, 1) * 1.05] } },
      axes: [{ ...axis, space: 75, values: clock }, {
        ...axis, size: 62,
        values: (_, ticks) => ticks.map(tick => lines[0].shown(tick)),
      }],
      series: [{}, ...lines.map((line, at) => ({
        label: line.label, stroke: colour(COLOURS[at]), width: 2, spanGaps: false, points: { show: points.length < 60, size: 4 },
      }))],
    }, data(), area);
  };

  const observer = new ResizeObserver(() => plot?.setSize({ width: Math.max(area.clientWidth, 50), height: 180 }));
  observer.observe(area);
  dark.addEventListener("change", draw, { signal });
  signal.addEventListener("abort", () => {
    observer.disconnect();
    plot?.destroy();
  });

  figure.show = now => {
    points = now;
    if (plot && points.length > 1) plot.setData(data());
    else draw();
    const last = points.at(-1);
    caption.replaceChildren(...lines.map((line, at) =>
      el("span", { class: COLOURS[at] }, `${line.label}: ${last ? line.shown(line.value(last)) : "–"}`)));
  };
  return figure;
}
