// The service as the page sees it: questions, answers, and what went wrong in words for a person.

let token = "";

export class Problem extends Error {
  constructor(message, { status = 0, wait = 0 } = {}) {
    super(message);
    this.status = status;
    this.wait = wait; // seconds after which the service wants to be asked again
  }

  get busy() {
    return this.status === 429;
  }

  get locked() {
    return this.status === 401;
  }

  get refused() {
    return this.status === 413 || this.status === 422;
  }
}

export function useToken(value) {
  token = value;
}

export function readModel() {
  return request("v1/model", {});
}

/** Ask for the answers to some texts; also give the milliseconds that it took. */
export async function predict(texts, { depths = false, maxDepth = null, signal } = {}) {
  const body = JSON.stringify({ texts: texts.map((text) => text.toWellFormed()), depths, max_depth: maxDepth });
  const begun = performance.now();
  const { predictions } = await request("v1/predict", { method: "POST", body, signal });
  return { predictions, milliseconds: performance.now() - begun };
}

async function request(path, options) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store" });
    if (response.ok) return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The service does not answer. Is it still running, and are you online?");
  }
  throw await problemOf(response);
}

async function problemOf(response) {
  const error = await errorIn(response);
  const wait = Number(response.headers.get("Retry-After")) || 1;
  const messages = {
    401: token ? "The service did not accept this token." : "This service asks for a token.",
    422: `The service cannot take that: ${error.message}`,
    429: "The service is busy.",
    503: "The service is busy or about to stop.",
    504: "The service did not find the time to answer. Try again, or give it a shorter text.",
  };
  const otherwise = `The service has failed (${response.status}). ${error.message}`;
  const message = limitIn(error) ?? messages[response.status] ?? otherwise;
  return new Problem(message.trim(), { status: response.status, wait });
}

async function errorIn(response) {
  try {
    return (await response.json()).error;
  } catch {
    return { code: "", message: "" };
  }
}

/** Say which limit of the service a text exceeds, if that is what is wrong. */
function limitIn({ code, limit }) {
  const kinds = {
    body_bytes: "bytes at a time",
    texts_per_request: "texts at a time",
    characters_per_text: "characters in a text",
    words_per_text: "words in a text",
    words_per_request: "words at a time",
  };
  if (!(code in kinds)) return null;
  return `That is too long: this service takes at most ${limit.toLocaleString("en")} ${kinds[code]}.`;
}

/** Wait that many seconds, or until the signal says that nobody waits any more. */
export function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
