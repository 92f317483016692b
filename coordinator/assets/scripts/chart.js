// Charts over time, drawn by uPlot. What a chart says last also stands below it as text.
import uPlot from "./uplot.js";
import { el } from "./dom.js";

const COLOURS = ["one", "two", "three", "four"];
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const clock = (_, ticks) => ticks.map(tick => new Date(1000 * tick).toLocaleTimeString("en", {
  hour: "2-digit", minute: "2-digit", ...(ticks[1] - ticks[0] < 60 ? { second: "2-digit" } : {}), hourCycle: "h23",
}));
const dark = matchMedia("(prefers-color-scheme: dark)");

/**
 * A chart. `lines` are `{ label, value, shown }`: a name, the figure of a point, and that figure as text. `show(points)` draws points
 * with `at_ms`, oldest first. It ends with `signal`.
 */
export function chart(title, lines, signal) {
  const area = el("div", { class: "chart empty", "aria-hidden": "true" }, "Drawn from the second point on.");
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
