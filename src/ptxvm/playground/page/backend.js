// Who answers: the server of `ptxvm play`, or Python in a Web Worker. Both take and give the same JSON.

export class AnswerError extends Error {
  constructor({ kind, message }) {
    super(message);
    this.kind = kind;
  }
}

/** The backend that the page was made for. */
export async function backend(progress) {
  const configuration = await (await fetch("configuration.json")).json();
  return configuration.backend === "pyodide" ? new WorkerBackend(configuration, progress) : new ServerBackend();
}

function result(answer) {
  if (answer.error) throw new AnswerError(answer.error);
  return answer.result;
}

/** Asks the server; each answer comes from a process of its own. */
class ServerBackend {
  constructor() {
    this.running = new Set();
  }

  async ask(method, params) {
    const control = new AbortController();
    this.running.add(control);
    try {
      const headers = { "Content-Type": "application/json" };
      const body = JSON.stringify({ method, params });
      const found = await fetch("answer", { method: "POST", headers, body, signal: control.signal });
      if (!found.ok) throw new AnswerError({ kind: "request", message: (await found.text()).trim() });
      return result(await found.json());
    } catch (wrong) {
      if (wrong instanceof AnswerError) throw wrong;
      const stopped = control.signal.aborted;
      throw new AnswerError({
        kind: stopped ? "stopped" : "connection",
        message: stopped ? "Stopped." : "ptxvm play does not answer; is it still running?",
      });
    } finally {
      this.running.delete(control);
    }
  }

  /** Wait no longer; the process ends by itself. */
  stop() {
    for (const control of this.running) control.abort();
  }
}

const PATIENCE = 60; // seconds that Python may take for an answer that the user waits for

/** Asks Python in a worker; one that takes too long is ended, and another one started, which answers all that is left. */
class WorkerBackend {
  constructor(configuration, progress) {
    this.configuration = configuration;
    this.progress = progress;
    this.waiting = new Map(); // requests in their order: Python is at the first of them
    this.number = 0;
    this.start();
  }

  start() {
    this.loaded = false;
    this.worker = new Worker("worker.js", { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.receive(data));
    this.worker.addEventListener("error", (event) =>
      this.end({ kind: "crash", message: event.message || "the worker has died" }),
    );
    this.worker.postMessage({ configuration: this.configuration });
    for (const [number, { request }] of this.waiting) this.worker.postMessage({ number, request });
    this.watch();
  }

  receive({ number, answer, progress }) {
    if (progress !== undefined) {
      this.loaded ||= !progress;
      this.progress?.(progress);
    } else {
      const { resolve } = this.waiting.get(number);
      this.waiting.delete(number);
      resolve(JSON.parse(answer));
    }
    this.watch();
  }

  ask(method, params, awaited) {
    const number = ++this.number;
    const request = JSON.stringify({ method, params });
    const answered = new Promise((resolve) => this.waiting.set(number, { request, awaited, resolve }));
    this.worker.postMessage({ number, request });
    this.watch();
    return answered.then(result);
  }

  /** Measure the time of the request that Python is at.  One that the user does not wait for takes as long as it takes. */
  watch() {
    const [number, first] = this.waiting.entries().next().value ?? [];
    const watched = this.loaded && first?.awaited ? number : undefined;
    if (watched === this.watched) return;
    clearTimeout(this.timer);
    this.watched = watched;
    const limit = { kind: "limit", message: `it took more than ${PATIENCE} seconds, and was ended` };
    if (watched !== undefined) this.timer = setTimeout(() => this.end(limit), PATIENCE * 1000);
  }

  stop() {
    this.end({ kind: "stopped", message: "Stopped." }, this.waiting.size);
  }

  /** End the worker: the first requests have an error, by default the one that it is at; the others are asked again. */
  end(error, count = 1) {
    this.worker.terminate();
    this.progress = null; // of another start nothing is said: why it was needed stands there
    for (const [number, { resolve }] of [...this.waiting].slice(0, count)) {
      this.waiting.delete(number);
      resolve({ error });
    }
    this.start();
  }
}
