
"use strict";
(function () {
  const collator = new Intl.Collator("en", { numeric: true });

  function text(row, column) {
    return row.cells[column].textContent.trim();
  }

  function number(row, column) {
    return parseFloat(text(row, column).replace(/,/g, ""));
  }

  // Undefined numbers are last in both directions; rows that are equal keep their order.
  function sortRows(table, column, isNumber, direction) {
    const rows = Array.from(table.tBodies[0].rows);
    rows.sort(function (a, b) {
      if (!isNumber) {
        return direction * collator.compare(text(a, column), text(b, column));
      }
      const x = number(a, column), y = number(b, column);
      if (isNaN(x) || isNaN(y)) {
        return isNaN(x) - isNaN(y);
      }
      return direction * (x - y);
    });
    table.tBodies[0].append(...rows);
  }

  function makeSortable(table) {
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      const isNumber = head.classList.contains("number");
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      // for print: browsers do not repeat, on the next page, the head of a table that has buttons
      head.dataset.name = button.textContent;
      head.append(button);
      button.addEventListener("click", function () {
        const before = head.getAttribute("aria-sort");
        const first = isNumber ? "descending" : "ascending";
        const second = isNumber ? "ascending" : "descending";
        const order = before === first ? second : first;
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", order);
        sortRows(table, column, isNumber, order === "ascending" ? 1 : -1);
      });
    });
  }

  function labeled(words, control) {
    const label = document.createElement("label");
    label.append(words, control);
    return label;
  }

  function makeSearchable(grid, table) {
    const what = grid.dataset.search;
    const rows = Array.from(table.tBodies[0].rows);
    const controls = document.createElement("div");
    controls.className = "controls";
    const input = document.createElement("input");
    input.type = "search";
    controls.append(labeled("Search " + what, input));
    const select = document.createElement("select");
    if (grid.dataset.signs !== undefined) {
      for (const word of ["all", "better", "worse", "the same"]) {
        select.append(new Option(word));
      }
      controls.append(labeled(table.tHead.rows[0].cells[grid.dataset.signs].textContent, select));
    }
    const status = document.createElement("output");
    controls.append(status);
    grid.prepend(controls);

    function show() {
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      for (const row of rows) {
        const sign = grid.dataset.signs === undefined ? NaN : Math.sign(number(row, Number(grid.dataset.signs)));
        const ofSign = select.selectedIndex < 1 || sign === [NaN, 1, -1, 0][select.selectedIndex];
        row.hidden = !(ofSign && text(row, 0).toLowerCase().includes(wanted));
        shown += !row.hidden;
      }
      status.textContent = shown.toLocaleString("en") + " of " + rows.length.toLocaleString("en") + " " + what;
    }
    input.addEventListener("input", show);
    select.addEventListener("change", show);
    show();
  }

  for (const grid of document.querySelectorAll(".grid")) {
    const table = grid.querySelector("table");
    makeSortable(table);
    if (grid.dataset.search) {
      makeSearchable(grid, table);
    }
  }

  // What is closed on the screen is printed, too.
  let closed = [];
  window.addEventListener("beforeprint", function () {
    closed = Array.from(document.querySelectorAll("details:not([open])"));
    closed.forEach(function (details) { details.open = true; });
  });
  window.addEventListener("afterprint", function () {
    closed.forEach(function (details) { details.open = false; });
  });
})();
