// What is shown again and again, and how old it is.

/** A line that says how old something is. `at(age)` says that it is so old now, in milliseconds. */
export function freshness() {
  const line = document.createElement("p");
  line.className = "fresh";
  line.textContent = "not read yet";
  line.at = (age = 0) => {
    line.dataset.at = String(Date.now() - age);
    tell(line);
  };
  return line;
}

function tell(line) {
  const seconds = Math.max(0, Math.round((Date.now() - Number(line.dataset.at)) / 1000));
  const text = `as of ${seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`} ago`;
  if (line.textContent !== text) line.textContent = text;
  line.classList.toggle("old", seconds > 30);
}

setInterval(() => {
  for (const line of document.querySelectorAll(".fresh[data-at]")) tell(line);
}, 500);

/**
 * Runs `refresh(signal)` at once and again so many milliseconds after each end, until the view ends. Not while the page is hidden.
 * `failed` gets what it throws, and null when all is well.
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
