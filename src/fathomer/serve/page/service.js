// The client of the API: requests, responses and readable error messages.

let token = "";

export class ServiceError extends Error {
  constructor(message, { status = 0, wait = 0 } = {}) {
    super(message);
    this.status = status;
    this.wait = wait; // seconds to wait before retrying
  }

  get busy() {
    return this.status === 429;
  }

  get locked() {
    return this.status === 401;
  }

  get rejected() {
    return this.status === 413 || this.status === 422;
  }
}

export function useToken(value) {
  token = value;
}

export function readModel() {
  return request("v1/model", {});
}

/** Request the prediction for a text with the contribution of each word, which takes longer. */
export async function explain(text, { maxDepth = null, depthBudget, signal }) {
  const texts = [text.toWellFormed()];
  const body = JSON.stringify({ texts, contributions: true, max_depth: maxDepth, depth_budget: depthBudget });
  // The service ignores the query; it tells these requests apart in logs.
  const { predictions } = await request("v1/predict?contributions", { method: "POST", body, signal });
  return predictions[0];
}

/** Request predictions for texts; also return the milliseconds that it took. */
export async function predict(texts, { depths = false, maxDepth = null, depthBudget, signal } = {}) {
  const wellFormed = texts.map((text) => text.toWellFormed());
  const body = JSON.stringify({ texts: wellFormed, depths, max_depth: maxDepth, depth_budget: depthBudget });
  const started = performance.now();
  const { predictions } = await request("v1/predict", { method: "POST", body, signal });
  return { predictions, milliseconds: performance.now() - started };
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
    throw new ServiceError("The service does not respond. Is it running, and are you online?");
  }
  throw await errorFrom(response);
}

async function errorFrom(response) {
  const error = await errorContent(response);
  const wait = Number(response.headers.get("Retry-After")) || 1;
  const messages = {
    401: token ? "The service did not accept this token." : "This service requires a token.",
    422: `The service rejected this: ${error.message}`,
    429: "The service is busy.",
    503: "The service is busy or shutting down.",
    504: "The service took too long to respond. Try again, or use a shorter text.",
  };
  const otherwise = `The service failed (${response.status}). ${error.message}`;
  const message = limitMessage(error) ?? messages[response.status] ?? otherwise;
  return new ServiceError(message.trim(), { status: response.status, wait });
}

async function errorContent(response) {
  try {
    return (await response.json()).error;
  } catch {
    return { code: "", message: "" };
  }
}

/** Return a message if the error is about a limit on the size of a request, else null. */
function limitMessage({ code, limit }) {
  const kinds = {
    body_bytes: "bytes per request",
    texts_per_request: "texts per request",
    characters_per_text: "characters per text",
    words_per_text: "words per text",
    words_per_request: "words per request",
  };
  if (!(code in kinds)) return null;
  return `Too long: this service accepts at most ${limit.toLocaleString("en")} ${kinds[code]}.`;
}

/** Wait for some seconds, or reject when the signal is aborted. */
export function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
