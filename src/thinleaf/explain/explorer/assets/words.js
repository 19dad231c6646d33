// Numbers and strings for people, and elements that hold them: strings only ever become text.

function count(n, one, many) {
  return `${Math.round(n).toLocaleString("en")} ${n === 1 ? one : many}`;
}

function percent(share) {
  const value = 100 * share;
  if (value >= 99.5 && value < 100) return value < 99.95 ? `${value.toFixed(1)} %` : ">99.9 %";
  return `${value.toFixed(value >= 9.95 || value === 0 ? 0 : 1)} %`;
}

function probability(p) {
  if (p >= 0.9995) return p < 1 ? ">99.9 %" : "100 %";
  if (p >= 0.0995) return `${(100 * p).toFixed(1)} %`;
  if (p >= 0.0001) return `${(100 * p).toFixed(2)} %`;
  return p === 0 ? "0" : p.toExponential(1);
}

function cut(text, most) {
  return text.length <= most ? text : text.slice(0, most - 1) + "…";
}

// A string for the canvas: without what turns the direction of text or steers devices.
function drawable(text, most) {
  const plain = cut(text, most).replace(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "\ufffd");
  return "\u2068" + plain + "\u2069";
}

// el("p", {class: "note", onclick: f}, "text", element, …)
function el(tag, properties = {}, ...content) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else element.setAttribute(key, String(value));
  }
  element.append(...content.filter((part) => part !== null && part !== undefined));
  return element;
}

// A string of data: its direction cannot leak, and it is cut where it is long.
function data(text, most = 200) {
  const element = el("bdi", { class: "data" }, cut(text, most));
  if (text.length > most) element.title = cut(text, 2000);
  return element;
}

function bar(share, kind = "") {
  const inner = el("span", { class: "bar-fill" });
  inner.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return el("span", { class: `bar ${kind}`, "aria-hidden": "true" }, inner);
}

// Features and what they add, largest first.
function chips(parts, name, most) {
  const top = parts.slice().sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, most);
  const list = el("span", { class: "chips" });
  for (const { feature, value } of top) {
    const sign = value >= 0 ? "for" : "against";
    const amount = `${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}`;
    list.append(
      el("span", { class: `chip ${sign}` }, data(name(feature), 40), " ", el("small", {}, amount)),
    );
  }
  return list;
}
