// The canvas: nodes and edges, what is in view of them, paths of inputs, and where the pointer is.

const RAMPS = {
  light: {
    error: ["#f6d58a", "#ef8a3c", "#b3202c"],
    size: ["#c3dbf3", "#4d8fd6", "#123f7c"],
    depth: ["#d9cdf0", "#8d6cc9", "#41217a"],
    none: "#b9c0ca",
  },
  dark: {
    error: ["#6b5427", "#e08a3c", "#ff6f61"],
    size: ["#274261", "#4d8fd6", "#a8d1ff"],
    depth: ["#3a2e57", "#8d6cc9", "#d6c2ff"],
    none: "#535d6b",
  },
};

function mixed(ramp, share) {
  const at = Math.max(0, Math.min(1, share)) * (ramp.length - 1);
  const i = Math.min(Math.floor(at), ramp.length - 2);
  const parse = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
  const a = parse(ramp[i]), b = parse(ramp[i + 1]);
  return `rgb(${a.map((v, k) => Math.round(v + (b[k] - v) * (at - i))).join(",")})`;
}

const N_SHADES = 16;
const SPECK = 1.5; // pixels of the smallest node

class Canvas {
  constructor(element, tree, layout) {
    this.element = element;
    this.context = element.getContext("2d", { alpha: false });
    this.tree = tree;
    this.layout = layout;
    this.view = { x: 0, y: 0, zoom: 1 };
    this.colourBy = tree.counted && tree.values.data.labelled ? "error" : "size";
    this.selected = -1;
    this.hovered = -1;
    this.marks = new Set();
    this.walks = []; // {colour, paths: [{nodes, weight}]}
    this.progress = 1;
    this.from = null; // positions before an animation
    this.texts = new Map();
    this.pending = false;
    this.dark = false;
    this.scale = 1;
  }

  resize() {
    const box = this.element.getBoundingClientRect();
    this.ratio = window.devicePixelRatio || 1;
    this.width = box.width;
    this.height = box.height;
    this.element.width = Math.max(1, Math.round(box.width * this.ratio));
    this.element.height = Math.max(1, Math.round(box.height * this.ratio));
    this.draw();
  }

  setTheme(dark) {
    this.dark = dark;
    const style = getComputedStyle(document.documentElement);
    const names = ["canvas", "ink", "muted", "edge", "accent", "accent-b", "rim", "mark"];
    this.colours = Object.fromEntries(
      names.map((name) => [name, style.getPropertyValue("--" + name).trim()]),
    );
    this.setColours(this.colourBy);
  }

  setColours(by) {
    this.colourBy = by;
    const ramps = RAMPS[this.dark ? "dark" : "light"];
    this.ramp = ramps[by];
    this.shades = Array.from({ length: N_SHADES }, (_, i) => mixed(this.ramp, i / (N_SHADES - 1)));
    this.noColour = ramps.none;
    const { tree } = this;
    let most = 0;
    for (let node = 0; node < tree.nNodes; node++) {
      if (by === "error") most = Math.max(most, tree.labelled?.[node] > 4 ? tree.error(node) : 0);
    }
    this.mostError = Math.max(0.05, most);
    this.shade = new Int8Array(tree.nNodes);
    for (let node = 0; node < tree.nNodes; node++) {
      const share = this.share(node);
      this.shade[node] = share === null ? -1 : Math.round(share * (N_SHADES - 1));
    }
    this.request();
  }

  share(node) {
    const { tree } = this;
    if (this.colourBy === "depth") return tree.depth[node] / Math.max(1, tree.maxDepth);
    if (this.colourBy === "error") {
      const error = tree.error(node);
      return error === null ? null : Math.min(1, error / this.mostError);
    }
    const total = tree.size(tree.root[node]);
    return Math.log1p(tree.size(node)) / Math.log1p(Math.max(1, total));
  }

  colour(node) {
    return this.shade[node] < 0 ? this.noColour : this.shades[this.shade[node]];
  }

  radius(node) {
    const { tree } = this;
    const share = tree.size(node) / Math.max(1, tree.size(tree.root[node]));
    return 4.5 + 8 * Math.sqrt(share);
  }

  // -- where things are --------------------------------------------------------------------------

  worldY(node) {
    if (!this.from) return this.layout.y[node];
    const before = this.from.get(node) ?? this.from.get(this.ancestorBefore(node));
    if (before === undefined) return this.layout.y[node];
    const t = this.moved;
    return before + (this.layout.y[node] - before) * t;
  }

  ancestorBefore(node) {
    let at = node;
    while (at >= 0 && !this.from.has(at)) at = this.tree.parent[at];
    return at;
  }

  screenX(node) {
    return (this.layout.x(node) - this.view.x) * this.scale;
  }

  screenY(node) {
    return (this.worldY(node) - this.view.y) * this.view.zoom;
  }

  nodeAt(x, y) {
    let best = -1, nearest = Infinity;
    const zoom = this.view.zoom;
    for (const node of this.layout.shown) {
      const dx = x - this.screenX(node), dy = y - this.screenY(node);
      const reach = dx > 0 ? (zoom > 0.45 && !this.layout.open[node] ? 150 : 14) : 14;
      if (Math.abs(dy) > Math.max(8, Math.min(13, (this.layout.row / 2) * zoom)) || dx < -14 || dx > reach) continue;
      const distance = Math.hypot(Math.min(dx, 0) + Math.max(0, dx - reach + 14), dy) + Math.abs(dx) / 50;
      if (distance < nearest) {
        nearest = distance;
        best = node;
      }
    }
    return best;
  }

  // Columns fill the width whatever the zoom of rows, up to 1: trees are far higher than wide.
  get columnsThatFit() {
    return Math.max(0.12, Math.min(1.2, (this.width - 250) / Math.max(1, this.layout.width)));
  }

  scaleX(zoom) {
    return this.columnsThatFit * Math.max(1, zoom);
  }

  // What was opened at first, legibly; or all of it, however small.
  fit(all = false) {
    const { layout } = this;
    const rows = (this.height - 110) / Math.max(1, layout.height);
    const zoom = Math.min(1, rows);
    this.view.zoom = all ? zoom : Math.max(zoom, Math.min(0.62, 3 * zoom));
    const scale = this.scaleX(this.view.zoom);
    const spare = this.width - 190 - layout.width * scale;
    this.view.x = -Math.max(40, spare / 2) / scale;
    const tall = layout.height * this.view.zoom > this.height;
    const middle = tall && !all ? layout.y[layout.root] : layout.height / 2;
    this.view.y = middle - this.height / 2 / this.view.zoom;
    this.request();
  }

  // Brings nodes into view; does not move if they are.
  show(nodes) {
    const xs = nodes.map((node) => this.layout.x(node)), ys = nodes.map((node) => this.layout.y[node]);
    const left = Math.min(...xs), right = Math.max(...xs), top = Math.min(...ys), bottom = Math.max(...ys);
    const { view } = this;
    const inside =
      (left - view.x) * this.scale > 16 && (right - view.x) * this.scale < this.width - 150 &&
      (top - view.y) * view.zoom > 24 && (bottom - view.y) * view.zoom < this.height - 24;
    if (inside && view.zoom > 0.4) return;
    const zoom = Math.min(1, (this.height - 110) / Math.max(1, bottom - top));
    const target = { zoom: nodes.length > 1 ? zoom : Math.max(0.7, Math.min(1.1, view.zoom)) };
    const scale = this.scaleX(target.zoom);
    target.x = (left + right + 130 / scale) / 2 - this.width / 2 / scale;
    if ((right - left) * scale > this.width - 200) target.x = right - (this.width - 190) / scale;
    target.y = (top + bottom) / 2 - this.height / 2 / target.zoom;
    this.glide(target);
  }

  glide(target) {
    if (reducedMotion()) {
      this.view = target;
      this.request();
      return;
    }
    const start = { ...this.view }, began = performance.now();
    const mine = (this.gliding = {});
    const step = (now) => {
      if (this.gliding !== mine) return;
      const t = eased(Math.min(1, (now - began) / 350));
      for (const key of ["x", "y", "zoom"]) this.view[key] = start[key] + (target[key] - start[key]) * t;
      this.draw();
      if (t < 1) requestAnimationFrame(step);
      else this.gliding = null;
    };
    requestAnimationFrame(step);
  }

  zoomAt(factor, x = this.width / 2, y = this.height / 2) {
    this.gliding = null;
    const { view } = this;
    const zoom = Math.max(0.0005, Math.min(4, view.zoom * factor));
    view.x += x / this.scaleX(view.zoom) - x / this.scaleX(zoom);
    view.y += y / view.zoom - y / zoom;
    view.zoom = zoom;
    this.request();
  }

  pan(dx, dy) {
    this.gliding = null;
    this.view.x -= dx / this.scaleX(this.view.zoom);
    this.view.y -= dy / this.view.zoom;
    this.request();
  }

  // Places the tree anew; nodes move to where they now are.
  place(root) {
    const before = new Map();
    if (this.layout.root === root) for (const node of this.layout.shown) before.set(node, this.layout.y[node]);
    this.layout.place(root);
    if (before.size === 0 || this.layout.shown.length > 1500 || reducedMotion()) {
      this.from = null;
      this.request();
      return;
    }
    this.from = before;
    const began = performance.now();
    const mine = (this.moving = {});
    const step = (now) => {
      if (this.moving !== mine) return;
      this.moved = eased(Math.min(1, (now - began) / 280));
      if (this.moved >= 1) this.from = null;
      this.draw();
      if (this.from) requestAnimationFrame(step);
    };
    this.moved = 0;
    requestAnimationFrame(step);
  }

  // -- drawing -----------------------------------------------------------------------------------

  request() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  draw() {
    if (!this.colours || !this.width) return;
    const c = this.context, { layout, view } = this;
    this.scale = this.scaleX(view.zoom);
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = this.colours.canvas;
    c.fillRect(0, 0, this.width, this.height);
    const inView = this.inView();
    const pitch = layout.row * view.zoom;
    this.drawEdges(inView, pitch);
    this.drawWalks();
    if (pitch < 5) this.drawSpecks(inView);
    else this.drawNodes(inView, pitch);
    this.drawRings();
    if (pitch >= 10) this.drawLabels(inView, pitch);
    this.walkEnds();
  }

  // Nodes that can be seen, without those that would cover the one before.
  inView() {
    const { layout, tree, view } = this;
    const out = [];
    const step = layout.row * view.zoom < SPECK ? SPECK / view.zoom : 0;
    const top = view.y - 30 / view.zoom, bottom = view.y + (this.height + 30) / view.zoom;
    let depth = -1, last = -Infinity;
    for (const node of layout.shown) {
      const y = this.worldY(node);
      if (tree.depth[node] !== depth) {
        depth = tree.depth[node];
        last = -Infinity;
      }
      if (y < top || y > bottom || y - last < step) continue;
      last = y;
      out.push(node);
    }
    return out;
  }

  drawEdges(inView, pitch) {
    const c = this.context, { tree, view } = this;
    const fine = pitch < 5;
    const groups = new Map();
    const add = (child) => {
      const parent = tree.parent[child];
      if (parent < 0) return;
      const x2 = this.screenX(child), x1 = this.screenX(parent);
      if (x2 < 0 || x1 > this.width) return;
      const share = tree.size(child) / Math.max(1, tree.size(tree.root[child]));
      const width = fine ? 0.6 : Math.round(2 * (1 + 7 * Math.sqrt(share) * Math.min(1, view.zoom))) / 2;
      if (!groups.has(width)) groups.set(width, []);
      groups.get(width).push(child);
    };
    for (const node of inView) add(node);
    // of a node in view whose parent is, too, the edge is there; long edges of far nodes:
    for (const node of inView) {
      if (!this.layout.open[node]) continue;
      for (const child of tree.children(node)) {
        const y = this.screenY(child);
        if (y < -30 || y > this.height + 30) add(child);
      }
    }
    c.strokeStyle = this.colours.edge;
    for (const [width, children] of groups) {
      c.lineWidth = width;
      c.beginPath();
      for (const child of children) this.trace(tree.parent[child], child, fine);
      c.stroke();
    }
  }

  trace(parent, child, straight, share = 1) {
    const c = this.context;
    const x1 = this.screenX(parent), y1 = this.screenY(parent);
    const x2 = this.screenX(child), y2 = this.screenY(child);
    c.moveTo(x1, y1);
    if (straight) {
      c.lineTo(x2, y2);
      return;
    }
    const middle = x1 + (x2 - x1) * 0.42;
    if (share >= 1) {
      c.bezierCurveTo(middle, y1, middle - (x2 - x1) * 0.08, y2, x2, y2);
      return;
    }
    const a = [x1, y1], b = [middle, y1], d = [middle - (x2 - x1) * 0.08, y2], e = [x2, y2];
    const mix = (p, q) => [p[0] + (q[0] - p[0]) * share, p[1] + (q[1] - p[1]) * share];
    // de Casteljau: the first part of the curve
    const first = mix(a, b), second = mix(b, d), third = mix(d, e);
    const left = mix(first, second), right = mix(second, third);
    c.bezierCurveTo(...first, ...left, ...mix(left, right));
  }

  drawSpecks(inView) {
    const c = this.context, { tree } = this;
    const least = Math.max(SPECK, Math.min(4, this.layout.row * this.view.zoom));
    const total = Math.max(1, tree.size(this.layout.root));
    const groups = Array.from({ length: N_SHADES + 1 }, () => []);
    for (const node of inView) groups[this.shade[node] + 1].push(node);
    groups.forEach((nodes, i) => {
      c.fillStyle = i === 0 ? this.noColour : this.shades[i - 1];
      for (const node of nodes) {
        const size = least + 9 * Math.sqrt(tree.size(node) / total);
        c.fillRect(this.screenX(node) - size / 2, this.screenY(node) - size / 2, size, size);
      }
    });
  }

  drawNodes(inView, pitch) {
    const c = this.context, { tree, layout } = this;
    const limit = Math.max(2.2, pitch * 0.42);
    c.lineWidth = 1.5;
    for (const node of inView) {
      const x = this.screenX(node), y = this.screenY(node);
      if (x < -20 || x > this.width + 20) continue;
      const r = Math.min(this.radius(node) * Math.min(1.2, Math.max(0.55, this.view.zoom)), layout.open[node] ? 12 : limit);
      c.beginPath();
      if (tree.isLeaf(node)) c.roundRect(x - r, y - r, 2 * r, 2 * r, Math.min(3, r * 0.5));
      else c.arc(x, y, r, 0, 2 * Math.PI);
      c.fillStyle = this.colour(node);
      c.fill();
      c.strokeStyle = this.colours.rim;
      c.stroke();
      if (!tree.isLeaf(node) && !layout.open[node] && r > 4.2) {
        c.strokeStyle = this.colours.ink;
        c.lineWidth = 1.4;
        c.beginPath();
        const arm = Math.min(3.5, r * 0.55);
        c.moveTo(x - arm, y);
        c.lineTo(x + arm, y);
        c.moveTo(x, y - arm);
        c.lineTo(x, y + arm);
        c.stroke();
        c.lineWidth = 1.5;
      }
    }
  }

  drawRings() {
    const c = this.context;
    const ring = (node, colour, width, extra) => {
      const at = this.layout.visible(node);
      if (this.tree.root[at] !== this.layout.root) return;
      const r = Math.min(this.radius(at), 12) * Math.min(1.2, Math.max(0.55, this.view.zoom)) + extra;
      c.beginPath();
      c.arc(this.screenX(at), this.screenY(at), Math.max(4, r), 0, 2 * Math.PI);
      c.strokeStyle = colour;
      c.lineWidth = width;
      c.stroke();
    };
    for (const node of this.marks) ring(node, this.colours.mark, 2.5, 4);
    if (this.hovered >= 0) ring(this.hovered, this.colours.muted, 1.5, 3);
    if (this.selected >= 0) ring(this.selected, this.colours.ink, 2.5, 3.5);
  }

  ofThisTree(walk) {
    return walk.paths.filter((path) => path.nodes[0] === this.layout.root);
  }

  drawWalks() {
    const c = this.context;
    c.lineCap = "round";
    this.walks.forEach((walk, number) => {
      const paths = this.ofThisTree(walk);
      const scale = this.walks.length === 1 ? 1 : number === 0 ? 1.8 : 0.7; // both are seen
      const most = Math.max(...paths.map((path) => path.weight), 1e-9);
      const colour = this.colours[walk.colour];
      for (const path of paths.slice().reverse()) {
        const share = path.weight / most;
        const reached = this.progress * (path.nodes.length - 1);
        c.strokeStyle = colour;
        c.globalAlpha = 0.25 + 0.75 * Math.sqrt(share);
        c.lineWidth = scale * (1.5 + 3.5 * Math.sqrt(share)) * Math.max(0.5, Math.min(1.2, this.view.zoom));
        c.beginPath();
        for (let i = 1; i < path.nodes.length; i++) {
          if (reached <= i - 1 || !this.layout.open[path.nodes[i - 1]]) break;
          this.trace(path.nodes[i - 1], path.nodes[i], false, Math.min(1, reached - i + 1));
        }
        c.stroke();
      }
    });
    c.globalAlpha = 1;
    c.lineCap = "butt";
  }

  walkEnds() {
    const c = this.context;
    this.walks.forEach((walk, i) => {
      if (this.progress < 1) return;
      for (const path of this.ofThisTree(walk)) {
        const end = this.layout.visible(path.nodes.at(-1));
        const x = this.screenX(end), y = this.screenY(end);
        c.beginPath();
        c.arc(x, y, 6 + 3 * i, 0, 2 * Math.PI);
        c.lineWidth = 2.5;
        c.strokeStyle = this.colours[walk.colour];
        c.globalAlpha = 0.3 + 0.7 * Math.sqrt(path.weight);
        c.stroke();
        c.globalAlpha = 1;
        if (this.hasPill(path)) {
          this.pill(this.tree.labels[path.best], x + 15, y + (i === 1 ? 4 : 0), this.colours[walk.colour]);
        }
      }
    });
  }

  hasPill(path) {
    return path.best !== undefined && path.weight * this.tree.values.trees > 0.03;
  }

  // The answer of a path at its end.
  pill(text, x, y, colour) {
    const c = this.context;
    c.font = "650 13px ui-sans-serif, system-ui, sans-serif";
    c.textAlign = "left";
    c.textBaseline = "middle";
    const shown = this.fitted(text, 190);
    const width = c.measureText(shown).width + 16;
    c.beginPath();
    c.roundRect(x, y - 11, width, 22, 11);
    c.fillStyle = this.colours.canvas;
    c.fill();
    c.lineWidth = 2;
    c.strokeStyle = colour;
    c.stroke();
    c.fillStyle = this.colours.ink;
    c.fillText(shown, x + 8, y + 0.5);
  }

  label(node) {
    if (this.texts.has(node)) return this.texts.get(node);
    const { tree } = this;
    let text;
    if (tree.isLeaf(node)) {
      const leaf = tree.leaf[node], n = tree.classPtr[leaf + 1] - tree.classPtr[leaf];
      const shown = tree.leafWords(leaf, 28);
      text = n > 3 ? `${shown} +${(n - 3).toLocaleString("en")}` : shown;
    } else text = `${count(tree.nBelow[node], "leaf", "leaves")}${this.sizeInWords(node)}`;
    const found = { end: cut(text, 44), way: tree.leadingNames(node) };
    this.texts.set(node, found);
    return found;
  }

  // As many characters as there is room for, in the font that is set.
  fitted(text, room) {
    const c = this.context;
    let shown = drawable(text, 60);
    for (let n = Math.min(text.length, 60); n > 4 && c.measureText(shown).width > room; n -= 2) {
      shown = drawable(text, n);
    }
    return shown;
  }

  sizeInWords(node) {
    return this.tree.counted ? ` · ${count(this.tree.rows[node], "row", "rows")}` : "";
  }

  drawLabels(inView, pitch) {
    const c = this.context, { layout, tree, view } = this;
    const size = Math.max(9, Math.min(13, 12 * view.zoom + 1));
    c.textBaseline = "middle";
    const answered = new Set();
    if (this.progress === 1) {
      for (const walk of this.walks) {
        for (const path of this.ofThisTree(walk)) if (this.hasPill(path)) answered.add(path.nodes.at(-1));
      }
    }
    const family = "ui-sans-serif, system-ui, sans-serif";
    for (const node of inView) {
      const x = this.screenX(node), y = this.screenY(node);
      if (x < -300 || x > this.width + COLUMN * this.scale) continue;
      const r = Math.min(this.radius(node), 12) * Math.min(1.2, Math.max(0.55, view.zoom));
      const { end, way } = this.label(node);
      if (!layout.open[node] && !answered.has(node)) {
        c.font = `${tree.isLeaf(node) ? 500 : 400} ${size}px ${family}`;
        c.fillStyle = tree.isLeaf(node) ? this.colours.ink : this.colours.muted;
        c.textAlign = "left";
        const room = Math.max(40, this.width - x - r - 14);
        c.fillText(room < 300 ? this.fitted(end, room) : drawable(end, 44), x + r + 7, y);
      }
      if (way.length && view.zoom > 0.5 && this.scale > 0.3 && (layout.open[node] || pitch > 23)) {
        c.font = `italic ${size - 0.5}px ${family}`;
        c.textAlign = "right";
        const room = COLUMN * this.scale * 0.66;
        const both = drawable(way.join(", "), 60);
        const shown = c.measureText(both).width <= room ? both : this.fitted(way[0], room);
        // on the side that the edge does not come from
        const below = this.screenY(tree.parent[node]) < y;
        const at = y + (below ? 0.85 : -0.75) * size;
        c.lineWidth = 3;
        c.strokeStyle = this.colours.canvas;
        c.fillStyle = this.colours.muted;
        c.strokeText(shown, x - r - 4, at);
        c.fillText(shown, x - r - 4, at);
      }
    }
    c.textAlign = "left";
  }

  // -- walking -----------------------------------------------------------------------------------

  walk(walks, animated) {
    this.walks = walks;
    if (!animated || reducedMotion() || walks.length === 0) {
      this.progress = 1;
      this.request();
      return;
    }
    const began = performance.now();
    const mine = (this.walking = {});
    this.progress = 0;
    const step = (now) => {
      if (this.walking !== mine) return;
      this.progress = Math.min(1, (now - began) / 700);
      this.draw();
      if (this.progress < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }
}

function eased(t) {
  return t < 0.5 ? 4 * t * t * t : 1 - (-2 * t + 2) ** 3 / 2;
}

function reducedMotion() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
