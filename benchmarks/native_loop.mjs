// µs per prediction of the web module, and the ids; in a browser, or: node native_loop.mjs WEB MODEL INPUTS

export async function loop(load, file, buffer) {
  const model = await load(file);
  const [kind, n] = Array.from(new BigInt64Array(buffer, 0, 2), Number);
  const at = Array.from(new BigInt64Array(buffer, 16, n + 1), Number);
  const begin = 16 + 8 * (n + 1);
  const asked = [];
  for (let i = 0; i < n; i++) {
    const length = at[i + 1] - at[i];
    if (kind === 1) asked.push([new Float32Array(buffer, begin + 4 * at[i], length)]);
    else if (kind === 2) {
      const values = new Float32Array(buffer, begin + 4 * (at[n] + at[i]), length);
      asked.push([new Int32Array(buffer, begin + 4 * at[i], length), values]);
    } else asked.push([new TextDecoder().decode(new Uint8Array(buffer, begin + at[i], length))]);
  }
  const times = [];
  let ids;
  for (let round = 0; round < 15; round++) {
    const began = performance.now();
    ids = asked.map(([x, values]) => model.predictId(x, values));
    times.push((1000 * (performance.now() - began)) / n);
  }
  times.sort((a, b) => a - b);
  return { us: times[7], ids };
}

if (globalThis.process?.versions?.node) {
  const { readFileSync } = await import("node:fs");
  const { pathToFileURL } = await import("node:url");
  const [web, path, inputs] = process.argv.slice(2);
  const { load } = await import(new URL("thinleaf.js", pathToFileURL(`${web}/`)));
  const content = readFileSync(inputs);
  const buffer = content.buffer.slice(content.byteOffset, content.byteOffset + content.length);
  console.log(JSON.stringify(await loop(load, readFileSync(path), buffer)));
}
