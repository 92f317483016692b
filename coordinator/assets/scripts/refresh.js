// Refreshes parts of a view at intervals, and shows how old their data is.

/** Creates a line that shows the age of data. `at(age)` sets the current age of the data in milliseconds. */
export function freshness() {
  const line = document.createElement("p");
  line.className = "fresh";
  line.textContent = "not loaded yet";
  line.at = (age = 0) => {
    line.dataset.at = String(Date.now() - age);
    showAge(line);
  };
  return line;
}

function showAge(line) {
  const seconds = Math.max(0, Math.round((Date.now() - Number(line.dataset.at)) / 1000));
  const text = `as of ${seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`} ago`;
  if (line.textContent !== text) line.textContent = text;
  line.classList.toggle("old", seconds > 30);
}

setInterval(() => {
  for (const line of document.querySelectorAll(".fresh[data-at]")) showAge(line);
}, 500);

/**
 * Runs `refresh(signal)` at once, and again `pause` milliseconds after each run, until the view ends. A hidden page is not refreshed.
 * Each run calls `failed` with the error of `refresh`, or with null on success.
 */
export function repeat(signal, pause, refresh, failed) {
  const turn = async () => {
    if (signal.aborted) return;
    if (!document.hidden) {
      try {
        await refresh(signal);
        if (!signal.aborted) failed(null);
      } catch (error) {
        if (!signal.aborted) failed(error);
      }
    }
    if (!signal.aborted) setTimeout(turn, pause);
  };
  turn();
}
