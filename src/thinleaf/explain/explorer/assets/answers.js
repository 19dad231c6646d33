// What is typed, and what the model says to it.

const N_BEST = 10;

class Answers {
  constructor(app) {
    this.app = app;
    this.sides = [];
    this.element = document.getElementById("ask");
    this.results = el("div", { class: "results" });
    this.timer = 0;
    this.followers = [];
  }

  // Called once the model is there, or known not to be.
  start() {
    const { tree, reader, predictor } = this.app;
    this.element.textContent = "";
    if (!predictor) {
      this.element.append(el("p", { class: "empty" }, "Nothing can be typed here: ", this.why()));
      return;
    }
    const why = tree.values.input.why;
    if (why) {
      this.element.append(
        el("p", { class: "note" }, `Texts cannot be typed: ${why}. A row of numbers can.`),
      );
    }
    this.compare = el("input", { type: "checkbox", id: "compare", onchange: () => this.toggle() });
    this.example = el("button", { type: "button", onclick: () => this.tryExample() }, "Try an example");
    this.example.hidden = !tree.examples.some((example) => example.whole);
    this.sideB = el("div", { hidden: true });
    this.element.append(
      this.makeSide("A"),
      this.sideB,
      el("div", { class: "row" }, this.example,
        el("label", { class: "check", for: "compare" }, this.compare, " compare two")),
      this.results,
    );
    this.sideB.append(this.makeSide("B"));
    if (reader.fields.length === 1) this.hint();
  }

  why() {
    const notes = this.app.tree.values.notes;
    return notes.length ? notes.at(-1) : "this page holds the tree alone.";
  }

  hint() {
    this.results.append(
      el("p", { class: "empty" },
        this.app.tree.values.input.kind === "rows"
          ? "Paste a row: its numbers, or pairs name:value. It walks the tree as you type."
          : "Type or paste a text: it walks the tree as you type."),
    );
  }

  makeSide(name) {
    const { reader, tree } = this.app;
    const several = reader.fields.length > 1;
    const fields = reader.fields.map((field, i) => {
      const id = `in-${name}-${i}`;
      const what = several ? field.label : tree.values.input.kind === "rows" ? "Row" : "Text";
      const input = field.numeric
        ? el("input", { id, type: "text", inputmode: "decimal", autocomplete: "off" })
        : el("textarea", { id, rows: several ? 1 : 3, spellcheck: "false", autocomplete: "off" });
      input.addEventListener("input", () => this.later());
      return {
        input,
        element: el("div", { class: "field" },
          el("label", { for: id }, el("span", { class: `dot ${name}` }), " ", data(what, 60),
            el("span", { class: "side-name" }, ` ${name}`)),
          input),
      };
    });
    const error = el("p", { class: "error", role: "alert" });
    this.sides.push({ name, inputs: fields.map((field) => field.input), error, answer: null });
    return el("div", { class: `side side-${name}` }, ...fields.map((field) => field.element), error);
  }

  toggle() {
    this.sideB.hidden = !this.compare.checked;
    this.element.classList.toggle("comparing", this.compare.checked);
    this.update();
    if (this.compare.checked) this.sides[1].inputs[0].focus();
  }

  tryExample() {
    const whole = this.app.tree.examples.filter((example) => example.whole);
    this.tried = ((this.tried ?? -1) + 7) % whole.length;
    this.set(whole[this.tried]);
  }

  // Takes an example: a text, a row, or the cells of a table's row.
  set(example, side = 0) {
    const { inputs } = this.sides[side];
    const contents = example.cells?.length === inputs.length ? example.cells : [example.text];
    contents.forEach((content, i) => (inputs[i].value = content));
    this.update();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.update(), 130);
  }

  // Answers all sides, draws their paths, and says the result.
  update() {
    clearTimeout(this.timer);
    const { app } = this;
    const active = this.sides.slice(0, this.compare.checked ? 2 : 1);
    let changed = false;
    for (const side of this.sides) {
      side.error.textContent = "";
      const contents = side.inputs.map((input) => input.value);
      const blank = contents.every((content) => content.trim() === "");
      const before = side.answer ? ends(side.answer) : "";
      side.answer = null;
      if (!active.includes(side) || blank) continue;
      try {
        side.answer = app.answer(contents);
      } catch (error) {
        side.error.textContent = error.message;
        continue;
      }
      changed = changed || ends(side.answer) !== before;
    }
    const answered = active.filter((side) => side.answer);
    this.render(answered);
    app.walk(answered.map((side) => ({
      colour: side.name === "A" ? "accent" : "accent-b", paths: side.answer.paths,
    })), changed);
  }

  // Another tree of the forest is shown: its paths are.
  follow() {
    for (const show of this.followers) show();
  }

  render(answered) {
    const { app } = this;
    this.followers = [];
    this.results.textContent = "";
    if (answered.length === 0) {
      this.hint();
      app.announce("");
      return;
    }
    if (answered.length === 2) this.results.append(this.compared(...answered));
    for (const side of answered) this.results.append(this.resultOf(side, answered.length === 2));
    app.announce(answered.map((side) => this.spoken(side, answered.length === 2)).join(". "));
  }

  spoken(side, named) {
    const { best, paths } = side.answer;
    const name = named ? `${side.name}: ` : "";
    if (!best) return `${name}ends in ${this.app.tree.nodeName(paths[0].nodes.at(-1))}; its weights are not in this page`;
    const about = this.app.tree.values.approximate ? "about " : "";
    return `${name}${cut(this.app.tree.labels[best[0].id], 80)}, ${about}${probability(best[0].p)}`;
  }

  resultOf(side, named) {
    const { app } = this;
    const { best, known } = side.answer;
    const part = el("section", { class: `result result-${side.name}`, "aria-label": named ? `Answer ${side.name}` : "Answer" });
    if (named) part.append(el("h3", {}, el("span", { class: `dot ${side.name}` }), ` ${side.name}`));
    if (known === 0) {
      part.append(el("p", { class: "note" }, "Nothing of this is known to the model: it answers by what it has seen most."));
    }
    if (best) {
      const list = el("ol", { class: "best" });
      best.slice(0, named ? 4 : N_BEST).forEach(({ id, p }, i) => {
        list.append(
          el("li", { class: i === 0 ? "first" : "" },
            el("button", { type: "button", class: "link", onclick: () => app.findClass(id) }, data(app.tree.labels[id], 120)),
            bar(p), el("span", { class: "number" }, probability(p))),
        );
      });
      part.append(list);
      if (app.tree.values.approximate) part.append(el("p", { class: "note" }, "≈ About so: the page holds a lighter model than the one that it stands for."));
    } else {
      part.append(el("p", { class: "note" }, "The weights of a leaf on its way are not in this page: there are no probabilities, but the path is right."));
    }
    if (named) part.append(el("details", {}, el("summary", {}, "its path"), this.pathsOf(side)));
    else part.append(this.pathsOf(side));
    return part;
  }

  pathsOf(side) {
    const { app } = this;
    const { paths, best } = side.answer;
    const part = el("div", { class: "paths" });
    const steps = el("div");
    const show = (path, jump) => {
      steps.textContent = "";
      steps.append(this.stepsOf(path, best));
      for (const button of part.querySelectorAll(".path")) {
        button.setAttribute("aria-pressed", String(Number(button.dataset.path) === paths.indexOf(path)));
      }
      if (jump) app.showPath(path);
    };
    if (paths.length > 1) {
      const what = app.tree.values.kind === "labels" ? "Paths to the first labels" : "Paths that are mixed";
      part.append(el("h4", {}, what));
      const list = el("div", { class: "path-list" });
      paths.forEach((path, i) => {
        const label = path.best === undefined ? app.tree.nodeName(path.nodes.at(-1)) : app.tree.labels[path.best];
        const tree = app.tree.values.trees > 1 ? el("small", {}, ` tree ${path.tree + 1}`) : null;
        list.append(
          el("button", { type: "button", class: "path", "data-path": i, "aria-pressed": "false", onclick: () => show(path, true) },
            el("span", { class: "number" }, probability(path.weight)), " ", data(label, 60), tree),
        );
      });
      part.append(list);
    }
    part.append(steps);
    const own = () => show(paths.find((path) => path.nodes[0] === app.layout.root) ?? paths[0], false);
    this.followers.push(own);
    own();
    return part;
  }

  stepsOf(path, best) {
    const { app } = this;
    const { tree } = app;
    const name = (feature) => app.reader.name(feature);
    const list = el("ol", { class: "steps" });
    const link = (node) =>
      el("button", { type: "button", class: "link", onclick: () => app.select(node, true) }, tree.nodeName(node));
    for (const step of path.steps) {
      const side = tree.values.kind === "softmax" ? (tree.branch[step.child] ? "right" : "left") : `branch ${tree.branch[step.child] + 1}`;
      list.append(
        el("li", {}, el("div", { class: "step" }, link(step.node),
          el("span", { class: "where" }, side), bar(step.p, "thin"), el("span", { class: "number" }, percent(step.p))),
        step.parts.length ? chips(step.parts, name, 5) : null),
      );
    }
    const end = el("li", { class: "end" }, el("div", { class: "step" }, link(path.nodes.at(-1)),
      path.best === undefined ? null : data(tree.labels[path.best], 60)));
    if (path.parts?.length && best) {
      end.append(el("small", { class: "for-what" }, "what speaks for ", data(tree.labels[best[0].id], 40)), chips(path.parts, name, 8));
    }
    list.append(end);
    return list;
  }

  // Where the paths of two inputs part, in each tree.
  compared(a, b) {
    const { app } = this;
    const part = el("div", { class: "compared" });
    for (let root = 0; root < app.tree.values.trees; root++) {
      const [one, two] = [a, b].map((side) => side.answer.paths.find((path) => path.nodes[0] === root));
      let i = 0;
      while (i < one.nodes.length && one.nodes[i] === two.nodes[i]) i++;
      const tree = app.tree.values.trees > 1 ? `Tree ${root + 1}: ` : "";
      const last = one.nodes[i - 1];
      part.append(el("p", {}, tree,
        app.tree.isLeaf(last) ? "both end in " : "their paths part at ",
        el("button", { type: "button", class: "link", onclick: () => app.select(last, true) }, app.tree.nodeName(last)), "."));
    }
    return part;
  }
}

function ends(answer) {
  return answer.paths.map((path) => path.nodes.at(-1)).join(",");
}
