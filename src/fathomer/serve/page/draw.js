// An answer on the page. Whatever comes from a person or the service is set as text, never as HTML.

const MOST_WORDS = 1500; // drawn one by one; more of them would make the page slow
const MOST_LABELS = 8;

export const byId = (id) => document.getElementById(id);

export const percent = (share) => `${(share * 100).toFixed(1)} %`;

/** List the labels of an answer: one, or where there may be several, also none. */
export const labelsOf = (answer) => answer.labels ?? [answer.label];

export const shownLabel = (answer) => labelsOf(answer).join(", ") || "no label";

/** Give the probability of the most probable label. */
export const bestShare = (answer) => Math.max(...Object.values(answer.probabilities));

/** Make an element with a class and a text or children. */
export function make(tag, className = "", ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

/** Draw label and probabilities and, if words have a depth, words, histogram and table. */
export function drawAnswer(text, answer, maxDepth) {
  byId("label").textContent = shownLabel(answer);
  drawProbabilities(answer);
  if (maxDepth === null) return;
  drawWords(text, answer, maxDepth);
  drawHistogram(answer.words, maxDepth);
  byId("depths").replaceChildren(...answer.words.slice(0, MOST_WORDS).map(tableRow));
  byId("caption").textContent = captionOf(answer, maxDepth);
}

function drawProbabilities({ probabilities, labels }) {
  const sorted = Object.entries(probabilities).sort(([, a], [, b]) => b - a);
  const rows = sorted.slice(0, MOST_LABELS).map(([label, share]) => {
    const name = make("span", "name", label);
    name.title = label;
    name.dir = "auto";
    const level = make("span", "level");
    level.style.setProperty("--share", share);
    return make("li", "", name, level, make("span", "number", percent(share)));
  });
  const rest = sorted.slice(MOST_LABELS);
  if (rest.length) {
    const together = percent(rest.reduce((sum, [, each]) => sum + each, 0));
    // Where there may be several labels, each has a probability of its own: they have no sum.
    const shares = labels ? `each at most ${percent(rest[0][1])}` : `${together} together`;
    rows.push(make("li", "quiet", `${rest.length} other labels, ${shares}`));
  }
  byId("probabilities").replaceChildren(...rows);
}

/** Cut a text into its words and what stands between them; the service counts code points. */
export function piecesOf(text, words) {
  const characters = Array.from(text);
  const between = (start, end) => characters.slice(start, end).join("");
  const pieces = [];
  let place = 0;
  for (const word of words) {
    if (word.start > place) pieces.push({ gap: between(place, word.start) });
    pieces.push({ text: between(word.start, word.end), depth: word.depth });
    place = word.end;
  }
  if (place < characters.length) pieces.push({ gap: between(place) });
  return pieces;
}

function drawWords(text, answer, maxDepth) {
  const list = byId("words");
  list.style.setProperty("--levels", maxDepth);
  const shown = answer.words.slice(0, MOST_WORDS);
  const before = [...list.querySelectorAll(".word")];
  // The same words stay where they are, so that the water is seen to rise and fall.
  if (list.dataset.text !== text || before.length !== shown.length) {
    list.replaceChildren(...drawPieces(piecesOf(text, shown)));
    list.dataset.text = text;
    list.querySelector(".word")?.setAttribute("tabindex", "0");
  }
  list.querySelectorAll(".word").forEach((word, place) => sink(word, shown[place].depth));
}

/** Draw the pieces; words with nothing between them stay on one line together. */
function drawPieces(pieces) {
  const items = [];
  let group = null;
  pieces.forEach(({ gap, text }, place) => {
    if (text === undefined) {
      items.push(...drawGap(gap));
      group = null;
      return;
    }
    if (!group) items.push((group = make("li", "group")));
    group.append(drawWord(text, /^\s/.test(pieces[place + 1]?.gap ?? "")));
  });
  return items;
}

function drawWord(text, spaced) {
  const word = make("span", spaced ? "word spaced" : "word", make("span", "text", text));
  word.append(make("span", "unseen", ", depth "), make("span", "water"), make("span", "sounding"));
  word.tabIndex = -1;
  return word;
}

/** Draw what was not read, if it can be seen, and the line break that it may hold. */
function drawGap(gap) {
  const unread = gap.trim();
  const short = unread.length > 400 ? `${unread.slice(0, 400).toWellFormed()}…` : unread;
  const items = unread ? [make("li", "unread", short)] : [];
  return gap.includes("\n") ? [...items, make("li", "break")] : items;
}

function sink(word, depth) {
  word.style.setProperty("--depth", depth);
  word.dataset.depth = depth;
  word.dataset.tip = `depth ${depth}`;
  word.querySelector(".sounding").textContent = depth;
}

function drawHistogram(words, maxDepth) {
  const counts = Array(maxDepth).fill(0);
  for (const word of words) counts[word.depth - 1] += 1;
  const most = Math.max(1, ...counts);
  const columns = counts.map((count, place) => {
    const column = make("span", "column");
    column.style.setProperty("--share", count / most);
    column.style.setProperty("--shade", place / Math.max(1, maxDepth - 1));
    const axis = make("span", "axis", make("span", "unseen", "words at depth "), String(place + 1));
    const item = make("li", "", make("span", "", String(count)), column, axis);
    item.addEventListener("pointerenter", () => light(place + 1));
    item.addEventListener("pointerleave", () => light(null));
    return item;
  });
  byId("histogram").replaceChildren(...columns);
}

/** Let the words of one depth stand out. */
function light(depth) {
  const list = byId("words");
  list.toggleAttribute("data-lit", depth !== null);
  for (const word of list.querySelectorAll(".word")) {
    word.classList.toggle("lit", Number(word.dataset.depth) === depth);
  }
}

function tableRow(word) {
  const text = make("td", "", word.text);
  text.dir = "auto";
  return make("tr", "", text, make("td", "number", String(word.depth)));
}

export const stepsOf = (words) => words.reduce((sum, word) => sum + word.depth, 0);

function captionOf({ words, truncated }, maxDepth) {
  if (!words.length) return "There is no word in this text.";
  const mean = (stepsOf(words) / words.length).toFixed(1);
  const notes = [`The water under a word is as deep as the word was read: ${mean} of ${maxDepth} on average.`];
  if (truncated) notes.push("The text was cut: it has more words than the model reads.");
  if (words.length > MOST_WORDS) notes.push(`Only the first ${MOST_WORDS} words are drawn.`);
  return notes.join(" ");
}
