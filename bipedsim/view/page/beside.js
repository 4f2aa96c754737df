// Curves and figures beside the player of a file: they follow its time, and it follows a click on a curve.
"use strict";
(async () => {
  const side = document.getElementById("bipedsim-side");
  const raw = Uint8Array.from(atob(document.getElementById("bipedsim-data").textContent), (c) => c.charCodeAt(0));
  const inflated = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = await new Response(inflated).arrayBuffer();
  const head = new DataView(bytes).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, head)));
  const F = data.t.length;

  // Numbers are steps of a range, each as the difference to the one before; the lowest stands for what is not known.
  const steps = new Int16Array(bytes.slice(4 + head + ((4 + head) % 2)));
  for (let i = 0; i < steps.length; i++) if (i % F) steps[i] += steps[i - 1];
  const value = (channel, i) => {
    const step = steps[channel * F + i], [low, size] = data.ranges[channel];
    return step === -32768 ? NaN : low + (size * (step + 32767)) / 65534;
  };

  // What the player shows at its time is the last frame that has begun.
  const frameAt = (seconds) => {
    let low = 0, high = F - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (data.at[middle] <= seconds + 1e-6) low = middle; else high = middle - 1;
    }
    return low;
  };
  const playerTime = () => {
    const slider = document.querySelector("#root [role=slider]");
    return slider === null ? NaN : parseFloat(slider.getAttribute("aria-valuenow"));
  };
  // The player has no call for it. What its slider calls is a property of a component above the slider's element; the box
  // for the time, which takes tenths of a second only, does where that cannot be found.
  const seek = (t) => {
    let i = 0;
    while (i < F - 1 && data.t[i + 1] <= t) i++;
    const seconds = data.at[i] + 1e-3, slider = document.querySelector("#root [role=slider]");
    const key = slider && Object.keys(slider).find((name) => name.startsWith("__reactFiber$"));
    for (let at = key && slider[key]; at; at = at.return) {
      const { onChange, min, max } = at.memoizedProps || {};
      if (typeof onChange === "function" && min === 0 && max > 0) {
        onChange(Math.min(seconds, max));
        return;
      }
    }
    const box = document.querySelector("#root input");
    if (box === null) return;
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(box, seconds.toFixed(1));
    box.dispatchEvent(new Event("input", { bubbles: true }));
  };

  const [BEFORE, AFTER] = data.window, LEFT = 40, RIGHT = 6, TOP = 4, BOTTOM = 18;
  const ticks = (low, high, most) => {
    const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
    return [found, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))];
  };
  // Round limits around all values, not below the resolution, as in signals.py.
  const axis = (signals) => {
    const ranges = signals.map((k) => data.ranges[k]);
    let low = Math.min(...ranges.map((range) => range[0])), high = Math.max(...ranges.map((range) => range[0] + range[1]));
    if (low > 0 && low <= 0.8 * high) low = 0; else if (high < 0 && high >= 0.8 * low) high = 0;
    const room = Math.max(0, Math.max(...signals.map((k) => data.resolutions[k])) - (high - low));
    low -= 0.5 * room;
    high += 0.5 * room;
    const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9));
    return [step * Math.floor(low / step + 1e-9), step * Math.ceil(high / step - 1e-9)];
  };
  const curves = document.getElementById("bipedsim-curves");
  let plots = [], stale = true;
  const add = (signals) => {
    const [low, high] = axis(signals), palette = data.colours[Math.min(signals.length, 6)];
    const box = document.createElement("div"), title = document.createElement("div");
    const canvas = document.createElement("canvas"), names = signals.map((k) => data.names[k]);
    const colours = signals.map((_, i) => palette[i % palette.length]);
    title.className = "bipedsim-title";
    const numbers = names.map((name, i) => {
      const entry = document.createElement("span"), number = document.createElement("b");
      entry.style.color = colours[i];
      entry.append(`\u25AC ${name} `, number);
      title.append(entry);
      return number;
    });
    const remove = document.createElement("button");
    remove.textContent = "\u00D7";
    remove.title = `remove the plot of ${names.join(", ")}`;
    remove.setAttribute("aria-label", remove.title);
    title.append(remove);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `curves over time: ${names.join(", ")}`);
    box.append(title, canvas);
    curves.append(box);
    const plot = { signals, colours, low, high, canvas, numbers, box };
    remove.addEventListener("click", () => {
      box.remove();
      plots = plots.filter((other) => other !== plot);
    });
    canvas.addEventListener("pointerdown", (event) => {
      const width = canvas.clientWidth - LEFT - RIGHT, x = event.offsetX - LEFT;
      const t = data.t[shown] - BEFORE + ((BEFORE + AFTER) * Math.min(Math.max(x, 0), width)) / width;
      // When the box for the time is left, the player goes to the tenth of a second that is in it.
      if (document.activeElement !== null) document.activeElement.blur();
      setTimeout(() => seek(t), 0);
    });
    plots.push(plot);
    stale = true;
  };
  for (const names of data.plots) add(names.map((name) => data.names.indexOf(name)));
  const chooser = document.getElementById("bipedsim-signal");
  for (const name of [...data.names].sort((a, b) => a.localeCompare(b))) chooser.add(new Option(name));
  document.getElementById("bipedsim-new").addEventListener("click", () => add([data.names.indexOf(chooser.value)]));
  document.getElementById("bipedsim-same").addEventListener("click", () => {
    const last = plots.pop(), signal = data.names.indexOf(chooser.value);
    if (last) last.box.remove();
    add([...(last ? last.signals.filter((k) => k !== signal) : []), signal]);
  });

  const draw = (plot, frame) => {
    const { canvas, low, high } = plot, scale = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
    if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
    const pen = canvas.getContext("2d"), now = data.t[frame], begin = now - BEFORE, end = now + AFTER;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const x = (t) => LEFT + ((width - LEFT - RIGHT) * (t - begin)) / (end - begin);
    const y = (v) => TOP + (height - TOP - BOTTOM) * (1 - (v - low) / (high - low));
    pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    pen.lineWidth = 1;
    pen.strokeStyle = "#e4e4e4";
    pen.fillStyle = "#444";
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const [levels, digits] = ticks(low, high, 4);
    for (const level of levels) {
      pen.beginPath(); pen.moveTo(LEFT, y(level)); pen.lineTo(width - RIGHT, y(level)); pen.stroke();
      pen.fillText(level.toFixed(digits), LEFT - 5, Math.max(y(level), TOP + 4));
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const second of ticks(begin, end, 5)[0]) {
      if (second < data.t[0] - 1e-9 || second > data.t[F - 1] + 1e-9) continue;
      pen.beginPath(); pen.moveTo(x(second), TOP); pen.lineTo(x(second), height - BOTTOM); pen.stroke();
      if (x(second) > LEFT + 12 && x(second) < width - 14) pen.fillText(`${second} s`, x(second), height - BOTTOM + 4);
    }
    pen.save();
    pen.beginPath(); pen.rect(LEFT, 0, width - LEFT - RIGHT, height - BOTTOM + 1); pen.clip();
    let first = frame, last = frame;
    while (first > 0 && data.t[first] > begin) first--;
    while (last < F - 1 && data.t[last] < end) last++;
    plot.colours.forEach((colour, k) => {
      pen.strokeStyle = colour;
      // In a symmetric motion the second curve would hide the first.
      pen.lineWidth = k === 0 && plot.colours.length > 1 ? 3 : 1.5;
      for (const [from, to, opacity] of [[first, frame, 1], [frame, last, 0.33]]) {
        pen.globalAlpha = opacity;
        pen.beginPath();
        let joined = false;
        for (let i = from; i <= to; i++) {
          const v = value(plot.signals[k], i);
          if (Number.isNaN(v)) { joined = false; continue; }
          if (joined) pen.lineTo(x(data.t[i]), y(v)); else pen.moveTo(x(data.t[i]), y(v));
          joined = true;
        }
        pen.stroke();
      }
      const v = value(plot.signals[k], frame);
      plot.numbers[k].textContent = Number.isNaN(v) ? "-" : Number(v.toPrecision(4)).toString();
    });
    pen.restore();
    pen.strokeStyle = "#222";
    pen.lineWidth = 1;
    pen.beginPath(); pen.moveTo(x(now), TOP); pen.lineTo(x(now), height - BOTTOM); pen.stroke();
  };

  let chosen = null;
  const showBody = (frame) => {
    if (chosen === null) return;
    const table = document.createElement("table");
    table.id = data.body_id;
    for (const [name, parts] of data.bodies[chosen]) {
      const texts = parts.map((part) => {
        if (typeof part === "string") return part;
        const [at, digits, factor, unsigned] = part, v = factor * value(at, frame);
        if (Number.isNaN(v)) return null;
        return (unsigned ? Math.abs(v) : v).toFixed(digits).replace(/^-(0(\.0*)?)$/, "$1");
      });
      if (texts.includes(null)) continue;
      const row = table.insertRow();
      row.insertCell().textContent = name;
      row.insertCell().textContent = texts.join("");
      row.cells[0].style.paddingRight = "0.8em";
      row.cells[0].style.whiteSpace = "nowrap";
    }
    const body = document.getElementById("bipedsim-chosen");
    body.replaceChildren(table);
  };

  // The player knows clicks on bodies of a server; here there is none, so that it is told to look for them, and what it
  // would send is taken.
  const BINDINGS = [{ button: "left", modifier: null }];
  const listen = () => {
    const player = window.__viserMutable, tree = window.__viserSceneTree;
    if (!player || !tree) return false;
    const nodes = tree.getState();
    const missing = Object.keys(data.bodies).filter((name) => nodes[name] && !(nodes[name].clickBindings || []).length);
    for (const name of missing) {
      player.messageQueue.push({ type: "SetSceneNodeClickBindingsMessage", name, bindings: BINDINGS, owner: "" });
    }
    if (missing.length) player.requestRender();
    player.sendMessage = (message) => {
      if (message.type !== "SceneNodeClickMessage" || !(message.name in data.bodies)) return;
      chosen = message.name;
      showBody(shown);
    };
    return true;
  };
  const begun = Date.now();
  setInterval(() => {
    if (!listen() && Date.now() - begun > 30000 && chosen === null) {
      document.getElementById("bipedsim-chosen").textContent = "this player knows no clicks";
    }
  }, 500);

  let shown = -1, shape = "";
  const follow = () => {
    const seconds = playerTime(), now = `${side.clientWidth} ${window.devicePixelRatio}`;
    if (!Number.isNaN(seconds)) {
      const frame = frameAt(seconds);
      if (frame !== shown || now !== shape || stale) {
        shown = frame;
        shape = now;
        stale = false;
        document.getElementById("bipedsim-now").innerHTML = data.now[frame];
        plots.forEach((plot) => draw(plot, frame));
        showBody(frame);
      }
    }
    requestAnimationFrame(follow);
  };
  document.getElementById("bipedsim-fold").addEventListener("click", () => {
    document.body.classList.toggle("bipedsim-folded");
    window.dispatchEvent(new Event("resize"));
  });
  follow();
})().catch((error) => {
  document.getElementById("bipedsim-now").textContent = `the figures cannot be shown in this browser: ${error}`;
});
