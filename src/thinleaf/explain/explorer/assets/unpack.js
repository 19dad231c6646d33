// Blocks of the page: base64 of deflated planes of bytes; see block.py.

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const STEP = 1 << 20; // a multiple of four
  const parts = [];
  let size = 0;
  for (let at = 0; at < text.length; at += STEP) {
    const raw = atob(text.slice(at, at + STEP));
    const part = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) part[i] = raw.charCodeAt(i);
    parts.push(part);
    size += part.length;
  }
  const out = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const WIDTHS = { u1: 1, i1: 1, f2: 2, i4: 4, d4: 4, f4: 4, u8: 8, f8: 8 };

function fromPlanes(bytes, begin, size, width) {
  if (width === 1) return bytes.slice(begin, begin + size);
  const out = new Uint8Array(size * width);
  for (let plane = 0; plane < width; plane++) {
    let at = begin + plane * size;
    for (let i = plane; i < out.length; i += width) out[i] = bytes[at++];
  }
  return out;
}

function halfToFloat(half) {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function typedArray(kind, raw) {
  if (kind === "u1") return raw;
  if (kind === "i1") return new Int8Array(raw.buffer);
  if (kind === "f2") return Float32Array.from(new Uint16Array(raw.buffer), halfToFloat);
  if (kind === "f4") return new Float32Array(raw.buffer);
  if (kind === "f8") return new Float64Array(raw.buffer);
  if (kind === "u8") return new BigUint64Array(raw.buffer);
  const out = new Int32Array(raw.buffer);
  if (kind === "d4") for (let i = 1; i < out.length; i++) out[i] += out[i - 1];
  return out;
}

// Returns {values, arrays} of a block, or null if the page does not have it.
async function unpack(name) {
  const element = document.getElementById("block-" + name);
  const text = element.textContent;
  element.textContent = "";
  if (text === "") return null;
  const bytes = await inflate(fromBase64(text));
  const headerSize = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + headerSize)));
  const arrays = new Map();
  let at = 4 + headerSize;
  for (const [key, kind, size] of header.arrays) {
    arrays.set(key, typedArray(kind, fromPlanes(bytes, at, size, WIDTHS[kind])));
    at += size * WIDTHS[kind];
  }
  return { values: header.values, arrays };
}

function strings(block, name) {
  const all = new TextDecoder().decode(block.arrays.get(name + ".utf8"));
  const sizes = block.arrays.get(name + ".sizes");
  const out = new Array(sizes.length);
  let at = 0;
  for (let i = 0; i < sizes.length; i++) {
    out[i] = all.slice(at, at + sizes[i]);
    at += sizes[i];
  }
  return out;
}

function offsets(sizes) {
  const out = new Int32Array(sizes.length + 1);
  for (let i = 0; i < sizes.length; i++) out[i + 1] = out[i] + sizes[i];
  return out;
}
