// The page: what happens on a click, a key, a touch, and which part tells which.

const ENDS_AT_FIRST = 20;

class App {
  constructor(tree) {
    this.tree = tree;
    this.predictor = null;
    this.reader = null;
    this.layout = new Layout(tree);
    for (let root = 0; root < tree.values.trees; root++) this.layout.openSome(root, ENDS_AT_FIRST);
    this.canvas = new Canvas(document.getElementById("canvas"), tree, this.layout);
    this.details = new Details(this);
    this.outline = new OutlineView(this);
    this.search = new Search(this);
    this.answers = new Answers(this);
    this.live = document.getElementById("live");
    this.theme = new Theme(this);
    this.wire();
    this.layout.place(0);
    this.theme.apply();
    this.canvas.resize();
    this.canvas.fit();
    this.outline.start(0);
    this.about();
    this.legend();
  }

  // -- the model, once it is unpacked --------------------------------------------------------------

  takeModel(block, leaves) {
    if (block) {
      this.reader = makeReader(this.tree.values, block);
      this.predictor = this.tree.values.kind === "softmax"
        ? new SoftmaxPredictor(this.tree, block, leaves) : new LabelPredictor(this.tree, block);
      if (this.predictor.rank) {
        this.tree.orderOfClasses = new Int32Array(this.predictor.rank.length);
        this.predictor.rank.forEach((id, place) => (this.tree.orderOfClasses[id] = place));
        this.canvas.texts.clear();
      }
    }
    this.answers.start();
    this.canvas.request();
  }

  // The answer to the contents of the fields: {best: [{id, p}], paths, known}.
  answer(contents, k = N_BEST) {
    return this.predictor.answer(this.reader.row(contents), Math.min(k, this.tree.labels.length));
  }

  // -- what is shown -------------------------------------------------------------------------------

  announce(text) {
    this.live.textContent = text;
  }

  select(node, bringIntoView, tab = "node") {
    if (this.tree.root[node] !== this.layout.root) this.switchTree(this.tree.root[node]);
    if (this.layout.reveal(node)) this.canvas.place(this.layout.root);
    this.canvas.selected = node;
    if (bringIntoView) this.canvas.show([node]);
    this.details.show(node);
    this.outline.reveal(node);
    if (tab) this.showTab(tab === "node" && this.tab === "outline" ? "outline" : tab);
    this.announce(this.tree.summary(node));
    this.canvas.request();
  }

  toggle(node) {
    if (this.tree.isLeaf(node)) return;
    this.layout.open[node] = this.layout.open[node] ? 0 : 1;
    const x = this.canvas.screenX(node), y = this.canvas.screenY(node);
    this.canvas.place(this.layout.root);
    // the node stays where it was on the screen
    this.canvas.view.y = this.layout.y[node] - y / this.canvas.view.zoom;
    this.canvas.view.x = this.layout.x(node) - x / this.canvas.scaleX(this.canvas.view.zoom);
    this.canvas.from = null;
    this.canvas.request();
    this.announce(`${this.tree.nodeName(node)} ${this.layout.open[node] ? "opened" : "closed"}`);
  }

  openBelow(node) {
    const stack = [node];
    while (stack.length) {
      const at = stack.pop();
      if (this.tree.isLeaf(at)) continue;
      this.layout.open[at] = 1;
      stack.push(...this.tree.children(at));
    }
    this.canvas.place(this.layout.root);
    this.details.show(node);
  }

  openAll(open) {
    const root = this.layout.root;
    if (open) this.layout.openAll(root);
    else {
      this.layout.closeAll(root);
      this.layout.openSome(root, ENDS_AT_FIRST);
    }
    this.canvas.from = null;
    this.layout.place(root);
    if (open) this.canvas.fit(true);
    else this.canvas.fit();
  }

  switchTree(root) {
    document.getElementById("tree-switch").value = String(root);
    this.canvas.from = null;
    this.layout.place(root);
    this.canvas.selected = -1;
    this.canvas.fit();
    this.outline.start(root);
    const shown = this.canvas.walks.flatMap((walk) => this.canvas.ofThisTree(walk));
    for (const path of shown) this.layout.reveal(path.nodes.at(-1));
    if (shown.length) {
      this.layout.place(root);
      this.canvas.show(shown.flatMap((path) => path.nodes));
    }
    this.answers.follow();
    this.announce(`tree ${root + 1} of ${this.tree.values.trees}`);
  }

  // Draws the paths of inputs, and brings those of this tree into view.
  walk(walks, animated) {
    let opened = false;
    for (const walk of walks) {
      for (const path of walk.paths) opened = this.layout.reveal(path.nodes.at(-1)) || opened;
    }
    if (opened) {
      this.canvas.from = null;
      this.layout.place(this.layout.root);
    }
    const shown = walks.flatMap((walk) => walk.paths.filter((path) => path.nodes[0] === this.layout.root));
    if (animated && shown.length) this.canvas.show(shown.flatMap((path) => path.nodes));
    this.canvas.walk(walks, animated);
  }

  showPath(path) {
    if (path.nodes[0] !== this.layout.root) this.switchTree(path.nodes[0]);
    this.canvas.show(path.nodes);
    this.canvas.request();
  }

  mark(nodes, what) {
    this.canvas.marks = new Set(nodes);
    const marked = document.getElementById("marked");
    marked.textContent = "";
    marked.hidden = nodes.length === 0;
    if (nodes.length === 0) {
      this.canvas.request();
      return;
    }
    let at = 0;
    const go = (step) => {
      at = (at + step + nodes.length) % nodes.length;
      this.select(nodes[at], true);
      place.textContent = `${at + 1} of ${nodes.length}`;
    };
    const place = el("span", { class: "number" }, `1 of ${nodes.length}`);
    marked.append(data(what, 60), " ", place, " ");
    if (nodes.length > 1) {
      marked.append(
        el("button", { type: "button", "aria-label": "previous", onclick: () => go(-1) }, "‹"),
        el("button", { type: "button", "aria-label": "next", onclick: () => go(1) }, "›"));
    }
    marked.append(el("button", { type: "button", "aria-label": "clear", onclick: () => this.clearMarks() }, "×"));
    this.select(nodes[0], true);
  }

  clearMarks() {
    this.mark([], "");
  }

  findClass(id) {
    const { tree } = this;
    const found = [];
    for (let leaf = 0; leaf < tree.nLeaves; leaf++) {
      for (let i = tree.classPtr[leaf]; i < tree.classPtr[leaf + 1]; i++) {
        if (tree.classIds[i] === id) found.push(tree.leafNode[leaf]);
      }
    }
    const own = (node) => (tree.root[node] === this.layout.root ? 0 : 1);
    found.sort((a, b) => own(a) - own(b) || tree.size(b) - tree.size(a));
    this.mark(found, tree.labels[id]);
    if (found.length === 0) this.announce("no leaf holds it");
  }

  // Nodes that a feature decides at, those where it is among the first before others.
  findFeature(feature, name) {
    const { tree } = this;
    const found = [];
    const i = tree.topFeatureIds.indexOf(feature);
    for (let node = 0; i >= 0 && node < tree.nNodes; node++) {
      for (let t = tree.topPtr[node]; t < tree.topPtr[node + 1]; t++) {
        if (tree.topNames[t] === i) found.push([node, tree.topEffects[t]]);
      }
    }
    const seen = new Set(found.sort((a, b) => b[1] - a[1]).map(([node]) => node));
    for (const node of this.predictor?.nodesWith(feature, 50) ?? []) seen.add(node);
    this.mark(Array.from(seen), name);
    if (seen.size === 0) this.announce("no router has a weight for it");
  }

  // All names of features that can be searched, and which feature each is of.
  get featureNames() {
    if (this.allNames) return this.allNames;
    const { tree } = this;
    const names = this.reader?.allNames() ?? null;
    if (names) this.allNames = { names, ids: null };
    return this.allNames ?? { names: tree.featureNames, ids: tree.topFeatureIds ?? [] };
  }

  showTab(name) {
    this.tab = name;
    for (const button of document.querySelectorAll("[role=tab]")) {
      const chosen = button.getAttribute("aria-controls") === name;
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
      document.getElementById(button.getAttribute("aria-controls")).hidden = !chosen;
    }
  }

  about() {
    const { values } = this.tree;
    const facts = [
      ["classes", this.tree.labels.length.toLocaleString("en")],
      ["features", values.features.toLocaleString("en")],
      ["leaves", this.tree.nLeaves.toLocaleString("en")],
      values.trees > 1 ? ["trees", String(values.trees)] : null,
      ["depth", String(this.tree.maxDepth)],
      values.beam > 1 ? ["paths a row takes", `${values.beam} at temperature ${values.temperature}`] : null,
      ["model", `${(values.bytes / 1e6).toFixed(1)} MB, weights ${values.weights}`],
      values.data ? ["data", `${values.data.name}: ${count(values.data.rows, "row", "rows")}`] : null,
      values.data?.labelled ? ["error", percent(values.data.wrong / values.data.labelled)] : null,
      ...Object.entries(values.summary).slice(0, 12),
    ];
    const list = el("dl", { class: "facts" });
    for (const fact of facts.filter(Boolean)) list.append(el("dt", {}, data(fact[0].replaceAll("_", " "), 60)), el("dd", {}, data(fact[1], 80)));
    document.getElementById("facts").append(list);
    const notes = document.getElementById("notes");
    for (const note of values.notes) notes.append(el("p", {}, note));
    notes.hidden = values.notes.length === 0;
    const chips = document.getElementById("chips");
    for (const [name, value] of facts.filter(Boolean).filter(([name]) => ["classes", "leaves", "trees", "error"].includes(name))) {
      const one = { classes: "class", leaves: "leaf" }[name];
      chips.append(el("span", {}, el("strong", {}, value), ` ${value === "1" && one ? one : name}`));
    }
  }

  legend() {
    const { canvas, tree } = this;
    const by = canvas.colourBy;
    const [low, high] = by === "error" ? ["0 %", percent(canvas.mostError)]
      : by === "depth" ? ["0", String(tree.maxDepth)] : ["few", tree.counted ? "many rows" : "many classes"];
    const ramp = el("span", { class: "ramp" });
    ramp.style.background = `linear-gradient(to right, ${canvas.ramp.join(", ")})`;
    const legend = document.getElementById("legend");
    legend.textContent = "";
    legend.append(el("span", {}, `${by} `), el("span", {}, low), ramp, el("span", {}, high),
      el("span", { class: "shape" }, "○ router"), el("span", { class: "shape" }, "⊕ closed"), el("span", { class: "shape" }, "▢ leaf"));
  }

  // -- wires ---------------------------------------------------------------------------------------

  wire() {
    const by = (id) => document.getElementById(id);
    const colour = by("colour");
    if (!this.tree.counted || !this.tree.values.data.labelled) colour.querySelector("[value=error]").disabled = true;
    colour.value = this.canvas.colourBy;
    colour.addEventListener("change", () => {
      this.canvas.setColours(colour.value);
      this.legend();
    });
    const trees = by("tree-switch");
    by("tree-label").hidden = this.tree.values.trees === 1;
    for (let root = 0; root < this.tree.values.trees; root++) {
      trees.append(el("option", { value: root }, `tree ${root + 1} of ${this.tree.values.trees}`));
    }
    trees.addEventListener("change", () => this.switchTree(Number(trees.value)));
    by("zoom-in").addEventListener("click", () => this.canvas.zoomAt(1.4));
    by("zoom-out").addEventListener("click", () => this.canvas.zoomAt(1 / 1.4));
    by("fit").addEventListener("click", () => this.canvas.fit(true));
    by("open-all").addEventListener("click", () => this.openAll(true));
    by("close-all").addEventListener("click", () => this.openAll(false));
    by("print").addEventListener("click", () => window.print());
    const tabs = Array.from(document.querySelectorAll("[role=tab]"));
    tabs.forEach((tab, i) => {
      tab.addEventListener("click", () => this.showTab(tab.getAttribute("aria-controls")));
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = tabs[(i + step + tabs.length) % tabs.length];
        this.showTab(next.getAttribute("aria-controls"));
        next.focus();
      });
    });
    this.wireCanvas(by("canvas"));
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
        event.preventDefault();
        by("search").focus();
      }
    });
    new ResizeObserver(() => this.canvas.resize()).observe(by("canvas"));
  }

  wireCanvas(element) {
    const { canvas } = this;
    const pointers = new Map();
    let moved = 0, spread = 0;
    const place = (event) => {
      const box = element.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    element.addEventListener("pointerdown", (event) => {
      element.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, place(event));
      moved = 0;
      spread = 0;
    });
    element.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      if (!pointers.has(event.pointerId)) {
        const over = canvas.nodeAt(x, y);
        if (over !== canvas.hovered) {
          canvas.hovered = over;
          element.classList.toggle("over", over >= 0);
          element.title = over < 0 ? "" : cut(this.tree.summary(over), 300);
          canvas.request();
        }
        return;
      }
      const [x0, y0] = pointers.get(event.pointerId);
      pointers.set(event.pointerId, [x, y]);
      moved += Math.hypot(x - x0, y - y0);
      if (pointers.size === 1) canvas.pan(x - x0, y - y0);
      else {
        const [[ax, ay], [bx, by]] = Array.from(pointers.values());
        const now = Math.hypot(ax - bx, ay - by);
        if (spread) canvas.zoomAt(now / spread, (ax + bx) / 2, (ay + by) / 2);
        spread = now;
      }
    });
    const release = (event) => {
      const held = pointers.delete(event.pointerId);
      if (event.type !== "pointerup" || !held || moved > 5) return;
      const node = canvas.nodeAt(...place(event));
      if (node < 0) return;
      if (node === canvas.selected || event.detail > 1) this.toggle(node);
      this.select(node, false);
    };
    element.addEventListener("pointerup", release);
    element.addEventListener("pointercancel", release);
    element.addEventListener("wheel", (event) => {
      event.preventDefault();
      const scale = event.deltaMode === 1 ? 16 : 1;
      if (event.shiftKey) canvas.pan(-(event.deltaY + event.deltaX) * scale, 0);
      else if (event.ctrlKey || Math.abs(event.deltaY) >= Math.abs(event.deltaX)) {
        canvas.zoomAt(Math.exp(-event.deltaY * scale * (event.ctrlKey ? 0.01 : 0.0016)), ...place(event));
      } else canvas.pan(-event.deltaX * scale, 0);
    }, { passive: false });
    element.addEventListener("keydown", (event) => this.key(event));
    element.addEventListener("focus", () => {
      if (canvas.selected < 0 && element.matches(":focus-visible")) this.select(this.layout.root, false, null);
    });
  }

  // Keys on the canvas.
  key(event) {
    const { tree, layout, canvas } = this;
    const at = canvas.selected < 0 ? layout.root : canvas.selected;
    const beside = (step) => {
      const same = layout.shown.filter((node) => tree.depth[node] === tree.depth[at]);
      const next = same[same.indexOf(at) + step];
      if (next !== undefined) this.select(next, true);
    };
    const actions = {
      ArrowUp: () => beside(-1),
      ArrowDown: () => beside(1),
      ArrowLeft: () => tree.parent[at] >= 0 && this.select(tree.parent[at], true),
      ArrowRight: () => {
        if (tree.isLeaf(at)) return;
        if (!layout.open[at]) this.toggle(at);
        this.select(tree.firstChild[at], true);
      },
      Enter: () => { this.toggle(at); this.details.show(at); },
      " ": () => { this.toggle(at); this.details.show(at); },
      Home: () => this.select(layout.root, true),
      "+": () => canvas.zoomAt(1.3),
      "=": () => canvas.zoomAt(1.3),
      "-": () => canvas.zoomAt(1 / 1.3),
      0: () => canvas.fit(true),
      Escape: () => this.clearMarks(),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  }
}

// Light or dark: what the system says, until the switch is used.
class Theme {
  constructor(app) {
    this.app = app;
    this.system = matchMedia("(prefers-color-scheme: dark)");
    this.chosen = null;
    this.button = document.getElementById("theme");
    this.system.addEventListener("change", () => this.apply());
    this.button.addEventListener("click", () => {
      this.chosen = this.isDark ? "light" : "dark";
      this.apply();
    });
    window.addEventListener("beforeprint", () => this.apply("light"));
    window.addEventListener("afterprint", () => this.apply());
  }

  get isDark() {
    return this.chosen ? this.chosen === "dark" : this.system.matches;
  }

  apply(forced = null) {
    const dark = forced ? forced === "dark" : this.isDark;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    this.button.setAttribute("aria-label", dark ? "light page" : "dark page");
    this.button.textContent = dark ? "☀" : "☾";
    this.app.canvas.setTheme(dark);
    if (this.app.canvas.width) {
      this.app.legend();
      this.app.canvas.draw();
    }
  }
}

async function start() {
  const began = performance.now();
  if (!("DecompressionStream" in window)) {
    document.getElementById("live").textContent = "";
    document.getElementById("ask").textContent = "This browser is too old for the page: it cannot unpack it.";
    return;
  }
  const app = new App(new TreeModel(await unpack("tree")));
  const drawn = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 0)); // the tree is seen before the model is read
  app.takeModel(await unpack("model"), await unpack("leaves"));
  // for tests and for consoles
  window.explorer = {
    app,
    timings: { began, drawn: drawn - began, ready: performance.now() - began },
    answer: (...contents) => {
      const { best, paths } = app.answer(contents);
      return {
        best: best && best.map(({ id, p }) => [app.tree.labels[id], p]),
        leaves: paths.map((path) => path.leaf),
        weights: paths.map((path) => path.weight),
      };
    },
  };
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => {
  document.getElementById("ask").textContent = `The page could not be opened: ${error.message}`;
  throw error;
});
