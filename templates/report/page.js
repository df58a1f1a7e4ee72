(function () {
  "use strict";
  var NS = "http" + "://www.w3.org/2000/svg";
  function digits(x) {
    var a = Math.abs(x);
    var t = a >= 100 ? x.toFixed(0) : a >= 10 ? x.toFixed(1) : x.toFixed(2);
    return t.indexOf(".") < 0 ? t : t.replace(/\.?0+$/, "");
  }
  function number(x) {
    var a = Math.abs(x);
    return a >= 1e9 ? digits(x / 1e9) + "G" : a >= 1e6 ? digits(x / 1e6) + "M" : a >= 1e4 ? digits(x / 1e3) + "k" : digits(x);
  }
  function millis(x) {
    if (x < 1000) { return digits(x) + "ms"; }
    if (x < 60000) { return digits(x / 1000) + "s"; }
    var s = Math.round(x / 1000), m = Math.floor(s / 60), h = Math.floor(m / 60);
    return h ? h + "h" + ("0" + m % 60).slice(-2) + "m" + (s % 60 ? ("0" + s % 60).slice(-2) + "s" : "")
      : m + "m" + (s % 60 ? ("0" + s % 60).slice(-2) + "s" : "");
  }
  function show(x, unit) {
    return unit === "ms" ? millis(x) : unit === "share" ? digits(x * 100) + "%" : unit === "rate" ? number(x) + "/s"
      : unit === "factor" ? digits(x) + "×" : number(x);
  }
  // A path's own numbers are the values: M column value, V value, h columns.
  function values(d) {
    var out = [], at = 0, level = 0, now = [], token, pattern = /([MVh])([^MVh]*)/g;
    while ((token = pattern.exec(d))) {
      var n = token[2].trim().split(" ").map(Number);
      if (token[1] === "M") { at = n[0]; level = n[1]; now = [level]; }
      else if (token[1] === "V") { level = n[0]; now.push(level); }
      else {
        for (var i = 0; i < n[0]; i++) { out[at++] = i === 0 && now.length ? now : [level]; }
        now = [];
      }
    }
    return out;
  }
  function chart(svg) {
    var figure = svg.closest("figure"), plot = svg.querySelector(".plot"), lines = svg.querySelector(".lines");
    var paths = [].slice.call(svg.querySelectorAll("[data-s]")), names = [].slice.call(figure.querySelectorAll(".legend [data-s]"));
    names.forEach(function (item) {
      var button = document.createElement("button"), hit = paths.filter(function (p) { return p.dataset.s === item.dataset.s; });
      if (!hit.length) { return; }
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      while (item.firstChild) { button.appendChild(item.firstChild); }
      item.appendChild(button);
      button.addEventListener("click", function () {
        var on = button.getAttribute("aria-pressed") === "false";
        button.setAttribute("aria-pressed", String(on));
        hit.forEach(function (p) { p.classList.toggle("off", !on); });
      });
    });
    var step = Number(svg.dataset.step);
    if (!step || !paths.length || figure.classList.contains("small")) { return; }
    var read = document.createElement("p"), cross = document.createElementNS(NS, "line"), series = null;
    read.className = "read";
    read.setAttribute("aria-hidden", "true");
    figure.appendChild(read);
    cross.setAttribute("class", "cross off");
    cross.setAttribute("y1", "0");
    cross.setAttribute("y2", lines.getAttribute("height"));
    plot.appendChild(cross);
    svg.addEventListener("pointermove", function (event) {
      var box = lines.getBoundingClientRect(), share = (event.clientX - box.left) / box.width;
      if (share < 0 || share >= 1) { return leave(); }
      series = series || paths.map(function (p) { return values((p.querySelector("[data-v]") || p).getAttribute("d")); });
      var column = Math.floor(share * Number(svg.dataset.columns)), parts = ["at " + millis(column * step)];
      paths.forEach(function (p, n) {
        if (p.classList.contains("off") || !names[n]) { return; }
        var list = series[n][column], text = "unknown";
        if (list) {
          list = list.map(function (v) { return svg.dataset.log ? Math.pow(10, v / 1000) : v; });
          var low = Math.min.apply(null, list), high = Math.max.apply(null, list);
          text = show(low, svg.dataset.unit);
          if (high > low) { text += " to " + show(high, svg.dataset.unit); }
        }
        parts.push(names[n].textContent.trim() + " " + text);
      });
      read.textContent = parts.join(" · ");
      cross.classList.remove("off");
      cross.setAttribute("x1", share * 100 + "%");
      cross.setAttribute("x2", share * 100 + "%");
    });
    function leave() { cross.classList.add("off"); read.textContent = ""; }
    svg.addEventListener("pointerleave", leave);
  }
  [].forEach.call(document.querySelectorAll("svg.chart"), chart);
})();
