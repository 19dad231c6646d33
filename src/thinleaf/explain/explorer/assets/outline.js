// The tree as a list that can be opened: for keyboards and screen readers, and for reading.

class OutlineView {
  constructor(app) {
    this.app = app;
    this.element = document.getElementById("outline");
    this.list = el("ul", { role: "tree", class: "tree", "aria-label": "Nodes of the tree" });
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.element.append(this.list);
    this.root = -1;
  }

  start(root) {
    if (this.root === root) return;
    this.root = root;
    this.list.textContent = "";
    const item = this.item(root);
    this.list.append(item);
    this.expand(item, true);
    item.firstElementChild.tabIndex = 0;
  }

  item(node) {
    const { tree } = this.app;
    const way = tree.leadingTo(node);
    const row = el("div", { class: "tree-row", tabindex: -1, onclick: () => this.choose(item) },
      el("span", { class: "twist", "aria-hidden": "true" }, tree.isLeaf(node) ? "•" : "▸"),
      way ? el("em", {}, data(way, 40)) : null, " ", data(tree.summary(node), 160));
    const item = el("li", { role: "treeitem", "data-node": node, "aria-level": tree.depth[node] + 1,
      "aria-expanded": tree.isLeaf(node) ? null : "false", "aria-selected": "false",
      "aria-label": cut(`${way ? way + ": " : ""}${tree.summary(node)}`, 300) }, row);
    return item;
  }

  expand(item, open) {
    const node = Number(item.dataset.node);
    if (this.app.tree.isLeaf(node)) return;
    item.setAttribute("aria-expanded", String(open));
    item.querySelector(".twist").textContent = open ? "▾" : "▸";
    item.querySelector("ul")?.remove();
    if (!open) return;
    const group = el("ul", { role: "group" });
    for (const child of this.app.tree.children(node)) group.append(this.item(child));
    item.append(group);
  }

  isOpen(item) {
    return item.getAttribute("aria-expanded") === "true";
  }

  choose(item) {
    this.expand(item, !this.isOpen(item));
    this.focus(item);
    this.app.select(Number(item.dataset.node), false);
  }

  focus(item) {
    for (const row of this.list.querySelectorAll('[tabindex="0"]')) row.tabIndex = -1;
    item.firstElementChild.tabIndex = 0;
    item.firstElementChild.focus();
  }

  // Opens the list as far as a node, and marks it.
  reveal(node) {
    this.start(this.app.tree.root[node]);
    let item = this.list.firstElementChild;
    for (const at of this.app.tree.pathTo(node).slice(1)) {
      if (!this.isOpen(item)) this.expand(item, true);
      item = Array.from(item.querySelector("ul").children).find((child) => Number(child.dataset.node) === at);
    }
    for (const other of this.list.querySelectorAll('[aria-selected="true"]')) other.setAttribute("aria-selected", "false");
    item.setAttribute("aria-selected", "true");
    for (const row of this.list.querySelectorAll('[tabindex="0"]')) row.tabIndex = -1;
    item.firstElementChild.tabIndex = 0;
    item.firstElementChild.scrollIntoView?.({ block: "nearest" });
  }

  key(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item) return;
    const items = Array.from(this.list.querySelectorAll("[role=treeitem]"));
    const at = items.indexOf(item);
    const actions = {
      ArrowDown: () => items[at + 1] && this.focus(items[at + 1]),
      ArrowUp: () => items[at - 1] && this.focus(items[at - 1]),
      ArrowRight: () => {
        if (item.hasAttribute("aria-expanded") && !this.isOpen(item)) this.expand(item, true);
        else if (this.isOpen(item)) this.focus(items[at + 1]);
      },
      ArrowLeft: () => {
        if (this.isOpen(item)) this.expand(item, false);
        else if (item.parentElement.closest("[role=treeitem]")) this.focus(item.parentElement.closest("[role=treeitem]"));
      },
      Home: () => this.focus(items[0]),
      End: () => this.focus(items.at(-1)),
      Enter: () => this.app.select(Number(item.dataset.node), true),
      " ": () => this.app.select(Number(item.dataset.node), true),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }
}
