"use strict";
(function () {
  const size = 50;
  const all = JSON.parse(document.getElementById("data").textContent);
  const body = document.querySelector("#labels tbody");
  const heads = Array.from(document.querySelectorAll("#labels th"));
  const filter = document.getElementById("filter");
  const back = document.getElementById("back");
  const next = document.getElementById("next");
  let shown = all, page = 0, column = 3, descending = false;

  function compare(a, b) {
    const x = a[column], y = b[column];
    if (typeof x === "number" && typeof y === "number") return x - y;
    return String(x).localeCompare(String(y), undefined, { numeric: true });
  }
  function cell(row, value, i) {
    const td = document.createElement("td");
    const share = i >= 1 && i <= 3;
    td.textContent = i === 0 ? value : share ? value.toFixed(3) : value.toLocaleString("en");
    if (i === 0 && !row[7]) {
      td.className = "unknown";
      td.title = "the model does not know this label";
    }
    return td;
  }
  function draw() {
    const pages = Math.max(1, Math.ceil(shown.length / size));
    page = Math.min(Math.max(page, 0), pages - 1);
    const rows = shown.slice(page * size, (page + 1) * size).map(function (row) {
      const tr = document.createElement("tr");
      tr.append(...row.slice(0, 7).map((value, i) => cell(row, value, i)));
      return tr;
    });
    body.replaceChildren(...rows);
    back.disabled = page === 0;
    next.disabled = page === pages - 1;
    const first = shown.length ? page * size + 1 : 0;
    document.getElementById("where").textContent = first.toLocaleString("en") + "–" +
      (page * size + rows.length).toLocaleString("en") + " of " + shown.length.toLocaleString("en");
  }
  function arrange() {
    const wanted = filter.value.toLowerCase();
    shown = all.filter((row) => String(row[0]).toLowerCase().includes(wanted));
    shown.sort((a, b) => (descending ? -compare(a, b) : compare(a, b)) || b[4] - a[4]);
    heads.forEach((th, i) => th.setAttribute("aria-sort",
      i !== column ? "none" : descending ? "descending" : "ascending"));
    page = 0;
    draw();
  }
  heads.forEach(function (th, i) {
    th.querySelector("button").addEventListener("click", function () {
      descending = column === i ? !descending : i > 3;
      column = i;
      arrange();
    });
  });
  filter.addEventListener("input", arrange);
  back.addEventListener("click", function () { page -= 1; draw(); });
  next.addEventListener("click", function () { page += 1; draw(); });
  document.getElementById("tools").hidden = false;
  arrange();
})();
