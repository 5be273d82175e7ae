// The page: one text, its answer, and the limit of depth. Several texts are in many.js.

import { bestShare, byId, drawAnswer, make, percent, shownLabel, stepsOf } from "./draw.js";
import { startMany } from "./many.js";
import { pause, predict, readModel, useToken } from "./service.js";

const EXAMPLES = [
  "I would have loved this film if the plot had been better.",
  "Nobody can say that the hotel wasn't clean.",
  "My brother called it boring, but he is wrong.",
  "Although the soup was bland, I see every reason to recommend this dinner.",
  "Where is the deepest lake in the world?",
  "Oil prices fell for a third day while shipping companies rose.",
];
const MOST_TRIES = 5;

const state = { model: null, trials: new Map(), trialsOf: "", asked: "", asking: null, again: null };

/** Show what went wrong, with a button that does it again. */
function complain(problem, again) {
  state.again = again;
  byId(problem.locked ? "unlock-text" : "problem-text").textContent = problem.message;
  byId("problem").hidden = problem.locked;
  byId("again").hidden = problem.refused;
  byId("unlock").hidden = !problem.locked;
  if (problem.locked) byId("token").focus();
}

function calm() {
  byId("problem").hidden = true;
  byId("unlock").hidden = true;
}

async function start() {
  try {
    state.model = await readModel();
  } catch (problem) {
    complain(problem, start);
    return;
  }
  calm();
  const { labels, max_depth: maxDepth } = state.model;
  document.body.classList.toggle("flat", maxDepth === null); // words have no depth in some models
  byId("model").textContent = `${labels.length} labels` + (maxDepth === null ? "" : `, at most ${maxDepth} deep`);
  byId("cap").max = maxDepth; // first: a slider cuts its value to what it knows as its limit
  byId("cap").value = maxDepth;
  const ticks = maxDepth <= 20 ? Array.from({ length: maxDepth }, (_, depth) => depth + 1) : [1, maxDepth];
  byId("ticks").replaceChildren(...ticks.map((depth) => make("span", "", String(depth))));
  showCap();
  if (!byId("text").value) byId("text").value = EXAMPLES[0];
  ask();
}

/** Give the limit that the slider stands at, or null where it limits nothing. */
function cap() {
  const depth = Number(byId("cap").value);
  return depth < state.model.max_depth ? depth : null;
}

function showCap() {
  byId("cap-value").textContent = `${byId("cap").value} of ${state.model.max_depth}`;
  byId("cap").setAttribute("aria-valuetext", byId("cap-value").textContent);
}

/** Ask about the text in the box; a later question replaces an earlier one. */
async function ask() {
  const text = byId("text").value;
  state.asked = text;
  state.asking?.abort();
  if (!state.model) return;
  if (!text.trim()) {
    calm();
    byId("answer").hidden = true;
    return;
  }
  const asking = (state.asking = new AbortController());
  byId("answer").setAttribute("aria-busy", "true");
  try {
    show(text, cap(), await answerTo(text, cap(), asking.signal));
  } catch (problem) {
    if (asking.signal.aborted) return;
    byId("answer").hidden = true;
    complain(problem, ask);
  } finally {
    if (state.asking === asking) byId("answer").setAttribute("aria-busy", "false");
  }
}

/** Ask until the service is not busy any more, and say meanwhile that it is. */
async function answerTo(text, maxDepth, signal) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await predict([text], { depths: state.model.max_depth !== null, maxDepth, signal });
    } catch (problem) {
      if (!problem.busy || tries === MOST_TRIES) throw problem;
      problem.message = `The service is busy. Asking again in ${problem.wait} s.`;
      complain(problem, ask);
      await pause(problem.wait, signal);
    }
  }
}

function show(text, depth, { predictions: [answer], milliseconds }) {
  calm();
  const maxDepth = state.model.max_depth;
  byId("answer").hidden = byId("mode-many").checked;
  drawAnswer(text, answer, maxDepth);
  if (maxDepth !== null) {
    if (state.trialsOf !== text) state.trials.clear();
    state.trialsOf = text;
    state.trials.set(depth ?? maxDepth, { answer, milliseconds });
    drawTrials(depth ?? maxDepth);
  }
  const sure = percent(bestShare(answer));
  const time = `${Math.round(milliseconds)} milliseconds`;
  byId("spoken").textContent = `${shownLabel(answer)}, ${sure}, in ${time}. ${byId("caption").textContent}`;
}

/** List the limits that were tried with this text, the deepest first. */
function drawTrials(current) {
  const rows = [...state.trials].sort(([a], [b]) => b - a);
  const drawn = rows.map(([depth, { answer, milliseconds }]) => {
    const said = make("td", "", `${shownLabel(answer)} `);
    said.append(make("span", "quiet", percent(bestShare(answer))));
    const steps = make("td", "number", String(stepsOf(answer.words)));
    const time = make("td", "number", `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`);
    const row = make("tr", "", make("td", "", String(depth)), said, steps, time);
    if (depth === current) row.setAttribute("aria-current", "true");
    return row;
  });
  byId("trials").replaceChildren(...drawn);
}

/** Call once things have been quiet for a while. */
function whenQuiet(action, milliseconds) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
}

/** Put a text in the box, as if it had been typed there, and ask about it. */
function take(text) {
  byId("mode-one").click();
  byId("text").value = text;
  byId("text").dispatchEvent(new Event("input"));
  ask();
}

function listenToText() {
  const askSoon = whenQuiet(() => byId("text").value !== state.asked && ask(), 400);
  byId("text").addEventListener("input", () => {
    const lines = byId("text").value.split("\n").filter((line) => line.trim()).length;
    byId("split").hidden = lines < 2;
    byId("split").textContent = `Read the ${lines} lines as separate texts`;
    askSoon();
  });
  byId("text").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    ask();
  });
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  byId("ask").addEventListener("reset", (event) => {
    event.preventDefault();
    take("");
    byId("text").focus();
  });
  const examples = EXAMPLES.map((example) => {
    const button = make("button", "", example);
    button.type = "button";
    button.addEventListener("click", () => take(example));
    return make("li", "", button);
  });
  byId("examples").replaceChildren(...examples);
}

/** Let the arrow keys move among the words, which are one stop of the tab key together. */
function walk(event) {
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
  calm();
  byId("one").hidden = many;
  byId("many").hidden = !many;
  const text = byId("text").value;
  byId("answer").hidden = many || !text.trim() || text !== state.trialsOf;
}

function listen() {
  listenToText();
  const askSoon = whenQuiet(ask, 120);
  byId("cap").addEventListener("input", () => {
    showCap();
    askSoon();
  });
  byId("words").addEventListener("keydown", walk);
  byId("again").addEventListener("click", () => state.again());
  byId("unlock").addEventListener("submit", (event) => {
    event.preventDefault();
    useToken(byId("token").value.trim());
    (state.model ? state.again : start)();
  });
  for (const mode of document.getElementsByName("mode")) mode.addEventListener("change", showMode);
  showMode(); // a browser may remember what was chosen before
  startMany({ limits: () => state.model?.limits ?? {}, look: take, complain, calm });
}

listen();
start();
