// The page: one text, its prediction and the depth limit, or the average depth if the model can be set to one. Several texts are in many.js.

import { byId, drawAnswer, drawContributions, make, percent, shownLabel, stepsOf, topProbability } from "./draw.js";
import { startMany } from "./many.js";
import { explain, pause, predict, readModel, useToken } from "./service.js";

const EXAMPLES = [
  "I would have loved this film if the plot had been better.",
  "Nobody can say that the hotel wasn't clean.",
  "My brother called it boring, but he is wrong.",
  "Although the soup was bland, I see every reason to recommend this dinner.",
  "Where is the deepest lake in the world?",
  "Oil prices fell for a third day while shipping companies rose.",
];
const MAX_TRIES = 5;

const state = { model: null, trials: new Map(), trialsOf: "", submitted: "", request: null, retry: null };

/** Show an error, with a button that calls `retry`. */
function showError(error, retry) {
  state.retry = retry;
  byId(error.locked ? "unlock-text" : "problem-text").textContent = error.message;
  byId("problem").hidden = error.locked;
  byId("again").hidden = error.rejected;
  byId("unlock").hidden = !error.locked;
  if (error.locked) byId("token").focus();
}

function clearError() {
  byId("problem").hidden = true;
  byId("unlock").hidden = true;
}

async function start() {
  try {
    state.model = await readModel();
  } catch (error) {
    showError(error, start);
    return;
  }
  clearError();
  const { labels, max_depth: maxDepth, depth_budget: budget } = state.model;
  document.body.classList.toggle("flat", maxDepth === null); // in some models words have no depth
  byId("model").textContent = `${labels.length} labels` + (maxDepth === null ? "" : `, maximum depth ${maxDepth}`);
  byId("cap").max = maxDepth; // before the value, which is clamped to it
  byId("cap").step = hasBudget() ? 0.1 : 1;
  byId("cap").value = hasBudget() ? budget : maxDepth;
  byId("cap-name").textContent = hasBudget() ? "Average depth" : "Depth limit";
  const ticks = maxDepth <= 20 ? Array.from({ length: maxDepth }, (_, depth) => depth + 1) : [1, maxDepth];
  byId("ticks").replaceChildren(...ticks.map((depth) => make("span", "", String(depth))));
  showCap();
  if (!byId("text").value) byId("text").value = EXAMPLES[0];
  classify();
}

/** Whether the model can be set to an average depth. */
function hasBudget() {
  return (state.model.depth_budget ?? null) !== null;
}

/** Return what the slider asks for: an average depth, or a limit unless it is the maximum. */
function depthSettings() {
  const depth = Number(byId("cap").value);
  if (hasBudget()) return { depthBudget: depth };
  return { maxDepth: depth < state.model.max_depth ? depth : null };
}

function showCap() {
  byId("cap-value").textContent = `${byId("cap").value} of ${state.model.max_depth}`;
  byId("cap").setAttribute("aria-valuetext", byId("cap-value").textContent);
}

/** Classify the text in the box; a new request replaces an earlier one. */
async function classify() {
  const text = byId("text").value;
  state.submitted = text;
  state.request?.abort();
  if (!state.model) return;
  if (!text.trim()) {
    clearError();
    byId("answer").hidden = true;
    return;
  }
  const request = (state.request = new AbortController());
  byId("answer").setAttribute("aria-busy", "true");
  try {
    const depth = Number(byId("cap").value);
    showAnswer(text, depth, await predictText(text, depthSettings(), request.signal));
    showContributions(text, request.signal); // later: they take longer than the answer
  } catch (error) {
    if (request.signal.aborted) return;
    byId("answer").hidden = true;
    showError(error, classify);
  } finally {
    if (state.request === request) byId("answer").setAttribute("aria-busy", "false");
  }
}

/** Show how much each word supports the answer, which stays as it is if the service refuses. */
async function showContributions(text, signal) {
  try {
    const answer = await explain(text, { ...depthSettings(), signal });
    if (!signal.aborted) drawContributions(text, answer, state.model.max_depth);
  } catch (error) {
    if (signal.aborted) return;
    const reason = error.rejected ? "for a text of this length" : "at the moment";
    byId("strongest").textContent = `The service does not show contributions ${reason}.`;
  }
}

/** Request a prediction, and retry with a notice while the service is busy. */
async function predictText(text, settings, signal) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await predict([text], { depths: state.model.max_depth !== null, ...settings, signal });
    } catch (error) {
      if (!error.busy || tries === MAX_TRIES) throw error;
      error.message = `The service is busy. Retrying in ${error.wait} s.`;
      showError(error, classify);
      await pause(error.wait, signal);
    }
  }
}

function showAnswer(text, depth, { predictions: [answer], milliseconds }) {
  clearError();
  const maxDepth = state.model.max_depth;
  byId("answer").hidden = byId("mode-many").checked;
  drawAnswer(text, answer, maxDepth);
  if (maxDepth !== null) {
    if (state.trialsOf !== text) state.trials.clear();
    state.trialsOf = text;
    state.trials.set(depth, { answer, milliseconds });
    drawTrials(depth);
  }
  const probability = percent(topProbability(answer));
  const time = `${Math.round(milliseconds)} milliseconds`;
  byId("spoken").textContent = `${shownLabel(answer)}, ${probability}, in ${time}. ${byId("caption").textContent}`;
}

/** List the depths tried with this text, deepest first. */
function drawTrials(current) {
  const rows = [...state.trials].sort(([a], [b]) => b - a);
  const drawn = rows.map(([depth, { answer, milliseconds }]) => {
    const label = make("td", "", `${shownLabel(answer)} `);
    label.append(make("span", "quiet", percent(topProbability(answer))));
    const steps = make("td", "number", String(stepsOf(answer.words)));
    const time = make("td", "number", `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`);
    const row = make("tr", "", make("td", "", String(depth)), label, steps, time);
    if (depth === current) row.setAttribute("aria-current", "true");
    return row;
  });
  byId("trials").replaceChildren(...drawn);
}

/** Return a function that calls `action` once it has not been called for some time. */
function debounce(action, milliseconds) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
}

/** Put a text into the box, as if it had been typed, and classify it. */
function showText(text) {
  byId("mode-one").click();
  byId("text").value = text;
  byId("text").dispatchEvent(new Event("input"));
  classify();
}

function listenForText() {
  const classifySoon = debounce(() => byId("text").value !== state.submitted && classify(), 400);
  byId("text").addEventListener("input", () => {
    const lines = byId("text").value.split("\n").filter((line) => line.trim()).length;
    byId("split").hidden = lines < 2;
    byId("split").textContent = `Classify the ${lines} lines as separate texts`;
    classifySoon();
  });
  byId("text").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    classify();
  });
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    classify();
  });
  byId("ask").addEventListener("reset", (event) => {
    event.preventDefault();
    showText("");
    byId("text").focus();
  });
  const examples = EXAMPLES.map((example) => {
    const button = make("button", "", example);
    button.type = "button";
    button.addEventListener("click", () => showText(example));
    return make("li", "", button);
  });
  byId("examples").replaceChildren(...examples);
}

/** Move between words with the arrow keys; together they are a single tab stop. */
function moveFocus(event) {
  const words = [...byId("words").querySelectorAll(".word")];
  const last = words.length - 1;
  const place = words.indexOf(event.target.closest(".word"));
  const targets = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: last };
  if (place < 0 || !(event.key in targets)) return;
  event.preventDefault();
  const target = words[Math.min(last, Math.max(0, targets[event.key]))];
  words[place].tabIndex = -1;
  target.tabIndex = 0;
  target.focus();
}

function showMode() {
  const many = byId("mode-many").checked;
  clearError();
  byId("one").hidden = many;
  byId("many").hidden = !many;
  const text = byId("text").value;
  byId("answer").hidden = many || !text.trim() || text !== state.trialsOf;
}

function listen() {
  listenForText();
  const classifySoon = debounce(classify, 120);
  byId("cap").addEventListener("input", () => {
    showCap();
    classifySoon();
  });
  byId("words").addEventListener("keydown", moveFocus);
  byId("again").addEventListener("click", () => state.retry());
  byId("unlock").addEventListener("submit", (event) => {
    event.preventDefault();
    useToken(byId("token").value.trim());
    (state.model ? state.retry : start)();
  });
  for (const mode of document.getElementsByName("mode")) mode.addEventListener("change", showMode);
  showMode(); // browsers may restore the previous choice
  startMany({ limits: () => state.model?.limits ?? {}, showText, showError, clearError });
}

listen();
start();
