"use strict";
// Sorting, filtering and stepping through the tape. Without it the page shows everything.
for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => row.cells[column].dataset.key || row.cells[column].textContent.trim();
      const body = table.tBodies[0];
      const rows = [...body.rows].sort((a, b) => {
        const x = key(a), y = key(b), byNumber = Number(x) - Number(y);
        return (Number.isNaN(byNumber) ? x.localeCompare(y) : byNumber) * (up ? 1 : -1);
      });
      body.append(...rows);
    });
  });
}
for (const input of document.querySelectorAll("input[data-filter]")) {
  const table = document.getElementById(input.dataset.filter);
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    const shown = rows.filter((row) => !row.hidden).length;
    document.querySelector(`output[for="${input.id}"]`).value = wanted ? `${shown} of ${rows.length}` : "";
  });
}
const slider = document.getElementById("tape-slider");
if (slider) {
  const records = [...document.querySelectorAll("#tape-records .record")];
  const place = document.getElementById("tape-place");
  const show = () => {
    records.forEach((record, number) => { record.hidden = number !== slider.value - 1; });
    place.value = `${slider.value} of ${records.length}`;
    const title = records[slider.value - 1].querySelector("h3").textContent;
    slider.setAttribute("aria-valuetext", `${title} of ${records.length}`);
  };
  slider.addEventListener("input", show);
  show();
}
