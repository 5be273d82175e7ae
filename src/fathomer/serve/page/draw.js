// Drawing a prediction. Input and responses are inserted as text, never as HTML.

const MAX_WORDS = 1500; // drawing more makes the page slow
const MAX_LABELS = 8;
const STRONGEST = 5; // words in the lists of those that most support or oppose the answer

export const byId = (id) => document.getElementById(id);

export const percent = (share) => `${(share * 100).toFixed(1)} %`;

/** Return the labels of an answer: exactly one, or any number for a multi-label model. */
export const labelsOf = (answer) => answer.labels ?? [answer.label];

export const shownLabel = (answer) => labelsOf(answer).join(", ") || "no label";

/** Return the probability of the most probable label. */
export const topProbability = (answer) => Math.max(...Object.values(answer.probabilities));

/** Create an element with a class and children. */
export function make(tag, className = "", ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

/** Draw the label, the probabilities and, if words have depths, the words, histogram and table. */
export function drawAnswer(text, answer, maxDepth) {
  byId("label").textContent = shownLabel(answer);
  drawProbabilities(answer);
  byId("strongest").replaceChildren();
  if (maxDepth === null) {
    byId("words").replaceChildren(); // drawn with their contributions
    return;
  }
  drawWords(text, answer, maxDepth);
  drawHistogram(answer.words, maxDepth);
  byId("depths").replaceChildren(...answer.words.slice(0, MAX_WORDS).map(tableRow));
  byId("caption").textContent = captionOf(answer, maxDepth);
}

/** Underline the words that support or oppose the answer, and list the strongest. */
export function drawContributions(text, answer, maxDepth) {
  if (maxDepth === null) drawWords(text, answer, 1);
  const shown = answer.words.slice(0, MAX_WORDS);
  const drawn = [...byId("words").querySelectorAll(".word")];
  if (drawn.length !== shown.length) return; // the answer to another text
  const most = Math.max(...shown.map(({ contribution }) => Math.abs(contribution))) || 1;
  drawn.forEach((word, place) => setContribution(word, shown[place], most, maxDepth));
  byId("depths").replaceChildren(...shown.map(tableRow));
  const best = Object.entries(answer.probabilities).sort(([, a], [, b]) => b - a)[0][0];
  const lists = [[`For ${best}`, 1], ["Against it", -1]].map(([title, sign]) => strongestList(title, sign, shown));
  byId("strongest").replaceChildren(...lists.flat());
}

/** Return a line with the words that most support (`sign` 1) or oppose (-1) the answer. */
function strongestList(title, sign, words) {
  const found = words.filter(({ contribution }) => sign * contribution >= 0.05);
  const strongest = found.sort((a, b) => sign * (b.contribution - a.contribution)).slice(0, STRONGEST);
  if (!strongest.length) return [];
  const list = strongest.map(({ text, contribution }) => `${text} ${signed(contribution)}`).join(" · ");
  return [make("span", sign > 0 ? "line for" : "line against", `${title}: ${list}`)];
}

const signed = (number) => (Math.abs(number) < 0.05 ? "0.0" : (number > 0 ? "+" : "") + number.toFixed(1));

function setContribution(word, { depth, contribution }, most, maxDepth) {
  word.classList.add(contribution > 0 ? "for" : "against");
  word.style.setProperty("--weight", Math.abs(contribution) / most);
  word.dataset.tip = (maxDepth === null ? "" : `depth ${depth}\n`) + `contribution ${signed(contribution)}`;
}

function drawProbabilities({ probabilities, labels }) {
  const sorted = Object.entries(probabilities).sort(([, a], [, b]) => b - a);
  const rows = sorted.slice(0, MAX_LABELS).map(([label, share]) => {
    const name = make("span", "name", label);
    name.title = label;
    name.dir = "auto";
    const level = make("span", "level");
    level.style.setProperty("--share", share);
    return make("li", "", name, level, make("span", "number", percent(share)));
  });
  const rest = sorted.slice(MAX_LABELS);
  if (rest.length) {
    const together = percent(rest.reduce((sum, [, each]) => sum + each, 0));
    // The probabilities of a multi-label model are independent, so their sum means nothing.
    const shares = labels ? `each at most ${percent(rest[0][1])}` : `${together} in total`;
    rows.push(make("li", "quiet", `${rest.length} other labels: ${shares}`));
  }
  byId("probabilities").replaceChildren(...rows);
}

/** Split a text into words and the gaps between them; the service counts in code points. */
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
  const shown = answer.words.slice(0, MAX_WORDS);
  const before = [...list.querySelectorAll(".word")];
  // Reuse the elements of an unchanged text, so that changes of depth are animated.
  if (list.dataset.text !== text || before.length !== shown.length) {
    list.replaceChildren(...drawPieces(piecesOf(text, shown)));
    list.dataset.text = text;
    list.querySelector(".word")?.setAttribute("tabindex", "0");
  }
  list.querySelectorAll(".word").forEach((word, place) => setDepth(word, shown[place].depth));
}

/** Draw words and gaps; words without a gap between them stay on one line. */
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
  word.append(make("span", "unseen", ", depth "), make("span", "bar"), make("span", "depth"));
  word.tabIndex = -1;
  return word;
}

/** Draw unread text and line breaks; other whitespace is drawn by the words. */
function drawGap(gap) {
  const unread = gap.trim();
  const short = unread.length > 400 ? `${unread.slice(0, 400).toWellFormed()}…` : unread;
  const items = unread ? [make("li", "unread", short)] : [];
  return gap.includes("\n") ? [...items, make("li", "break")] : items;
}

function setDepth(word, depth) {
  word.classList.remove("for", "against"); // the contributions follow later
  word.style.setProperty("--depth", depth);
  word.dataset.depth = depth;
  word.dataset.tip = `depth ${depth}`;
  word.querySelector(".depth").textContent = depth;
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
    item.addEventListener("pointerenter", () => highlight(place + 1));
    item.addEventListener("pointerleave", () => highlight(null));
    return item;
  });
  byId("histogram").replaceChildren(...columns);
}

/** Highlight the words of one depth, or none. */
function highlight(depth) {
  const list = byId("words");
  list.toggleAttribute("data-highlighting", depth !== null);
  for (const word of list.querySelectorAll(".word")) {
    word.classList.toggle("highlighted", Number(word.dataset.depth) === depth);
  }
}

function tableRow(word) {
  const text = make("td", "", word.text);
  text.dir = "auto";
  const contribution = word.contribution === undefined ? "" : signed(word.contribution);
  return make("tr", "", text, make("td", "number", String(word.depth)), make("td", "number", contribution));
}

export const stepsOf = (words) => words.reduce((sum, word) => sum + word.depth, 0);

function captionOf({ words, truncated }, maxDepth) {
  if (!words.length) return "This text has no words.";
  const mean = (stepsOf(words) / words.length).toFixed(1);
  const notes = [`The bar under each word shows its depth. Average depth: ${mean} of ${maxDepth}.`];
  if (truncated) notes.push("The text was truncated: it has more words than the model reads.");
  if (words.length > MAX_WORDS) notes.push(`Only the first ${MAX_WORDS} words are shown.`);
  return notes.join(" ");
}
