// Predicts with .thinleaf model files in browsers, Node, Deno and workers: thinleaf.h as WebAssembly.
// Types and documentation are in thinleaf.d.ts.

const DENSE = 1;
const PAIRS = 2;
const TEXT = 4;
const INT = 0;
const FLOAT = 1;
const BOOL = 2;
const WASM_BYTES = 1024; // of the stack and tables, about: no input begins there
const encoder = new TextEncoder();
const decoder = new TextDecoder();
let compiled = null;

async function bytesOf(source) {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) {
    return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  }
  const base = globalThis.document?.baseURI ?? import.meta.url;
  const url = source instanceof URL ? source : new URL(String(source), base);
  if (url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: HTTP ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

export async function init(wasm = new URL("./thinleaf.wasm", import.meta.url)) {
  compiled = wasm instanceof WebAssembly.Module ? wasm : await WebAssembly.compile(await bytesOf(wasm));
}

export async function load(source) {
  const content = await bytesOf(source);
  if (compiled === null) await init();
  return new Model(content);
}

export class ModelError extends Error {
  constructor(message, status) {
    super(message);
    this.name = "ModelError";
    this.status = status;
  }
}

export class Model {
  #wasm;
  #at;
  #mark;
  #kind;
  #n = 0;
  #view;
  #floats;
  #ints;
  #room = { kinds: 0, bytes: 0, k: 0, at: 0, out: 0, scratch: 0, size: 0 };

  constructor(content) {
    if (compiled === null) throw new Error("call and await init() first, or use load()");
    this.#wasm = new WebAssembly.Instance(compiled).exports;
    const wasm = this.#wasm;
    const data = this.#take(content.length);
    new Uint8Array(wasm.memory.buffer).set(content, data);
    const need = wasm.memory_size(data, content.length) >>> 0;
    const memory = this.#take(need);
    this.#at = this.#take(wasm.model_size());
    this.#check(wasm.open(this.#at, data, content.length, memory, need));
    this.#mark = this.#take(0);
    [this.nFeatures, this.nClasses, this.nTrees, this.depth] = [0, 1, 2, 3].map((i) => wasm.number(this.#at, i));
    this.takesTexts = wasm.number(this.#at, 4) === 0;
    this.#kind = wasm.number(this.#at, 5);
  }

  #take(n) {
    const at = this.#wasm.take(n) >>> 0;
    if (at < WASM_BYTES) throw new ModelError("not enough memory", -8);
    return at;
  }

  #check(status) {
    if (status >= 0) return status;
    const at = this.#wasm.error(status);
    const bytes = new Uint8Array(this.#wasm.memory.buffer, at, 200);
    throw new ModelError(decoder.decode(bytes.subarray(0, bytes.indexOf(0))), status);
  }

  // Memory for an input of so many bytes and k results; it is kept for the next one.
  #roomFor(kind, bytes, k) {
    const room = this.#room;
    if (kind & ~room.kinds || bytes > room.bytes || k > room.k) {
      const wasm = this.#wasm;
      wasm.release(this.#mark);
      room.kinds |= kind;
      room.bytes = Math.max(bytes + (bytes >> 1), room.bytes, 256);
      room.k = Math.max(k, room.k, 8);
      room.at = this.#take(room.bytes);
      room.out = this.#take(16 * room.k + 16);
      room.size = wasm.scratch_size(this.#at, room.kinds, room.bytes) >>> 0;
      room.scratch = this.#take(room.size);
    }
    return room;
  }

  // Copy an input to memory; returns its kind, and leaves how long it is in #n.
  #input(x, values, k = 0) {
    if (typeof x === "string") {
      const room = this.#roomFor(TEXT, 3 * x.length, k);
      const into = this.#bytes().subarray(room.at, room.at + room.bytes);
      this.#n = encoder.encodeInto(x, into).written;
      return TEXT;
    }
    if (!(x?.length >= 0) || (values !== undefined && values.length !== x.length)) {
      throw new TypeError("give a text, a row of numbers, or indices and as many values");
    }
    const kind = values === undefined ? DENSE : PAIRS;
    const room = this.#roomFor(kind, 8 * x.length, k);
    this.#n = x.length;
    this.#bytes();
    if (kind === DENSE) this.#floats.set(x, room.at >> 2);
    else {
      this.#ints.set(x, room.at >> 2);
      this.#floats.set(values, (room.at >> 2) + x.length);
    }
    return kind;
  }

  // Views of the memory, which change when it grows.
  #bytes() {
    const { buffer } = this.#wasm.memory;
    if (this.#view?.buffer !== buffer) {
      this.#view = new Uint8Array(buffer);
      this.#floats = new Float32Array(buffer);
      this.#ints = new Int32Array(buffer);
    }
    return this.#view;
  }

  predictId(x, values) {
    const kind = this.#input(x, values);
    const { at, scratch, size } = this.#room;
    const id = this.#wasm.predict(this.#at, kind, at, at + 4 * this.#n, this.#n, scratch, size);
    return id < 0 ? this.#check(id) : id;
  }

  predict(x, values) {
    return this.label(this.predictId(x, values));
  }

  #given(x, values, k) {
    const kind = this.#input(x, values, k);
    return [kind, this.#room.at, this.#room.at + 4 * this.#n, this.#n];
  }

  topk(x, k = 5, values = undefined) {
    const n = Math.min(k, this.nClasses);
    const input = this.#given(x, values, n);
    const { out, scratch, size } = this.#room;
    const valuesAt = out + 8 * this.#room.k;
    this.#check(this.#wasm.topk(this.#at, ...input, n, out, valuesAt, scratch, size));
    const ids = new Int32Array(this.#wasm.memory.buffer, out, n);
    const p = new Float64Array(this.#wasm.memory.buffer, valuesAt, n);
    return Array.from(ids, (id, i) => ({ id, label: this.label(id), probability: p[i] }));
  }

  path(x, tree = 0, values = undefined) {
    const input = this.#given(x, values, this.depth + 1);
    const { out, scratch, size } = this.#room;
    const end = out + 12 * (this.depth + 1);
    const n = this.#check(this.#wasm.path(this.#at, ...input, tree, out, this.depth, end, scratch, size));
    const view = new DataView(this.#wasm.memory.buffer);
    const steps = Array.from({ length: n }, (_, i) => ({
      node: view.getInt32(out + 12 * i, true),
      branch: view.getInt32(out + 12 * i + 4, true),
      score: view.getFloat32(out + 12 * i + 8, true),
    }));
    return { steps, end: view.getInt32(end, true) };
  }

  label(id) {
    const wasm = this.#wasm;
    if (!(id >= 0 && id < this.nClasses)) throw new RangeError(`there is no class ${id}`);
    if (this.#kind === BOOL) return wasm.label_number(this.#at, id) === 1;
    if (this.#kind === FLOAT) return wasm.label_number(this.#at, id);
    if (this.#kind === INT) {
      const value = wasm.label_int(this.#at, id);
      return Number.isSafeInteger(Number(value)) ? Number(value) : value;
    }
    const { out, k } = this.#roomFor(0, 0, 1);
    const at = wasm.label_text(this.#at, id, out + 16 * k);
    const length = new DataView(wasm.memory.buffer).getUint32(out + 16 * k, true);
    return decoder.decode(new Uint8Array(wasm.memory.buffer, at, length));
  }
}
