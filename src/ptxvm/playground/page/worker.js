// Python in a Web Worker: loads Pyodide and the wheel of ptxvm, then answers requests as the server does.

let python = null;

addEventListener("message", async ({ data: { configuration, number, request } }) => {
  if (configuration) {
    python = start(configuration);
    python.then(
      () => postMessage({ progress: "" }),
      () => {},
    ); // a request tells what went wrong
    return;
  }
  postMessage({ number, answer: await answered(request) });
});

async function answered(request) {
  try {
    return (await python)(request);
  } catch (wrong) {
    return JSON.stringify({
      error: { kind: "crash", message: `Python does not start in this browser: ${wrong.message ?? wrong}` },
    });
  }
}

async function start({ core, packages, integrity, wheel, wheel_integrity: digest, load }) {
  const base = new URL(core, location.href).href;
  postMessage({ progress: "Loading Python …" });
  // A file that is not what was pinned ends it here; what is loaded below is then in the cache of the browser.
  const files = await Promise.all(Object.entries(integrity).map(([name, pinned]) => fetched(base + name, pinned)));
  const lock = new TextDecoder().decode(files[Object.keys(integrity).indexOf("pyodide-lock.json")]);
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  const pyodide = await loadPyodide({
    indexURL: base,
    lockFileContents: lock,
    packageBaseUrl: new URL(packages, location.href).href,
  });
  postMessage({ progress: "Loading NumPy …" });
  await pyodide.loadPackage(load, { messageCallback: () => {} }).catch((missing) => console.warn(`${missing}`));
  postMessage({ progress: "Loading ptxvm …" });
  pyodide.unpackArchive(await fetched(new URL(wheel, location.href).href, digest), "wheel");
  return pyodide.runPython("from ptxvm.playground import answer; answer");
}

async function fetched(url, integrity) {
  const found = await fetch(url, { integrity });
  if (!found.ok) throw new Error(`${url}: ${found.status}`);
  return found.arrayBuffer();
}
