// A table that a click on a header sorts and a text filters.
import { element } from "./dom.js";

// heads: strings. rows: arrays of { text, value, best, even, refused, place, small }; a row with `isMean` stays last.
export function table(heads, rows) {
    const body = element("tbody");
    const cells = heads.map((text, column) =>
        element(
            "th",
            {
                scope: "col",
                tabindex: 0,
                onclick: () => sort(column),
                onkeydown: (event) => event.key === "Enter" && sort(column),
            },
            text,
        ),
    );
    let sortedBy = { column: -1, direction: 1 };
    let wanted = "";

    function fill() {
        const { column, direction } = sortedBy;
        const shown = rows.filter((row) => row.isMean || row[0].text.toLowerCase().includes(wanted));
        if (column >= 0) {
            const key = (row) => row[column].value ?? row[column].text;
            const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
            shown.sort((a, b) =>
                (a.isMean ?? false) - (b.isMean ?? false) || direction * order(key(a), key(b)));
        }
        body.replaceChildren(
            ...shown.map((row) =>
                element("tr", { class: row.isMean ? "mean" : undefined }, ...row.map(cell))),
        );
    }

    function sort(column) {
        const direction = sortedBy.column === column ? -sortedBy.direction : 1;
        sortedBy = { column, direction };
        cells.forEach((head, at) => {
            const order = direction > 0 ? "ascending" : "descending";
            head.setAttribute("aria-sort", at === column ? order : "none");
        });
        fill();
    }

    fill();
    const made = element(
        "div",
        { class: "scroll" },
        element("table", {}, element("thead", {}, element("tr", {}, ...cells)), body),
    );
    return {
        element: made,
        filter(text) {
            wanted = text.toLowerCase();
            fill();
        },
    };
}

function cell({ text, small, best, even, refused, place, title }) {
    const kind = { best, even, refused, place };
    return element(
        "td",
        { class: Object.keys(kind).find((name) => kind[name]), title },
        text,
        small ? element("small", {}, small) : undefined,
    );
}
