// Makes elements from names, attributes and children.
export function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (key.startsWith("on")) {
            made.addEventListener(key.slice(2), value);
        } else if (value !== undefined) {
            made.setAttribute(key, value);
        }
    }
    made.append(...children.filter((child) => child !== undefined && child !== null));
    return made;
}

export function select(label, options, onchange) {
    const box = element(
        "select",
        { "aria-label": label, onchange: () => onchange(box.value) },
        ...options.map(([value, text]) => element("option", { value }, text)),
    );
    return element("label", {}, `${label} `, box);
}
