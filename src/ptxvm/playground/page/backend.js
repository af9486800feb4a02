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

const PATIENCE = 60; // seconds that an answer may take once Python is there

/** Asks Python in a worker; one that takes too long is ended, and another one started. */
class WorkerBackend {
  constructor(configuration, progress) {
    this.configuration = configuration;
    this.progress = progress;
    this.start();
  }

  start() {
    this.waiting = new Map();
    this.number = 0;
    this.ready = new Promise((resolve) => (this.started = resolve));
    this.worker = new Worker("worker.js", { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.receive(data));
    this.worker.addEventListener("error", (event) =>
      this.end({ kind: "crash", message: event.message || "the worker has died" }),
    );
    this.worker.postMessage({ configuration: this.configuration });
  }

  receive({ number, answer, progress }) {
    if (progress !== undefined) {
      if (!progress) this.started();
      return this.progress(progress);
    }
    const { resolve } = this.waiting.get(number);
    this.waiting.delete(number);
    resolve(JSON.parse(answer));
  }

  ask(method, params) {
    const number = ++this.number;
    const request = JSON.stringify({ method, params });
    const answered = new Promise((resolve) => this.waiting.set(number, { resolve }));
    this.worker.postMessage({ number, request });
    const [worker, limit] = [this.worker, { kind: "limit", message: `it took more than ${PATIENCE} seconds, and was ended` }];
    const waits = this.ready.then(() =>
      setTimeout(() => this.worker === worker && this.waiting.has(number) && this.end(limit), PATIENCE * 1000),
    );
    return answered.finally(() => void waits.then(clearTimeout)).then(result);
  }

  stop() {
    this.end({ kind: "stopped", message: "Stopped." });
  }

  end(error) {
    this.worker.terminate();
    for (const { resolve } of this.waiting.values()) resolve({ error });
    this.start();
  }
}
