// Reading and writing CSV. Nothing here touches the page.

/** Parse a table. Quoted cells may contain separators, quotes and line breaks; blank lines are skipped. */
export function parseTable(text) {
  text = text.replace(/^\uFEFF/, "");
  const separator = separatorOf(text);
  const plain = new RegExp(`[^${separator}\r\n]*`, "y");
  const rows = [];
  let row = [];
  for (let place = 0; place <= text.length; ) {
    let quoted = "";
    if (text[place] === '"') {
      const close = closingQuote(text, place + 1);
      quoted = text.slice(place + 1, close).replaceAll('""', '"');
      place = Math.min(close + 1, text.length);
    }
    plain.lastIndex = place;
    const [rest] = plain.exec(text);
    row.push(quoted + rest);
    place += rest.length;
    const end = text[place];
    place += end === "\r" && text[place + 1] === "\n" ? 2 : 1;
    if (end === separator) continue;
    if (row.length > 1 || row[0].trim()) rows.push(row);
    row = [];
  }
  return rows;
}

/** Return the index of the quote that ends a cell; a doubled quote is part of the cell. */
function closingQuote(text, place) {
  for (;;) {
    const quote = text.indexOf('"', place);
    if (quote < 0) return text.length;
    if (text[quote + 1] !== '"') return quote;
    place = quote + 2;
  }
}

/** Return the separator that occurs most often in the first line. */
function separatorOf(text) {
  const first = text.slice(0, 10000).split(/[\r\n]/, 1)[0].replace(/"(?:[^"]|"")*"/g, "");
  const count = (separator) => first.split(separator).length;
  return [",", ";", "\t"].reduce((best, next) => (count(next) > count(best) ? next : best));
}

/** Write a table in which spreadsheets find no formulas. */
export function writeTable(rows) {
  return rows.map((row) => `${row.map(writeCell).join(",")}\r\n`).join("");
}

function writeCell(value) {
  const cell = escapeFormula(String(value));
  return /[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

/** Prefix a formula with an apostrophe, so that spreadsheets do not run it; leave numbers alone. */
function escapeFormula(cell) {
  const number = /^[+-]?\d+([.,]\d+)?$/;
  return /^\s*[=+\-@\uFF0B\uFF0D\uFF1D\uFF20]|^[\t\r\n]/.test(cell) && !number.test(cell) ? `'${cell}` : cell;
}

/** Decode a file as UTF-16 if it has a byte order mark, else as UTF-8, else as Windows-1252. */
export function decode(bytes) {
  const [first, second] = new Uint8Array(bytes.slice(0, 2));
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}
