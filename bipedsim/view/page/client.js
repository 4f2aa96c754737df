// Names and roles that viser's client does not give its controls, for keyboards and screen readers.
"use strict";
(() => {
  const ICONS = { maximize: "enlarge the plot", adjustments: "settings of the viewer", x: "close", minus: "minimise" };
  const name = (element, text) => {
    if (text && !element.getAttribute("aria-label")) element.setAttribute("aria-label", text);
  };
  const improve = () => {
    const title = document.querySelector("#root [style*='text-overflow: ellipsis']");
    if (title && title.textContent === document.title && !title.hasAttribute("role")) {
      title.setAttribute("role", "heading");
      title.setAttribute("aria-level", "1");
    }
    const root = document.getElementById("root");
    if (root && !root.hasAttribute("role")) root.setAttribute("role", "main");
    for (const label of document.querySelectorAll("#root label[for]")) {
      const control = document.getElementById(label.htmlFor);
      const row = control && (control.matches("input, button") ? control.parentElement : control.parentElement.parentElement);
      for (const one of row ? row.querySelectorAll("[role=slider], input, [role=group]") : []) name(one, label.textContent);
    }
    for (const button of document.querySelectorAll("button")) {
      if (button.textContent.trim()) continue;
      const icon = /tabler-icon-([\w-]+)/.exec(button.innerHTML);
      const close = /close/i.test(button.className);
      name(button, close ? "close the message" : (icon && (ICONS[icon[1]] || icon[1].replaceAll("-", " "))) || "button");
    }
    for (const input of document.querySelectorAll("#root input:not([id^=bipedsim])")) {
      if (!document.querySelector(`label[for="${CSS.escape(input.id)}"]`) && !input.closest("label")) {
        name(input, input.getAttribute("role") === "combobox" ? "speed" : "time [s]");
      }
    }
    for (const slider of document.querySelectorAll("#root [role=slider]")) name(slider, "time [s]");
    for (const icon of document.querySelectorAll("#root .tabler-icon-chevron-up, #root .tabler-icon-chevron-down")) {
      const header = icon.parentElement;
      if (header.closest("button, input, [role=button]:not([data-bipedsim-header])")) continue;
      header.setAttribute("aria-expanded", String(icon.classList.contains("tabler-icon-chevron-up")));
      if (header.hasAttribute("data-bipedsim-header")) continue;
      header.setAttribute("data-bipedsim-header", "");
      header.setAttribute("role", "button");
      header.tabIndex = 0;
      name(header, `section ${header.textContent.trim()}`);
      header.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        header.click();
      });
    }
    for (const plot of document.querySelectorAll(".uplot")) {
      if (plot.getAttribute("role") === "img") continue;
      const keys = [...document.querySelectorAll(".bipedsim-key")];
      const key = keys.filter((one) => one.compareDocumentPosition(plot) & Node.DOCUMENT_POSITION_FOLLOWING).pop();
      plot.setAttribute("role", "img");
      name(plot, key ? `curves over time: ${key.textContent}` : "curves over time");
    }
  };
  let waits = false;
  const later = () => {
    if (waits) return;
    waits = true;
    setTimeout(() => { waits = false; improve(); }, 200);
  };
  new MutationObserver(later).observe(document.documentElement, { childList: true, subtree: true });
  later();
  // The client has hot keys, of which the space bar would never reach the button that has the focus.
  window.addEventListener("keydown", (event) => {
    const button = event.key === " " && event.target instanceof Element && event.target.closest("button, [role=button]");
    if (button && button.tagName === "BUTTON") event.stopImmediatePropagation();
  }, true);
})();
