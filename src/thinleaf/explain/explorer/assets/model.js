// The tree as the page shows it: nodes, what was counted at them, and what they are called.

class TreeModel {
  constructor(block) {
    const a = (name) => block.arrays.get(name);
    this.values = block.values;
    this.firstChild = a("first_child");
    this.nChildren = a("n_children");
    this.branch = a("branch");
    this.source = a("source");
    this.nNodes = this.firstChild.length;
    this.classPtr = offsets(a("class_sizes"));
    this.classIds = a("class_ids");
    this.nLeaves = this.classPtr.length - 1;
    this.labels = strings(block, "labels");
    this.examples = block.values.examples ?? [];
    this.orderOfClasses = null; // once the model says how frequent they are
    this.link();
    this.takeCounts(a);
    if (block.arrays.has("top.sizes")) {
      this.topPtr = offsets(a("top.sizes"));
      this.topNames = a("top.names");
      this.topWeights = a("top.weights");
      this.topClasses = a("top.classes");
      this.topEffects = a("top.effects");
      this.topFeatureIds = a("top.features");
      this.featureNames = strings(block, "top_names");
    } else {
      this.featureNames = [];
      this.topFeatureIds = new Int32Array(0);
    }
  }

  // Parents, depths, leaves, the tree of each node, and leaves below.
  link() {
    const n = this.nNodes;
    this.parent = new Int32Array(n).fill(-1);
    this.depth = new Int32Array(n);
    this.root = new Int32Array(n);
    this.leaf = new Int32Array(n).fill(-1);
    this.leafNode = new Int32Array(this.nLeaves);
    let leaf = 0;
    for (let node = 0; node < n; node++) {
      if (this.parent[node] < 0) this.root[node] = node;
      if (this.firstChild[node] < 0) {
        this.leafNode[leaf] = node;
        this.leaf[node] = leaf++;
      }
      for (const child of this.children(node)) {
        this.parent[child] = node;
        this.depth[child] = this.depth[node] + 1;
        this.root[child] = this.root[node];
      }
    }
    this.nBelow = this.summed((i) => 1);
    this.classesBelow = this.summed((i) => this.classPtr[i + 1] - this.classPtr[i]);
    this.maxDepth = this.depth.reduce((a, b) => Math.max(a, b), 0);
  }

  takeCounts(a) {
    this.counted = this.values.data !== null;
    if (!this.counted) return;
    const [rows, labelled, wrong] = [a("rows"), a("labelled"), a("wrong")];
    this.rows = this.summed((i) => rows[i]);
    this.labelled = this.summed((i) => labelled[i]);
    this.wrong = this.summed((i) => wrong[i]);
    this.classRows = a("class_rows") ?? null;
    this.examplesOfLeaf = new Map();
    this.examples.forEach((example, i) => {
      for (const leaf of example.leaves) {
        if (!this.examplesOfLeaf.has(leaf)) this.examplesOfLeaf.set(leaf, []);
        this.examplesOfLeaf.get(leaf).push(i);
      }
    });
  }

  // A value of leaves, added up at all nodes: children come after their parents.
  summed(ofLeaf) {
    const out = new Float64Array(this.nNodes);
    for (let node = this.nNodes - 1; node >= 0; node--) {
      if (this.leaf[node] >= 0) out[node] = ofLeaf(this.leaf[node]);
      if (this.parent[node] >= 0) out[this.parent[node]] += out[node];
    }
    return out;
  }

  *children(node) {
    const first = this.firstChild[node];
    for (let i = 0; i < this.nChildren[node]; i++) yield first + i;
  }

  isLeaf(node) {
    return this.firstChild[node] < 0;
  }

  // What a node's size stands for: rows if there are data, else classes.
  size(node) {
    return this.counted ? this.rows[node] : this.classesBelow[node];
  }

  error(node) {
    if (!this.counted || this.labelled[node] === 0) return null;
    return this.wrong[node] / this.labelled[node];
  }

  pathTo(node) {
    const out = [];
    for (let at = node; at >= 0; at = this.parent[at]) out.unshift(at);
    return out;
  }

  *leavesBelow(node) {
    const stack = [node];
    while (stack.length) {
      const at = stack.pop();
      if (this.isLeaf(at)) yield this.leaf[at];
      else for (const child of this.children(at)) stack.push(child);
    }
  }

  // The classes of a leaf, those that most rows are of first, then the most frequent ones.
  classesOf(leaf) {
    const ids = Array.from(this.classIds.subarray(this.classPtr[leaf], this.classPtr[leaf + 1]));
    return this.ordered(ids, this.classCounts(this.leafNode[leaf]));
  }

  ordered(ids, counts) {
    const place = (id) => (this.orderOfClasses ? this.orderOfClasses[id] : 0);
    const rows = (id) => (this.classRows ? counts.get(id) : 0);
    return ids.sort((a, b) => rows(b) - rows(a) || place(a) - place(b) || a - b);
  }

  // The classes at and below a node, each with its rows there; 0 where none were counted.
  classCounts(node) {
    const counts = new Map();
    for (const leaf of this.leavesBelow(node)) {
      for (let i = this.classPtr[leaf]; i < this.classPtr[leaf + 1]; i++) {
        const id = this.classIds[i];
        counts.set(id, (counts.get(id) ?? 0) + (this.classRows?.[i] ?? 0));
      }
    }
    return counts;
  }

  // The first classes of a leaf in words, the first of all with its share of the rows.
  leafWords(leaf, most) {
    const ids = this.classesOf(leaf), node = this.leafNode[leaf];
    const names = ids.slice(0, 3).map((id) => cut(this.labels[id], most));
    if (this.classRows && this.rows[node] && ids.length > 1) {
      const own = this.classCounts(node).get(ids[0]) / this.rows[node];
      if (own >= 0.05) names[0] += ` ${percent(own)}`;
    }
    return names.join(", ");
  }

  examplesBelow(node, most) {
    const seen = new Set();
    for (const leaf of this.leavesBelow(node)) {
      for (const i of this.examplesOfLeaf?.get(leaf) ?? []) seen.add(i);
      if (seen.size > 4 * most) break;
    }
    const found = Array.from(seen, (i) => this.examples[i]);
    found.sort((a, b) => b.wrong - a.wrong || a.number - b.number);
    return found.slice(0, most);
  }

  // The top features of a node: {name, weight, class}; of a router, class is the child.
  top(node) {
    if (!this.topPtr) return [];
    const out = [];
    for (let t = this.topPtr[node]; t < this.topPtr[node + 1]; t++) {
      out.push({
        name: this.featureNames[this.topNames[t]], weight: this.topWeights[t],
        of: this.topClasses[t], effect: this.topEffects[t],
      });
    }
    return out;
  }

  // The two features that speak most for going from the parent to a node.
  leadingNames(node) {
    const parent = this.parent[node];
    if (parent < 0) return [];
    const own = node - this.firstChild[parent];
    const found = this.top(parent).filter((entry) => entry.of === own);
    // words say more than parts of them, and than "of" and "the"
    const dull = ({ name }) => (/^'.*'$/s.test(name) ? 1 : 0) + (/[^\s]{4}/.test(name) ? 0 : 2);
    found.sort((a, b) => dull(a) - dull(b) || b.effect - a.effect);
    return found.slice(0, 2).map((entry) => entry.name);
  }

  leadingTo(node) {
    return this.leadingNames(node).join(", ");
  }

  nodeName(node) {
    const tree = this.values.trees > 1 ? ` of tree ${this.root[node] + 1}` : "";
    if (this.isLeaf(node)) return `leaf ${this.leaf[node]}${tree}`;
    return this.parent[node] < 0 ? `root${tree}` : `node ${this.source[node]}${tree}`;
  }

  // One line about a node, for lists and screen readers.
  summary(node) {
    const parts = [this.nodeName(node), `depth ${this.depth[node]}`];
    if (this.isLeaf(node)) {
      const leaf = this.leaf[node], n = this.classPtr[leaf + 1] - this.classPtr[leaf];
      const shown = this.leafWords(leaf, 40);
      parts.push(n === 1 ? shown : `${count(n, "class", "classes")}: ${shown}`);
    } else {
      parts.push(count(this.nBelow[node], "leaf", "leaves"));
    }
    if (this.counted) parts.push(count(this.rows[node], "row", "rows"));
    const error = this.error(node);
    if (error !== null) parts.push(`error ${percent(error)}`);
    return parts.join(", ");
  }
}
