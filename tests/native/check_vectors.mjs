// The test vectors through the web module: node check_vectors.mjs WEB VECTORS; also in browsers.
export async function differences({ load, ModelError }, vectors, contentOf) {
  const found = [];
  const same = (a, b) => a === b || (typeof a === "bigint" && Number(a) === b);
  for (const [name, expected] of Object.entries(vectors)) {
    const content = await contentOf(`${name}.thinleaf`);
    const model = await load(content);
    const inputs = (expected.texts ?? expected.rows ?? []).map((x) => [x]);
    const pairs = (expected.pairs ?? []).map(([idx, val]) => [idx, val]);
    for (const given of [inputs, pairs]) {
      given.forEach(([x, values], i) => {
        const top = model.topk(x, expected.topk[i].length, values);
        if (!same(model.predict(x, values), expected.predict[i])) found.push(`${name} ${i} label`);
        top.forEach(({ label, probability }, j) => {
          if (!same(label, expected.topk[i][j])) found.push(`${name} ${i} top ${j}`);
          if (!(Math.abs(probability - expected.topk_proba[i][j]) < 1e-6)) found.push(`${name} ${i} p`);
        });
        if (!(model.path(x, 0, values).steps.length <= model.depth)) found.push(`${name} ${i} path`);
      });
    }
    const [x, values] = [...inputs, ...pairs][0];
    const all = model.topk(x, 1e9, values);
    if (all.length !== model.nClasses) found.push(`${name} all`);
    if (model.takesTexts !== (expected.texts !== undefined)) found.push(`${name} texts`);
    const bad = [
      () => model.predict([1, 2, NaN].slice(0, model.nFeatures === 3 ? 2 : 3)),
      () => model.predict([-1], [1]),
      () => model.predict([model.nFeatures], [1]),
    ];
    for (const call of bad) {
      try {
        call();
        found.push(`${name} accepted a bad row`);
      } catch (error) {
        if (!(error instanceof ModelError)) found.push(`${name}: ${error}`);
      }
    }
    for (const damaged of [content.slice(0, -1), content.slice(9), new Uint8Array(3)]) {
      try {
        await load(damaged);
        found.push(`${name} accepted a damaged file`);
      } catch (error) {
        if (!(error instanceof ModelError)) found.push(`${name}: ${error}`);
      }
    }
  }
  const texts = Object.keys(vectors).find((name) => vectors[name].texts);
  const model = await load(await contentOf(`${texts}.thinleaf`));
  model.predict("card ".repeat(100_000)); // memory grows
  if (model.predict("card") !== model.predict("card")) found.push("not the same twice");
  return found;
}

if (globalThis.process?.argv[2]) {
  const { readFile } = await import("node:fs/promises");
  const { pathToFileURL } = await import("node:url");
  const [web, vectors] = process.argv.slice(2).map((name) => pathToFileURL(`${name}/`));
  const found = await differences(
    await import(new URL("thinleaf.js", web)),
    JSON.parse(await readFile(new URL("vectors.json", vectors), "utf-8")),
    async (name) => new Uint8Array(await readFile(new URL(name, vectors))),
  );
  console.log(JSON.stringify(found));
}
