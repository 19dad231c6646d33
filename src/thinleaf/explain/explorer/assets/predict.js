// From a row to its paths and the probabilities at their ends, in the order of the compiled
// kernels: routers and leaves add up in float32, mixtures in float64.

function sigmoid(score) {
  return 1 / (1 + Math.exp(-score));
}

// Softmax trees, forests and online trees.
class SoftmaxPredictor {
  constructor(tree, block, leaves) {
    this.tree = tree;
    const a = (name) => block.arrays.get(name);
    this.routerPtr = offsets(a("router.sizes"));
    this.routerFeatures = a("router.features");
    this.routerWeights = a("router.weights");
    this.lanes = a("router.lanes");
    this.bias = a("router.bias");
    this.leafBias = a("leaf.bias");
    this.leafScale = a("leaf.scale");
    this.inside = a("inside");
    this.outside = a("outside");
    this.prior = a("prior");
    this.rank = a("rank");
    this.extra = a("extra");
    this.extraIds = a("extra.ids");
    this.extraPtr = offsets(a("extra.sizes"));
    this.x = new Float32Array(tree.values.features);
    this.beam = tree.values.beam;
    this.sharpness = 1 / tree.values.temperature;
    this.kept = new Int32Array(tree.nLeaves).fill(-1);
    if (leaves) this.takeLeaves(leaves);
  }

  takeLeaves(block) {
    const a = (name) => block.arrays.get(name);
    a("kept").forEach((leaf, i) => (this.kept[leaf] = i));
    this.rowPtr = offsets(a("kept.sizes"));
    this.leafFeatures = a("kept.features");
    const rowSizes = a("kept.row_sizes");
    this.entryPtr = offsets(rowSizes);
    this.slots = a("kept.slots");
    this.values = a("kept.values");
    // slots are there only of rows that lack a class
    this.slotPtr = new Int32Array(rowSizes.length);
    let at = 0;
    a("kept").forEach((leaf, i) => {
      const k = this.tree.classPtr[leaf + 1] - this.tree.classPtr[leaf];
      for (let r = this.rowPtr[i]; r < this.rowPtr[i + 1]; r++) {
        this.slotPtr[r] = rowSizes[r] === k ? -1 : at;
        if (rowSizes[r] !== k) at += rowSizes[r];
      }
    });
  }

  get canAnswer() {
    return this.rowPtr !== undefined;
  }

  routerScore(node) {
    const { x, routerFeatures: features, routerWeights: weights } = this;
    const begin = this.routerPtr[node], end = this.routerPtr[node + 1];
    let total = 0;
    if (!this.lanes[node]) {
      for (let t = begin; t < end; t++) {
        const value = x[features[t]];
        if (value !== 0) total = fround(total + fround(value * weights[t]));
      }
    } else {
      const lane = new Float32Array(8);
      const whole = x.length - (x.length % 8);
      let t = begin;
      for (; t < end && features[t] < whole; t++) {
        const at = features[t] % 8;
        lane[at] += fround(x[features[t]] * weights[t]);
      }
      const [a, b, c, d, e, f, g, h] = lane;
      const low = fround(fround(a + b) + fround(c + d));
      total = fround(low + fround(fround(e + f) + fround(g + h)));
      for (; t < end; t++) total = fround(total + fround(x[features[t]] * weights[t]));
    }
    return fround(total + this.bias[node]);
  }

  // What each feature of the row adds to a router's score.
  routerParts(node) {
    const out = [];
    for (let t = this.routerPtr[node]; t < this.routerPtr[node + 1]; t++) {
      const value = this.x[this.routerFeatures[t]];
      if (value !== 0) {
        out.push({ feature: this.routerFeatures[t], value: value * this.routerWeights[t] });
      }
    }
    return out;
  }

  // Calls add(position, value) for each weight of a leaf's features that the row has, in order.
  eachEntry(leaf, add) {
    const i = this.kept[leaf];
    for (let r = this.rowPtr[i]; r < this.rowPtr[i + 1]; r++) {
      const feature = this.leafFeatures[r], x = this.x[feature];
      if (x === 0) continue;
      const begin = this.entryPtr[r], size = this.entryPtr[r + 1] - begin, at = this.slotPtr[r];
      for (let e = 0; e < size; e++) {
        add(at < 0 ? e : this.slots[at + e], fround(x * this.values[begin + e]), feature);
      }
    }
  }

  leafScores(leaf) {
    const first = this.tree.classPtr[leaf], k = this.tree.classPtr[leaf + 1] - first;
    const scaled = this.leafScale.length > 0;
    const scores = new Float32Array(k);
    if (!scaled) scores.set(this.leafBias.subarray(first, first + k));
    this.eachEntry(leaf, (slot, value) => (scores[slot] += value));
    if (scaled) {
      for (let c = 0; c < k; c++) {
        scores[c] = fround(scores[c] * this.leafScale[first + c]) + this.leafBias[first + c];
      }
    }
    return scores;
  }

  // What each feature of the row adds to the score of a class in a leaf, over the leaf's mean.
  leafParts(leaf, classId) {
    const first = this.tree.classPtr[leaf], k = this.tree.classPtr[leaf + 1] - first;
    const own = this.tree.classIds.subarray(first, first + k).indexOf(classId);
    if (own < 0 || this.kept[leaf] < 0) return [];
    const parts = new Map();
    this.eachEntry(leaf, (slot, value, feature) => {
      const scale = this.leafScale.length ? this.leafScale[first + slot] : 1;
      const share = (slot === own ? value - value / k : -value / k) * scale;
      parts.set(feature, (parts.get(feature) ?? 0) + share);
    });
    return Array.from(parts, ([feature, value]) => ({ feature, value }));
  }

  descend(root) {
    const { firstChild } = this.tree;
    const path = { nodes: [root], scores: [], log: 0 };
    let node = root;
    while (firstChild[node] >= 0) {
      const score = this.routerScore(node);
      node = firstChild[node] + (score >= 0 ? 1 : 0);
      path.scores.push(score);
      path.nodes.push(node);
    }
    return path;
  }

  beamSearch(root) {
    const { firstChild } = this.tree;
    let paths = [{ nodes: [root], scores: [], log: 0 }];
    const goesOn = (path) => firstChild[path.nodes.at(-1)] >= 0;
    const stepped = (path, child, score, log) => ({
      nodes: [...path.nodes, child], scores: [...path.scores, score], log: path.log + log,
    });
    while (paths.some(goesOn)) {
      const n = paths.length;
      for (let p = 0; p < n; p++) {
        const path = paths[p];
        if (!goesOn(path)) continue;
        const node = path.nodes.at(-1), left = firstChild[node];
        const raw = this.routerScore(node);
        const score = this.sharpness * raw;
        const soft = Math.log1p(Math.exp(-Math.abs(score)));
        paths.push(stepped(path, left, raw, Math.min(-score, 0) - soft));
        paths[p] = stepped(path, left + 1, raw, Math.min(score, 0) - soft);
      }
      paths.sort((a, b) => b.log - a.log); // stable, as by insertion
      paths = paths.slice(0, this.beam);
    }
    const top = paths[0].log;
    let mass = 0;
    for (const path of paths) mass += path.weight = Math.exp(path.log - top);
    for (const path of paths) path.weight /= mass;
    return paths;
  }

  paths() {
    const trees = this.tree.values.trees;
    const out = [];
    for (let root = 0; root < trees; root++) {
      const own = this.beam === 1 ? [this.descend(root)] : this.beamSearch(root);
      for (const path of own) {
        path.tree = root;
        path.weight = (path.weight ?? 1) / trees;
        path.leaf = this.tree.leaf[path.nodes.at(-1)];
        out.push(path);
      }
    }
    return out;
  }

  // The classes that leaves hold or have seen, with probabilities; null if a leaf is not here.
  mixture(paths) {
    if (paths.some((path) => this.kept[path.leaf] < 0)) return null;
    const { classPtr, classIds } = this.tree;
    let rest = 0;
    for (const path of paths) rest += path.weight * this.outside[path.leaf];
    const p = new Map();
    const start = (id) => p.get(id) ?? rest * this.prior[id];
    for (const path of paths) {
      const leaf = path.leaf;
      const share = path.weight * this.inside[leaf], missing = path.weight * this.outside[leaf];
      const scores = this.leafScores(leaf);
      let top = -Infinity, total = 0;
      for (const score of scores) top = Math.max(top, score);
      const own = Float64Array.from(scores, (score) => Math.exp(score - top));
      for (const value of own) total += value;
      own.forEach((value, c) => {
        const id = classIds[classPtr[leaf] + c];
        p.set(id, start(id) - missing * this.prior[id] + share * (value / total));
      });
      let best = 0;
      own.forEach((value, c) => (best = value > own[best] ? c : best));
      path.best = classIds[classPtr[leaf] + best];
      path.bestShare = own[best] / total;
    }
    for (const path of paths) {
      const leaf = path.leaf;
      for (let t = this.extraPtr[leaf]; t < this.extraPtr[leaf + 1]; t++) {
        const id = this.extraIds[t];
        p.set(id, start(id) + path.weight * this.outside[leaf] * this.extra[t]);
      }
    }
    return { p, rest };
  }

  top({ p, rest }, k) {
    const best = Array.from(p, ([id, value]) => ({ id, p: Math.max(value, 0) }));
    best.sort((a, b) => b.p - a.p);
    best.length = Math.min(best.length, k);
    for (const id of this.rank) {
      const value = rest * this.prior[id];
      if (best.length === k && value <= best[k - 1].p) break;
      if (p.has(id)) continue;
      const at = best.findIndex((entry) => entry.p < value);
      best.splice(at < 0 ? best.length : at, 0, { id, p: value });
      best.length = Math.min(best.length, k);
    }
    return best;
  }

  answer(row, k) {
    row.indices.forEach((feature, i) => (this.x[feature] += row.values[i]));
    try {
      const paths = this.paths();
      for (const path of paths) {
        path.steps = path.nodes.slice(0, -1).map((node, i) => ({
          node,
          child: path.nodes[i + 1],
          p: sigmoid(this.sharpness * path.scores[i] * (this.isRight(path.nodes[i + 1]) ? 1 : -1)),
          parts: this.routerParts(node).map(({ feature, value }) => ({
            feature, value: this.isRight(path.nodes[i + 1]) ? value : -value,
          })),
        }));
      }
      const mixture = this.canAnswer ? this.mixture(paths) : null;
      const best = mixture ? this.top(mixture, k) : null;
      if (best) for (const path of paths) path.parts = this.leafParts(path.leaf, best[0].id);
      paths.sort((a, b) => a.tree - b.tree || b.weight - a.weight);
      return { paths, best, known: row.indices.length };
    } finally {
      row.indices.forEach((feature) => (this.x[feature] = 0));
    }
  }

  isRight(node) {
    return this.tree.branch[node] === 1;
  }

  // Nodes that give a feature a weight, the heaviest first.
  nodesWith(feature, most) {
    const out = [];
    for (let node = 0; node < this.tree.nNodes; node++) {
      for (let t = this.routerPtr[node]; t < this.routerPtr[node + 1]; t++) {
        if (this.routerFeatures[t] === feature) out.push([Math.abs(this.routerWeights[t]), node]);
      }
    }
    out.sort((a, b) => b[0] - a[0]);
    return out.slice(0, most).map(([, node]) => node);
  }
}

// Label trees: an embedding, and a softmax over the children of each node.
class LabelPredictor {
  constructor(tree, block) {
    this.tree = tree;
    Object.assign(this, block.values); // dim, outputs, scale
    this.weights = block.arrays.get("node.weights");
    this.bias = block.arrays.get("node.bias");
    this.embeddings = block.arrays.get("embeddings");
    this.greedy = tree.values.greedy;
  }

  get canAnswer() {
    return true;
  }

  embedded({ indices, values }) {
    const w = new Float64Array(this.dim);
    indices.forEach((feature, i) => {
      const x = values[i] * this.scale;
      for (let t = 0; t < this.dim; t++) w[t] += x * this.embeddings[feature * this.dim + t];
    });
    return w;
  }

  // The logarithm of the probability of each child.
  childLogs(node, w) {
    const at = this.tree.source[node] * this.outputs;
    const scores = [];
    for (let j = 0; j < this.outputs; j++) {
      let score = this.bias[at + j];
      for (let t = 0; t < this.dim; t++) score += this.weights[(at + j) * this.dim + t] * w[t];
      scores.push(score);
    }
    if (this.outputs === 1) {
      const soft = Math.log1p(Math.exp(-Math.abs(scores[0])));
      return [-soft - Math.max(scores[0], 0), -soft + Math.min(scores[0], 0)];
    }
    const top = Math.max(...scores);
    const norm = top + Math.log(scores.reduce((sum, score) => sum + Math.exp(score - top), 0));
    return scores.map((score) => Math.min(score - norm, 0));
  }

  // What each feature of the row adds to a child's score, over that of the best other child.
  stepParts({ indices, values }, node, child, logs) {
    const { firstChild, nChildren, branch } = this.tree;
    let other = -1;
    for (let at = firstChild[node]; at < firstChild[node] + nChildren[node]; at++) {
      if (at !== child && (other < 0 || logs[at] > logs[other])) other = at;
    }
    if (other < 0) return [];
    const first = this.tree.source[node] * this.outputs;
    const weight = (at, t) => {
      if (this.outputs === 1) return branch[at] === 1 ? this.weights[first * this.dim + t] : 0;
      return this.weights[(first + branch[at]) * this.dim + t];
    };
    const apart = Float64Array.from({ length: this.dim }, (_, t) => weight(child, t) - weight(other, t));
    const parts = new Map(); // a term that occurs twice is one feature
    indices.forEach((feature, i) => {
      let value = 0;
      for (let t = 0; t < this.dim; t++) value += apart[t] * this.embeddings[feature * this.dim + t];
      parts.set(feature, (parts.get(feature) ?? 0) + value * values[i] * this.scale);
    });
    return Array.from(parts, ([feature, value]) => ({ feature, value }));
  }

  answer(row, k) {
    const { firstChild, nChildren, branch, nNodes, leaf, classIds } = this.tree;
    const w = this.embedded(row);
    const logs = new Float64Array(nNodes);
    let greedyNode = 0;
    for (let node = 0; node < nNodes; node++) {
      if (firstChild[node] < 0) continue;
      const own = this.childLogs(node, w);
      let best = firstChild[node];
      for (let child = firstChild[node]; child < firstChild[node] + nChildren[node]; child++) {
        logs[child] = logs[node] + own[branch[child]];
        if (own[branch[child]] > own[branch[best]]) best = child;
      }
      if (node === greedyNode) greedyNode = best;
    }
    const ends = [];
    for (let node = 0; node < nNodes; node++) if (leaf[node] >= 0) ends.push(node);
    ends.sort((a, b) => logs[b] - logs[a] || leaf[a] - leaf[b]);
    if (this.greedy) {
      ends.splice(ends.indexOf(greedyNode), 1);
      ends.unshift(greedyNode);
    }
    const best = ends.slice(0, k).map((node) => ({ id: classIds[leaf[node]], p: Math.exp(logs[node]) }));
    const paths = ends.slice(0, 3).map((end) => {
      const nodes = this.tree.pathTo(end);
      const steps = nodes.slice(0, -1).map((node, i) => ({
        node, child: nodes[i + 1], p: Math.exp(logs[nodes[i + 1]] - logs[node]),
        parts: this.stepParts(row, node, nodes[i + 1], logs),
      }));
      const classId = classIds[leaf[end]];
      return {
        nodes, steps, tree: 0, leaf: leaf[end], weight: Math.exp(logs[end]),
        best: classId, bestShare: 1, parts: [],
      };
    });
    return { paths, best, known: row.indices.length };
  }

  nodesWith() {
    return [];
  }
}
