// One node: rows, error, top features, classes, examples.

class Details {
  constructor(app) {
    this.app = app;
    this.element = document.getElementById("node");
  }

  show(node) {
    const { tree } = this.app;
    this.element.textContent = "";
    this.element.append(
      el("h2", {}, tree.nodeName(node)),
      this.way(node),
      this.figures(node),
    );
    if (!tree.isLeaf(node)) this.element.append(this.openButton(node));
    this.element.append(this.features(node), this.classes(node), this.examples(node));
  }

  openButton(node) {
    const { app } = this;
    const isOpen = app.layout.open[node];
    return el("div", { class: "row" },
      el("button", { type: "button", onclick: () => { app.toggle(node); this.show(node); } }, isOpen ? "Close" : "Open"),
      el("button", { type: "button", onclick: () => app.openBelow(node) }, "Open all below"));
  }

  way(node) {
    const { app } = this;
    const list = el("p", { class: "way" });
    app.tree.pathTo(node).forEach((at, i) => {
      if (i > 0) list.append(" › ");
      list.append(at === node ? el("strong", {}, app.tree.nodeName(at))
        : el("button", { type: "button", class: "link", onclick: () => app.select(at, true) }, app.tree.parent[at] < 0 ? "root" : String(app.tree.source[at])));
    });
    return list;
  }

  figures(node) {
    const { tree } = this.app;
    const entries = [];
    if (tree.counted) {
      entries.push(["rows", Math.round(tree.rows[node]).toLocaleString("en"), tree.rows[node] / Math.max(1, tree.rows[tree.root[node]])]);
      const error = tree.error(node);
      if (error !== null) entries.push(["error", percent(error), error]);
    }
    if (!tree.isLeaf(node)) entries.push(["leaves", Math.round(tree.nBelow[node]).toLocaleString("en"), null]);
    entries.push(["depth", String(tree.depth[node]), null]);
    const list = el("dl", { class: "figures" });
    for (const [name, value, share] of entries) {
      list.append(el("div", {}, el("dt", {}, name), el("dd", {}, value, share === null ? null : bar(share, name))));
    }
    return list;
  }

  features(node) {
    const { tree } = this.app;
    const top = tree.top(node);
    const part = el("section", {}, el("h3", {}, tree.isLeaf(node) ? "Features that speak for a class" : "Features that decide"));
    if (top.length === 0) {
      part.append(el("p", { class: "empty" }, tree.topPtr ? "None: it has no weights." : "Features of this model have no names."));
      return part;
    }
    const most = top.reduce((a, entry) => Math.max(a, entry.effect), 1e-9);
    const rows = (entries, kind) => {
      const list = el("ul", { class: `weights ${kind}` });
      for (const { name, weight, of, effect } of entries) {
        list.append(el("li", {}, data(name, 60), bar(effect / most, kind), el("span", { class: "number" }, Math.abs(weight).toFixed(2)),
          kind === "leaf" ? el("span", { class: "of" }, "→ ", data(tree.labels[of], 40)) : null));
      }
      return list;
    };
    if (tree.isLeaf(node)) part.append(rows(top, "leaf"));
    else {
      const n = tree.nChildren[node];
      for (let i = 0; i < n; i++) {
        const own = top.filter((entry) => entry.of === i);
        if (own.length === 0) continue;
        const child = tree.firstChild[node] + i;
        const side = n === 2 ? ["up (left)", "down (right)"][i] : `branch ${i + 1}`;
        part.append(el("h4", {}, `${side}: `, el("button", { type: "button", class: "link", onclick: () => this.app.select(child, true) }, tree.nodeName(child))),
          rows(own, n === 2 ? ["left", "right"][i] : "leaf-like"));
      }
    }
    return part;
  }

  classes(node) {
    const { tree } = this.app;
    const isLeaf = tree.isLeaf(node);
    const counts = tree.classCounts(node);
    const ids = isLeaf ? tree.classesOf(tree.leaf[node]) : tree.ordered(Array.from(counts.keys()), counts);
    const part = el("section", {}, el("h3", {}, count(ids.length, "class", "classes"),
      tree.classRows ? el("small", { class: "muted" }, " and their share of the rows") : null));
    const list = el("ul", { class: "classes" });
    const show = (most) => {
      list.textContent = "";
      for (const id of ids.slice(0, most)) {
        list.append(el("li", {}, el("button", { type: "button", class: "tag", onclick: () => this.app.findClass(id) }, data(tree.labels[id], 80),
          tree.classRows && counts.get(id) ? el("small", { class: "share" }, " " + percent(counts.get(id) / tree.rows[node])) : null)));
      }
      if (ids.length > most) {
        list.append(el("li", {}, el("button", { type: "button", class: "link", onclick: () => show(most * 10) }, `${(ids.length - most).toLocaleString("en")} more`)));
      }
    };
    show(40);
    part.append(list);
    return part;
  }

  examples(node) {
    const { app } = this;
    const { tree } = app;
    if (!tree.counted) return el("p", { class: "empty" }, "The page was made without data: there are no rows and examples.");
    const found = tree.examplesBelow(node, 12);
    const part = el("section", {}, el("h3", {}, "Examples"));
    if (found.length === 0) part.append(el("p", { class: "empty" }, tree.rows[node] ? "None were kept." : "No row of the data comes here."));
    const list = el("ul", { class: "examples" });
    for (const example of found) list.append(this.example(example));
    part.append(list);
    return part;
  }

  // A text or a row; of a table's row, each cell with the name of its column.
  content({ text, cells }) {
    if (!cells) return el("p", {}, data(text, 300));
    const { columns, numeric } = this.app.tree.values.input;
    const names = [...(columns ?? []), ...(numeric ?? [])];
    const list = el("dl", { class: "cells" });
    cells.forEach((cell, i) => list.append(el("dt", {}, data(names[i] ?? "", 40)), el("dd", {}, data(cell, 300))));
    return list;
  }

  example(example) {
    const { app } = this;
    const said = el("p", { class: "said" });
    if (example.label !== null) said.append(el("span", { class: example.wrong ? "is-wrong" : "is-right" }, example.wrong ? "✗ " : "✓ "), data(example.label, 80));
    if (example.wrong || example.label === null) {
      said.append(el("span", { class: "muted" }, example.wrong ? " predicted " : "predicted "), data(app.tree.labels[example.predicted], 80));
    }
    const walk = example.whole && app.predictor
      ? el("button", { type: "button", class: "link", onclick: () => { app.showTab("ask"); app.answers.set(example); } }, "walk") : null;
    return el("li", {}, this.content(example), said, el("span", { class: "foot" }, `row ${example.number.toLocaleString("en")} `, walk));
  }
}
