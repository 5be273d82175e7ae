// Several texts: lines or a CSV file in, a CSV file with predictions out.

import { decode, parseTable, writeTable } from "./csv.js";
import { byId, labelsOf, make, percent, shownLabel, topProbability } from "./draw.js";
import { pause, predict, ServiceError } from "./service.js";

const MAX_FILE_BYTES = 50_000_000; // larger files are a job for the command line
const MAX_ROWS = 200; // shown on the page; the download has all of them
const TEXTS_PER_REQUEST = 64; // small enough for the progress bar to move
const WORDS_PER_REQUEST = 2000;
const MAX_TRIES = 20;

let page; // callbacks of script.js: limits, showText, showError, clearError
let table = null; // the chosen file: { name, rows }
let names = []; // of its columns
let header = []; // of the table that predictions are added to
let items = []; // one per text: { cells, text }, later with an answer or an error
let running = null; // the AbortController of the current run

export function startMany(callbacks) {
  page = callbacks;
  byId("ask-many").addEventListener("submit", (event) => {
    event.preventDefault();
    collect();
    run();
  });
  byId("stop").addEventListener("click", () => running?.abort());
  byId("file").addEventListener("change", ({ target }) => {
    if (target.files.length) open(target.files[0]);
    target.value = "";
  });
  byId("named").addEventListener("change", nameColumns);
  byId("table-away").addEventListener("click", () => showTable(null));
  byId("split").addEventListener("click", () => {
    byId("lines").value = byId("text").value;
    showTable(null);
    byId("mode-many").click();
    byId("lines").focus();
  });
  byId("download").addEventListener("click", download);
  listenForDrops();
}

function listenForDrops() {
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  const setDropping = (on) => document.body.classList.toggle("dropping", on);
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    setDropping(true);
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget || setDropping(false));
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    setDropping(false);
    if (event.dataTransfer.files.length) open(event.dataTransfer.files[0]);
  });
}

/** Open a file: a .txt file goes into the text box, anything else is parsed as a table. */
async function open(file) {
  byId("mode-many").click();
  page.clearError();
  if (file.size > MAX_FILE_BYTES) {
    reject(`${file.name} is too large for this page. Use: fathomer predict MODEL ${file.name} --out answers.csv`);
    return;
  }
  const text = decode(await file.arrayBuffer());
  if (/\.txt$/i.test(file.name)) {
    byId("lines").value = text;
    showTable(null);
    return;
  }
  const rows = text.includes("\0") ? [] : parseTable(text);
  if (rows.length) showTable({ name: file.name, rows });
  else reject(`${file.name} is not a table. Choose a CSV file with a column named text.`);
}

function reject(message) {
  page.showError(new ServiceError(message, { status: 422 }), run);
}

/** Show the chosen file in place of the text box, or the text box again. */
function showTable(chosen) {
  table = chosen;
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

/** Collect the texts to classify. */
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
  for (const item of items) if (!item.text.trim()) item.error = "Empty text.";
  byId("rows").replaceChildren();
}

/** Classify the texts that have no answer yet, which resumes after a stop or an error. */
async function run() {
  if (!items.length) {
    reject("No texts yet: enter one per line, or choose a CSV file.");
    return;
  }
  running?.abort();
  const { signal } = (running = new AbortController());
  page.clearError();
  byId("stop").hidden = byId("progress").hidden = false;
  try {
    for (const chunk of chunksOf(items.filter(isUnanswered), page.limits())) {
      await answer(chunk, signal);
      report();
    }
  } catch (error) {
    if (signal !== running.signal) return; // replaced by a later run
    page.showError(signal.aborted ? new ServiceError("Stopped.") : error, run);
  }
  byId("stop").hidden = true;
  report();
}

const isUnanswered = (item) => !item.answer && !item.error;

/** Split texts into requests within the limits of the service. */
export function* chunksOf(unanswered, limits) {
  const maxTexts = Math.min(TEXTS_PER_REQUEST, limits.texts_per_request ?? TEXTS_PER_REQUEST);
  const maxWords = Math.min(WORDS_PER_REQUEST, limits.words_per_request ?? WORDS_PER_REQUEST);
  const maxBytes = (limits.body_bytes ?? 1_000_000) - 100; // leaves room for the rest of the JSON
  let chunk = [];
  let [words, bytes] = [0, 0];
  for (const item of unanswered) {
    const count = item.text.match(/[\p{L}\p{M}\p{N}]+|\S/gu).length;
    const size = new TextEncoder().encode(JSON.stringify(item.text)).length + 1;
    if (chunk.length && (chunk.length === maxTexts || words + count > maxWords || bytes + size > maxBytes)) {
      yield chunk;
      chunk = [];
      [words, bytes] = [0, 0];
    }
    chunk.push(item);
    words += count;
    bytes += size;
  }
  if (chunk.length) yield chunk;
}

/** Classify a chunk; retry while the service is busy, and bisect to find texts that it rejects. */
async function answer(chunk, signal, tries = 1) {
  try {
    const { predictions } = await predict(chunk.map((item) => item.text), { signal });
    chunk.forEach((item, place) => (item.answer = predictions[place]));
  } catch (error) {
    if (error.busy && tries < MAX_TRIES) {
      byId("progress-text").textContent = "The service is busy. Waiting …";
      await pause(error.wait, signal);
      await answer(chunk, signal, tries + 1);
    } else if (!error.rejected) {
      throw error;
    } else if (chunk.length === 1) {
      chunk[0].error = error.message;
    } else {
      const half = Math.ceil(chunk.length / 2);
      await answer(chunk.slice(0, half), signal);
      await answer(chunk.slice(half), signal);
    }
  }
}

/** Show the progress, the predictions so far and the number of texts per label. */
function report() {
  const done = items.filter((item) => !isUnanswered(item));
  byId("bar").max = items.length;
  byId("bar").value = done.length;
  const failed = done.filter((item) => item.error).length;
  const failures = failed ? `, ${failed.toLocaleString("en")} failed` : "";
  byId("progress-text").textContent =
    `${done.length.toLocaleString("en")} of ${items.length.toLocaleString("en")} texts classified${failures}.`;
  byId("results").hidden = !done.length;
  drawCounts(done);
  const drawn = byId("rows").childElementCount;
  byId("rows").append(...done.slice(drawn, MAX_ROWS).map(rowOf));
  byId("rows-note").textContent =
    done.length > MAX_ROWS ? `Only the first ${MAX_ROWS} are shown here; the download has all of them.` : "";
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
  const cell = make("td", "", ...(text.trim() ? [detailsButton(text)] : []));
  const label = make("td", error ? "wrong" : "", error ?? shownLabel(answer));
  const probability = answer ? percent(topProbability(answer)) : "";
  return make("tr", "", cell, label, make("td", "number", probability));
}

function detailsButton(text) {
  const button = make("button", "plain", text.length > 160 ? `${text.slice(0, 160).toWellFormed()}…` : text);
  button.type = "button";
  button.dir = "auto";
  button.title = "Show the depths of its words";
  button.addEventListener("click", () => page.showText(text));
  return button;
}

/** Return the input columns with the predictions added, as CSV. */
export function answersTable(names, items) {
  const unused = (name) => (names.includes(name) ? unused(`predicted_${name}`) : name);
  const header = [...names, unused("label"), unused("probability"), unused("error")];
  const rows = items.map(({ cells, answer, error }) => {
    const padded = names.map((_, place) => cells[place] ?? "");
    if (!answer) return [...padded, "", "", error ?? "not classified"];
    return [...padded, labelsOf(answer).join("|"), topProbability(answer).toFixed(6), ""];
  });
  return writeTable([header, ...rows]);
}

function download() {
  // Spreadsheets recognise UTF-8 by its byte order mark.
  const file = new Blob(["\uFEFF", answersTable(header, items)], { type: "text/csv;charset=utf-8" });
  const link = make("a");
  link.href = URL.createObjectURL(file);
  link.download = `${table?.name.replace(/\.[^.]*$/, "") ?? "texts"}-answers.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
