// Several texts at once: lines or a csv file in, a csv file of answers out.

import { decode, parseTable, writeTable } from "./csv.js";
import { bestShare, byId, labelsOf, make, percent, shownLabel } from "./draw.js";
import { pause, predict, Problem } from "./service.js";

const MOST_BYTES = 50_000_000; // of a file; beyond that a page is the wrong place
const MOST_ROWS = 200; // drawn on the page; the download has them all
const TEXTS_AT_ONCE = 64; // few enough that progress is seen
const WORDS_AT_ONCE = 2000;
const MOST_TRIES = 20;

let page; // what the page lends us: its limits, and ways to complain and to look at one text
let table = null; // the file that was given: { name, rows }
let names = []; // of its columns
let header = []; // of the table that the answers are added to
let items = []; // one for each text: { cells, text }, later with an answer or an error
let stopping = null;

export function startMany(lent) {
  page = lent;
  byId("ask-many").addEventListener("submit", (event) => {
    event.preventDefault();
    collect();
    run();
  });
  byId("stop").addEventListener("click", () => stopping?.abort());
  byId("file").addEventListener("change", ({ target }) => {
    if (target.files.length) open(target.files[0]);
    target.value = "";
  });
  byId("named").addEventListener("change", nameColumns);
  byId("table-away").addEventListener("click", () => show(null));
  byId("split").addEventListener("click", () => {
    byId("lines").value = byId("text").value;
    show(null);
    byId("mode-many").click();
    byId("lines").focus();
  });
  byId("download").addEventListener("click", download);
  listenToDrops();
}

function listenToDrops() {
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  const mark = (on) => document.body.classList.toggle("dropping", on);
  document.addEventListener("dragover", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    mark(true);
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget || mark(false));
  document.addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    mark(false);
    if (event.dataTransfer.files.length) open(event.dataTransfer.files[0]);
  });
}

/** Take a file: plain text goes line by line into the box, all else is a table. */
async function open(file) {
  byId("mode-many").click();
  page.calm();
  if (file.size > MOST_BYTES) {
    refuse(`${file.name} is too large for a page. Use: fathomer predict MODEL ${file.name} --out answers.csv`);
    return;
  }
  const text = decode(await file.arrayBuffer());
  if (/\.txt$/i.test(file.name)) {
    byId("lines").value = text;
    show(null);
    return;
  }
  const rows = text.includes("\0") ? [] : parseTable(text);
  if (rows.length) show({ name: file.name, rows });
  else refuse(`${file.name} holds no table. A csv file with a column named text is what is needed.`);
}

function refuse(message) {
  page.complain(new Problem(message, { status: 422 }), run);
}

/** Show the file that was given instead of the box for lines, or the box again. */
function show(given) {
  table = given;
  byId("lines").hidden = Boolean(table);
  byId("table").hidden = !table;
  byId("results").hidden = byId("progress").hidden = true;
  if (!table) return;
  byId("table-name").textContent = table.name;
  const [first] = table.rows;
  byId("named").checked = first.length > 1 || /^\s*text\s*$/i.test(first[0]);
  nameColumns();
}

function nameColumns() {
  const { rows } = table;
  const named = byId("named").checked;
  const width = rows.reduce((widest, row) => Math.max(widest, row.length), 0);
  names = Array.from({ length: width }, (_, place) => (named && rows[0][place]) || `column ${place + 1}`);
  const options = names.map((name, place) => new Option(name, place));
  byId("column").replaceChildren(...options);
  const text = names.findIndex((name) => name.trim().toLowerCase() === "text");
  byId("column").value = text >= 0 ? text : longestColumn(rows.slice(0, 100), width);
  const count = rows.length - named;
  byId("table-size").textContent = `${count.toLocaleString("en")} ${count === 1 ? "text" : "texts"}`;
}

function longestColumn(rows, width) {
  const length = (place) => rows.reduce((sum, row) => sum + (row[place]?.length ?? 0), 0);
  const lengths = Array.from({ length: width }, (_, place) => length(place));
  return lengths.indexOf(Math.max(...lengths));
}

/** Gather the texts that are to be read. */
function collect() {
  if (table) {
    const place = Number(byId("column").value);
    const rows = table.rows.slice(byId("named").checked ? 1 : 0);
    header = names;
    items = rows.map((cells) => ({ cells, text: cells[place] ?? "" }));
  } else {
    const lines = byId("lines").value.split(/\r?\n/).filter((line) => line.trim());
    header = ["text"];
    items = lines.map((line) => ({ cells: [line], text: line }));
  }
  for (const item of items) if (!item.text.trim()) item.error = "There is no text.";
  byId("rows").replaceChildren();
}

/** Answer what has no answer yet; what was answered before a stop or an error stays. */
async function run() {
  if (!items.length) {
    refuse("There is no text yet: give one on each line, or a csv file.");
    return;
  }
  stopping?.abort();
  const { signal } = (stopping = new AbortController());
  page.calm();
  byId("stop").hidden = byId("progress").hidden = false;
  try {
    for (const chunk of chunksOf(items.filter(isOpen), page.limits())) {
      await answer(chunk, signal);
      report();
    }
  } catch (problem) {
    if (signal !== stopping.signal) return; // a later run has taken over
    page.complain(signal.aborted ? new Problem("Stopped.") : problem, run);
  }
  byId("stop").hidden = true;
  report();
}

const isOpen = (item) => !item.answer && !item.error;

/** Divide texts into requests that the service takes. */
export function* chunksOf(open, limits) {
  const most = Math.min(TEXTS_AT_ONCE, limits.texts_per_request ?? TEXTS_AT_ONCE);
  const mostWords = Math.min(WORDS_AT_ONCE, limits.words_per_request ?? WORDS_AT_ONCE);
  const mostBytes = (limits.body_bytes ?? 1_000_000) - 100; // what stands around the texts
  let chunk = [];
  let [words, bytes] = [0, 0];
  for (const item of open) {
    const more = item.text.match(/[\p{L}\p{M}\p{N}]+|\S/gu).length;
    const size = new TextEncoder().encode(JSON.stringify(item.text)).length + 1;
    if (chunk.length && (chunk.length === most || words + more > mostWords || bytes + size > mostBytes)) {
      yield chunk;
      chunk = [];
      [words, bytes] = [0, 0];
    }
    chunk.push(item);
    words += more;
    bytes += size;
  }
  if (chunk.length) yield chunk;
}

/** Ask for a chunk; wait while the service is busy, and find the texts that it will not take. */
async function answer(chunk, signal, tries = 1) {
  try {
    const { predictions } = await predict(chunk.map((item) => item.text), { signal });
    chunk.forEach((item, place) => (item.answer = predictions[place]));
  } catch (problem) {
    if (problem.busy && tries < MOST_TRIES) {
      byId("progress-text").textContent = "The service is busy. Waiting for it …";
      await pause(problem.wait, signal);
      await answer(chunk, signal, tries + 1);
    } else if (!problem.refused) {
      throw problem;
    } else if (chunk.length === 1) {
      chunk[0].error = problem.message;
    } else {
      const half = Math.ceil(chunk.length / 2);
      await answer(chunk.slice(0, half), signal);
      await answer(chunk.slice(half), signal);
    }
  }
}

/** Show how far we are, the answers so far, and how many texts have each label. */
function report() {
  const done = items.filter((item) => !isOpen(item));
  byId("bar").max = items.length;
  byId("bar").value = done.length;
  const wrong = done.filter((item) => item.error).length;
  const failures = wrong ? `, ${wrong.toLocaleString("en")} without an answer` : "";
  byId("progress-text").textContent =
    `${done.length.toLocaleString("en")} of ${items.length.toLocaleString("en")} texts read${failures}.`;
  byId("results").hidden = !done.length;
  drawCounts(done);
  const drawn = byId("rows").childElementCount;
  byId("rows").append(...done.slice(drawn, MOST_ROWS).map(rowOf));
  byId("rows-note").textContent =
    done.length > MOST_ROWS ? `The first ${MOST_ROWS} are shown; the download has them all.` : "";
}

function drawCounts(done) {
  const counts = new Map();
  for (const { answer } of done.filter((item) => item.answer)) {
    for (const label of labelsOf(answer)) counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  const sorted = [...counts].sort(([, a], [, b]) => b - a).slice(0, 12);
  const chips = sorted.map(([label, count]) => make("li", "", `${label} ${count.toLocaleString("en")}`));
  byId("counts").replaceChildren(...chips);
}

function rowOf({ text, answer, error }) {
  const cell = make("td", "", ...(text.trim() ? [lookButton(text)] : []));
  const said = make("td", error ? "wrong" : "", error ?? shownLabel(answer));
  const sure = answer ? percent(bestShare(answer)) : "";
  return make("tr", "", cell, said, make("td", "number", sure));
}

function lookButton(text) {
  const look = make("button", "plain", text.length > 160 ? `${text.slice(0, 160).toWellFormed()}…` : text);
  look.type = "button";
  look.dir = "auto";
  look.title = "See how deep its words were read";
  look.addEventListener("click", () => page.look(text));
  return look;
}

/** Write the answers beside the columns that were given. */
export function answersTable(names, items) {
  const free = (name) => (names.includes(name) ? free(`predicted_${name}`) : name);
  const header = [...names, free("label"), free("probability"), free("error")];
  const rows = items.map(({ cells, answer, error }) => {
    const padded = names.map((_, place) => cells[place] ?? "");
    if (!answer) return [...padded, "", "", error ?? "not read"];
    return [...padded, labelsOf(answer).join("|"), bestShare(answer).toFixed(6), ""];
  });
  return writeTable([header, ...rows]);
}

function download() {
  // Spreadsheets know UTF-8 by the mark at its start.
  const file = new Blob(["\uFEFF", answersTable(header, items)], { type: "text/csv;charset=utf-8" });
  const link = make("a");
  link.href = URL.createObjectURL(file);
  link.download = `${table?.name.replace(/\.[^.]*$/, "") ?? "texts"}-answers.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
