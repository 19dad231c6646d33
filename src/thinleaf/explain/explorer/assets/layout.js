// Where nodes are: a column for each depth, a row for each leaf or closed node. In world units,
// which are pixels at zoom 1.

const ROW = 24, WIDE_ROW = 46, COLUMN = 220;

class Layout {
  constructor(tree) {
    this.tree = tree;
    this.open = new Uint8Array(tree.nNodes);
    this.y = new Float64Array(tree.nNodes);
    this.shown = [];
  }

  x(node) {
    return this.tree.depth[node] * COLUMN;
  }

  // Opens nodes level by level, as long as few ends are to be seen; the root in any case.
  openSome(root, most) {
    let level = [root], ends = 1;
    for (;;) {
      const routers = level.filter((node) => !this.tree.isLeaf(node));
      ends += routers.reduce((sum, node) => sum + this.tree.nChildren[node] - 1, 0);
      if (routers.length === 0 || (ends > most && level[0] !== root)) return;
      for (const node of routers) this.open[node] = 1;
      level = routers.flatMap((node) => [...this.tree.children(node)]);
    }
  }

  openAll(root) {
    for (let node = root; node < this.tree.nNodes; node++) {
      if (this.tree.root[node] === root && !this.tree.isLeaf(node)) this.open[node] = 1;
    }
  }

  closeAll(root) {
    for (let node = root; node < this.tree.nNodes; node++) {
      if (this.tree.root[node] === root) this.open[node] = 0;
    }
  }

  reveal(node) {
    let changed = false;
    for (let at = this.tree.parent[node]; at >= 0; at = this.tree.parent[at]) {
      changed = changed || !this.open[at];
      this.open[at] = 1;
    }
    return changed;
  }

  // The node itself, or its closed ancestor that stands for it.
  visible(node) {
    return this.tree.pathTo(node).find((at) => !this.open[at] || at === node);
  }

  // Places the nodes of one tree.
  place(root) {
    const { tree, open } = this;
    const order = [root];
    for (let i = 0; i < order.length; i++) {
      if (open[order[i]]) for (const child of tree.children(order[i])) order.push(child);
    }
    let row = 0, deepest = 0;
    const stack = [root];
    while (stack.length) {
      const node = stack.pop();
      deepest = Math.max(deepest, tree.depth[node]);
      if (open[node]) {
        const first = tree.firstChild[node];
        for (let i = tree.nChildren[node] - 1; i >= 0; i--) stack.push(first + i);
      } else this.y[node] = row++;
    }
    // few rows are further apart
    this.row = Math.max(ROW, Math.min(WIDE_ROW, 720 / Math.max(1, row)));
    for (let i = order.length - 1; i >= 0; i--) {
      const node = order[i];
      if (!open[node]) {
        this.y[node] *= this.row;
        continue;
      }
      const first = tree.firstChild[node], last = first + tree.nChildren[node] - 1;
      this.y[node] = (this.y[first] + this.y[last]) / 2;
    }
    this.shown = order; // breadth-first: columns from left to right, from top to bottom
    this.height = Math.max(row - 1, 0) * this.row;
    this.width = deepest * COLUMN;
    this.root = root;
  }
}
