// From what is typed to a row {indices, values}: the same terms and values as the Python reader,
// to the bit: float32 where that has float32, sums in its order.

const OTHER = 0, WORD = 1, SPACE = 2;
const fround = Math.fround;

class Characters {
  constructor(block) {
    this.kinds = new Uint8Array(0x110000);
    for (const [name, kind] of [["word_runs", WORD], ["space_runs", SPACE]]) {
      const runs = block.arrays.get(name);
      for (let i = 0; i < runs.length; i += 2) this.kinds.fill(kind, runs[i], runs[i + 1]);
    }
    this.lowerOf = new Map();
    const upper = block.arrays.get("upper"), lower = block.arrays.get("lower");
    upper.forEach((code, i) => this.lowerOf.set(code, lower[i]));
  }

  // The code points of a text in lower case, as Python's str.lower has it.
  lowered(text) {
    const codes = Array.from(text, (c) => c.codePointAt(0));
    const out = [];
    codes.forEach((code, i) => {
      if (code === 0x130) out.push(0x69, 0x307);
      else if (code === 0x3a3) out.push(isFinalSigma(codes, i) ? 0x3c2 : 0x3c3);
      else out.push(this.lowerOf.get(code) ?? code);
    });
    return out;
  }

  // Runs of characters: of one kind, or of all but one.
  runs(codes, kind, wanted) {
    const out = [];
    let run = "";
    for (const code of codes) {
      if ((this.kinds[code] === kind) === wanted) run += String.fromCodePoint(code);
      else if (run !== "") {
        out.push(run);
        run = "";
      }
    }
    if (run !== "") out.push(run);
    return out;
  }
}

function isFinalSigma(codes, at) {
  const ignorable = /\p{Case_Ignorable}/u, cased = /\p{Cased}/u;
  let i = at - 1;
  while (i >= 0 && ignorable.test(String.fromCodePoint(codes[i]))) i--;
  if (i < 0 || !cased.test(String.fromCodePoint(codes[i]))) return false;
  i = at + 1;
  while (i < codes.length && ignorable.test(String.fromCodePoint(codes[i]))) i++;
  return i === codes.length || !cased.test(String.fromCodePoint(codes[i]));
}

// MurmurHash3, x86, 32 bits, seed 0.
function murmurHash(bytes) {
  const scrambled = (k) => {
    k = Math.imul(k, 0xcc9e2d51);
    k = (k << 15) | (k >>> 17);
    return Math.imul(k, 0x1b873593);
  };
  let h = 0;
  const whole = bytes.length - (bytes.length % 4);
  for (let i = 0; i < whole; i += 4) {
    h ^= scrambled(bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24));
    h = (h << 13) | (h >>> 19);
    h = (Math.imul(h, 5) + 0xe6546b64) | 0;
  }
  let k = 0;
  for (let i = whole; i < bytes.length; i++) k |= bytes[i] << (8 * (i - whole));
  if (whole < bytes.length) h ^= scrambled(k);
  h ^= bytes.length;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

// One column of texts: terms by tf-idf, or hashes.
class TextPart {
  constructor(settings, block, number, characters) {
    Object.assign(this, settings); // kind, words, chars, features, n_words, signed
    this.characters = characters;
    this.tf = block.arrays.get("tf");
    this.encoder = new TextEncoder();
    if (this.kind === "hashing") return;
    this.terms = strings(block, number + ".terms");
    const levels = block.arrays.get(number + ".idf.levels");
    this.idf = Float32Array.from(block.arrays.get(number + ".idf"), (level) => levels[level]);
  }

  // Made when the first text is typed: large vocabularies take a moment.
  get ids() {
    if (this._ids) return this._ids;
    this._ids = { words: new Map(), chars: new Map() };
    this.terms.forEach((term, id) => {
      (id < this.n_words ? this._ids.words : this._ids.chars).set(term, id);
    });
    return this._ids;
  }

  name(feature) {
    if (this.kind === "hashing") return "bucket " + feature;
    const isChars = feature >= this.n_words;
    return this.kind === "both" && isChars ? `'${this.terms[feature]}'` : this.terms[feature];
  }

  row(text) {
    const counts = new Map();
    const codes = this.characters.lowered(text);
    if (this.words) {
      const found = this.characters.runs(codes, WORD, true);
      const [low, high] = this.words;
      for (let i = 0; i < found.length; i++) {
        for (let n = low; n <= high && i + n <= found.length; n++) {
          this.count(counts, found.slice(i, i + n).join(" "), "words");
        }
      }
    }
    if (this.chars) {
      const [low, high] = this.chars;
      for (const piece of this.characters.runs(codes, SPACE, false)) {
        const padded = [" ", ...piece, " "];
        for (let i = 0; i < padded.length; i++) {
          for (let n = 1; n <= high && i + n <= padded.length; n++) {
            if (n >= low || (i === 0 && n === padded.length)) {
              this.count(counts, padded.slice(i, i + n).join(""), "chars");
            }
          }
        }
      }
    }
    return this.weighed(counts);
  }

  count(counts, gram, block) {
    if (this.kind !== "hashing") {
      const id = this.ids[block].get(gram);
      if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1);
      return;
    }
    const h = murmurHash(this.encoder.encode(gram));
    const negative = h >= 0x80000000;
    const id = (negative ? 0x100000000 - h : h) % this.features;
    counts.set(id, (counts.get(id) ?? 0) + (this.signed && negative ? -1 : 1));
  }

  weighed(counts) {
    const indices = Int32Array.from(counts.keys()).sort();
    const values = new Float32Array(indices.length);
    let words = 0, chars = 0;
    indices.forEach((id, i) => {
      const n = counts.get(id);
      if (this.kind === "hashing") values[i] = n;
      else if (n < this.tf.length) values[i] = fround(this.tf[n] * this.idf[id]);
      else values[i] = fround(fround(fround(Math.log(n)) + 1) * this.idf[id]);
      const square = fround(values[i] * values[i]);
      if (id < this.n_words) words += square;
      else chars += square;
    });
    const share = words > 0 && chars > 0 ? Math.sqrt(0.5) : 1;
    words = Math.sqrt(words) / share;
    chars = Math.sqrt(chars) / share;
    indices.forEach((id, i) => {
      const length = id < this.n_words ? words : chars;
      if (length > 0) values[i] = values[i] / length;
    });
    return { indices, values };
  }
}

// Texts of one or several columns, and numbers beside them.
class TextReader {
  constructor(settings, block) {
    const characters = new Characters(block);
    this.parts = settings.parts.map((part, i) => new TextPart(part, block, i, characters));
    this.columns = settings.columns ?? null;
    this.numeric = settings.numeric ?? [];
    this.mean = block.arrays.get("mean");
    this.scale = block.arrays.get("scale");
    this.starts = offsets(this.parts.map((part) => part.features));
    const named = this.columns ?? ["text"];
    this.fields = [
      ...named.map((label) => ({ label, numeric: false })),
      ...this.numeric.map((label) => ({ label, numeric: true })),
    ];
  }

  name(feature) {
    for (let i = 0; i < this.parts.length; i++) {
      if (feature < this.starts[i + 1]) {
        const own = this.parts[i].name(feature - this.starts[i]);
        return this.columns ? `${this.columns[i]}: ${own}` : own;
      }
    }
    return this.numeric[feature - this.starts.at(-1)];
  }

  allNames() {
    if (this.parts.some((part) => part.kind === "hashing")) return null;
    return Array.from({ length: this.starts.at(-1) + this.numeric.length }, (_, f) => this.name(f));
  }

  // Takes the content of each field.
  row(contents) {
    const indices = [], values = [];
    this.parts.forEach((part, i) => {
      const own = part.row(contents[i]);
      own.indices.forEach((id) => indices.push(id + this.starts[i]));
      own.values.forEach((value) => values.push(value));
    });
    this.numeric.forEach((label, i) => {
      const text = contents[this.parts.length + i].trim();
      const number = Number(text);
      if (text === "" || !Number.isFinite(number)) {
        throw new Error(`${label} must be a number`);
      }
      const value = fround((number - this.mean[i]) / this.scale[i]);
      if (value !== 0) {
        indices.push(this.starts.at(-1) + i);
        values.push(value);
      }
    });
    return { indices: Int32Array.from(indices), values: Float32Array.from(values) };
  }
}

// Words of a label tree: hashes, as fastText has them. A term that occurs twice counts twice.
class WordReader {
  constructor(settings, block) {
    this.settings = settings;
    this.characters = new Characters(block);
    this.keys = block.arrays.get("term_keys");
    this.encoder = new TextEncoder();
    this.fields = [{ label: "text", numeric: false }];
    this.seen = new Map(); // what terms of typed texts are called: the page has hashes alone
  }

  name(feature) {
    return this.seen.get(feature) ?? "term " + feature;
  }

  allNames() {
    return null;
  }

  find(key) {
    let low = 0, high = this.keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.keys[middle] < key) low = middle + 1;
      else high = middle;
    }
    return this.keys[low] === key ? low : -1;
  }

  row([text]) {
    const ALL = 0xffffffffffffffffn;
    const words = this.characters.runs(this.characters.lowered(text), WORD, true);
    const hashes = words.map((word) => {
      let h = 0xcbf29ce484222325n;
      for (const byte of this.encoder.encode(word)) h = ((h ^ BigInt(byte)) * 0x100000001b3n) & ALL;
      return h;
    });
    const found = [];
    hashes.forEach((first, i) => {
      let h = first;
      for (let n = 1; n <= this.settings.ngrams && i + n <= hashes.length; n++) {
        let key = h & ~1n;
        if (n === 1) key = key < 2n ? 2n : key;
        else {
          h = (h * 116049371n + hashes[i + n - 1]) & ALL;
          key = 2n * (h % BigInt(this.settings.buckets)) + 1n;
        }
        const id = this.find(key);
        if (id < 0) continue;
        found.push(id);
        this.seen.set(id, words.slice(i, i + n).join(" "));
      }
    });
    const value = this.settings.mean ? fround(1 / Math.max(found.length, 1)) : 1;
    const values = new Float32Array(found.length).fill(value);
    return { indices: Int32Array.from(found), values };
  }
}

// Rows of numbers: all of them, or pairs name:value.
class RowReader {
  constructor(nFeatures, block) {
    this.n = nFeatures;
    this.names = block.arrays.has("names.sizes") ? strings(block, "names") : null;
    this.fields = [{ label: "row", numeric: false }];
  }

  name(feature) {
    return this.names ? this.names[feature] : String(feature);
  }

  allNames() {
    return this.names;
  }

  find(name) {
    if (!this._ids) {
      this._ids = new Map();
      this.names?.forEach((own, id) => this._ids.set(own, id));
    }
    const id = this._ids.get(name);
    if (id !== undefined) return id;
    if (!this.names && /^\d+$/.test(name) && Number(name) < this.n) return Number(name);
    throw new Error(`there is no feature ${name}`);
  }

  row([text]) {
    const row = new Map();
    const trimmed = text.trim().replace(/^[[(]|[\])]$/g, "");
    const number = (word) => {
      const value = Number(word);
      if (word === "" || !Number.isFinite(fround(value))) throw new Error(`${word} is no number`);
      return fround(value);
    };
    const separator = /[,;\t\n]/.test(trimmed) ? /[,;\t\n]+/ : /\s+/; // names may have spaces
    const parts = trimmed.split(separator).map((part) => part.trim());
    const words = parts.filter((part) => part !== "");
    if (words.length && words.every((word) => word.includes(":"))) {
      for (const word of words) {
        const cut = word.lastIndexOf(":");
        const id = this.find(word.slice(0, cut).trim());
        row.set(id, fround((row.get(id) ?? 0) + number(word.slice(cut + 1).trim())));
      }
    } else {
      if (words.length !== this.n) {
        throw new Error(
          `a row has ${this.n.toLocaleString("en")} numbers, not ${words.length}; ` +
            "or give pairs name:value",
        );
      }
      words.forEach((word, id) => row.set(id, number(word)));
    }
    const indices = Int32Array.from(row.keys()).sort().filter((id) => row.get(id) !== 0);
    return { indices, values: Float32Array.from(indices, (id) => row.get(id)) };
  }
}

function makeReader(values, block) {
  if (values.input.kind === "texts") return new TextReader(values.input, block);
  if (values.input.kind === "words") return new WordReader(values.input, block);
  return new RowReader(values.features, block);
}
