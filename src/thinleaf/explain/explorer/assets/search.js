// Search: classes, features, texts of examples, and nodes by number.

const N_FOUND = 6;

class Search {
  constructor(app) {
    this.app = app;
    this.input = document.getElementById("search");
    this.list = document.getElementById("found");
    this.found = [];
    this.at = -1;
    this.input.addEventListener("input", () => this.update());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("focus", () => this.input.value && this.update());
    document.addEventListener("pointerdown", (event) => {
      if (!event.target.closest(".search")) this.close();
    });
  }

  update() {
    const query = this.input.value.trim().toLowerCase();
    this.found = query === "" ? [] : this.find(query);
    this.at = -1;
    this.render(query);
  }

  find(query) {
    const { app } = this;
    const { tree } = app;
    const classes = matches(tree.labels, query, N_FOUND).map((id) => ({
      kind: "class", text: tree.labels[id], go: () => app.findClass(id),
    }));
    const { names, ids } = app.featureNames;
    const features = matches(names, query, N_FOUND).map((i) => ({
      kind: "feature", text: names[i], go: () => app.findFeature(ids ? ids[i] : i, names[i]),
    }));
    const texts = [];
    for (const example of tree.examples) {
      if (texts.length === N_FOUND) break;
      if (!example.text.toLowerCase().includes(query)) continue;
      const node = tree.leafNode[example.leaves[0]];
      texts.push({ kind: "example", text: example.text, go: () => app.select(node, true) });
    }
    const nodes = [];
    if (/^\d+$/.test(query)) {
      const node = tree.source.indexOf(Number(query));
      if (node >= 0) nodes.push({ kind: "node", text: tree.summary(node), go: () => app.select(node, true) });
    }
    return [...nodes, ...classes, ...features, ...texts];
  }

  render(query) {
    this.list.textContent = "";
    this.list.hidden = query === "";
    this.input.setAttribute("aria-expanded", String(query !== ""));
    this.input.removeAttribute("aria-activedescendant");
    this.found.forEach((entry, i) => {
      this.list.append(
        el("li", { role: "option", id: `found-${i}`, "aria-selected": "false", onclick: () => this.take(i) },
          el("span", { class: `kind ${entry.kind}` }, entry.kind), " ", data(entry.text, 90)),
      );
    });
    if (query !== "" && this.found.length === 0) {
      this.list.append(el("li", { class: "empty", role: "option", "aria-disabled": "true" }, "Nothing has that."));
    }
    if (query !== "") this.app.announce(count(this.found.length, "result", "results"));
  }

  move(step) {
    if (this.found.length === 0) return;
    this.list.children[this.at]?.setAttribute("aria-selected", "false");
    this.at = (this.at + step + this.found.length) % this.found.length;
    const item = this.list.children[this.at];
    item.setAttribute("aria-selected", "true");
    item.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", item.id);
  }

  take(i) {
    this.close();
    this.found[i]?.go();
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }

  key(event) {
    if (event.key === "ArrowDown") this.move(1);
    else if (event.key === "ArrowUp") this.move(this.at < 0 ? 0 : -1);
    else if (event.key === "Enter") this.take(Math.max(this.at, 0));
    else if (event.key === "Escape") {
      this.close();
      this.input.value = "";
      this.app.clearMarks();
    } else return;
    event.preventDefault();
  }
}

// Positions of strings that have a query: equal ones, then those that begin with it, then others.
function matches(all, query, most) {
  const ranks = [[], [], []];
  for (let i = 0; i < all.length; i++) {
    const text = all[i].toLowerCase();
    const at = text.indexOf(query);
    if (at < 0) continue;
    const rank = text === query ? 0 : at === 0 ? 1 : 2;
    if (ranks[rank].length < most) ranks[rank].push(i);
    else if (rank === 0) break;
  }
  return ranks.flat().slice(0, most);
}
