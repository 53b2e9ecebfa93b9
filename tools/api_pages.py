"""The man pages of the C API, section 3, and docs/api.md, from the comments of include/hakmem/hakmem.h.

hakmem.3 has the text above the first group of the header, and how to build; each group, which starts
with a line `// ---- title ----`, has a page named after its first function. docs/api.md has all groups.
gen_docs.py writes them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

TITLE = re.compile(r"^// ---- (?P<title>.*) ----$")
FUNCTION = re.compile(r"\b(hak_\w+)\(")
ATTRIBUTE = re.compile(r"\s*__attribute__\(\((?:[^()]|\([^()]*\))*\)\)")
DOCUMENTS = "share/doc/hakmem/"
ABOUT_DOCUMENTS = (
    "share/doc/hakmem is in the folder that hakmem was installed into, beside bin: "
    "/usr/local/share/doc/hakmem, say. The sources have the same documents."
)

BUILDING = """\
cc program.c $(pkg-config --cflags --libs hakmem)
cc program.c $(pkg-config --cflags hakmem) $(pkg-config --variable=archive hakmem) -pthread
"""
ABOUT_BUILDING = [
    "The first line links the shared library. The program must find it at each start: in a folder that",
    "ldconfig(8) knows, by $(pkg-config --variable=rpath hakmem) at the end of that line, or by LD_LIBRARY_PATH.",
    "The second line links the archive into the program.",
]


class Item(NamedTuple):
    """Declarations without an empty line between them, and the comment above."""

    comment: list[str]
    declarations: list[str]

    def names(self) -> list[str]:
        found = (FUNCTION.search(text) for text in self.declarations if not is_type(text))
        return [match[1] for match in found if match]


class Group(NamedTuple):
    title: str
    introduction: list[str]
    items: list[Item]

    def names(self) -> list[str]:
        return [name for item in self.items for name in item.names()]


def is_type(declaration: str) -> bool:
    return declaration.startswith(("struct ", "enum ")) and not FUNCTION.search(declaration)


def uncommented(line: str) -> str:
    return line.removeprefix("//").removeprefix(" ")


def declaration(text: str) -> str:
    """As programs see it, with the further lines indented below the first one's arguments."""
    if text.startswith("HAKMEM_API "):
        text = text.removeprefix("HAKMEM_API ").replace("\n" + " " * len("HAKMEM_API "), "\n")
    return ATTRIBUTE.sub("", text)


def parse_group(title: str, lines: list[str]) -> Group:
    """Items: a comment and what follows it, up to the next comment or an empty line."""
    introduction: list[str] = []
    lines = list(lines)
    while lines and lines[0].startswith("//"):
        introduction.append(uncommented(lines.pop(0)))
    items: list[Item] = []
    comment: list[str] = []
    declarations: list[str] = []
    open_text = ""

    def close() -> None:
        nonlocal comment, declarations
        if declarations:
            items.append(Item(comment, declarations))
            comment, declarations = [], []

    for line in lines:
        if open_text:
            open_text += "\n" + line
        elif line.startswith("//"):
            close()
            comment.append(uncommented(line))
        elif not line:
            close()
        else:
            open_text = line
        if open_text and open_text.endswith(";") and open_text.count("{") == open_text.count("}"):
            declarations.append(declaration(open_text))
            open_text = ""
    close()
    return Group(title, introduction, items)


def parse(header: str) -> tuple[list[str], list[Group]]:
    """The comment at the start of the header, and its groups; the first one has no title."""
    lines = header.splitlines()
    card = [uncommented(line) for line in lines[: lines.index("#ifndef HAKMEM_HAKMEM_H")]]
    inside = lines[lines.index('extern "C" {') + 2 :]
    inside = inside[: inside.index("#ifdef __cplusplus")]
    groups: list[Group] = []
    title, part = "", []
    for line in inside:
        match = TITLE.match(line)
        if match:
            groups.append(parse_group(title, part))
            title, part = match["title"], []
        else:
            part.append(line)
    groups.append(parse_group(title, part))
    return card, groups


def escaped(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return re.sub(r"^([.])", r"\\&\1", text)


def prose(lines: list[str]) -> list[str]:
    """Paragraphs, which name documents by their installed paths."""
    placed = [escaped(line.replace("docs/", DOCUMENTS + "docs/")) for line in lines]
    return [re.sub("`([^`]*)`", r"\\fI\1\\fR", line) if line else ".PP" for line in placed]


def as_typed(text: str) -> list[str]:
    return [".EX", *(escaped(line) for line in text.splitlines()), ".EE"]


def heading(name: str, names: list[str], title: str, version: str) -> list[str]:
    return [
        f'.TH {name} 3 " " "hakmem {version}" "hakmem"',
        ".nr HY 0",  # a name that is split at the end of a line cannot be copied
        ".hy 0",
        ".SH NAME",
        f"{', '.join(names)} \\- {escaped(title)}",
        ".SH SYNOPSIS",
        ".nf",
        "\\fB#include <hakmem/hakmem.h>\\fR",
        ".PP",
    ]


def synopsis(items: list[Item]) -> list[str]:
    """The functions, and after them the types that they need."""
    declarations = [text for item in items for text in item.declarations]
    functions = [text for text in declarations if not is_type(text)]
    types = [text for text in declarations if is_type(text)]
    text = [f"\\fB{escaped(line)}\\fR" for one in functions for line in one.splitlines()]
    for one in types:
        text += [".PP", *(escaped(line) for line in one.splitlines())]
    return [*text, ".fi"]


def described(items: list[Item]) -> list[str]:
    text: list[str] = []
    for item in items:
        names = ", ".join(f"\\fB{name}\\fR()" for name in item.names())
        if item.comment and names:
            first, *rest = "\n".join(prose(item.comment)).split("\n.PP\n")
            text += [".TP", names, first]
            for paragraph in rest:
                text += [".IP", paragraph]
    return text


def end(text: list[str], others: list[str]) -> str:
    if any(DOCUMENTS in line for line in text):
        text += [".SH DOCUMENTS", ABOUT_DOCUMENTS]
    others = [f"\\fB{name}\\fR({section})" for name, section in others]
    return "\n".join([*text, '.SH "SEE ALSO"', ", ".join(others)]) + "\n"


def group_page(group: Group, version: str, pages: list[str]) -> str:
    names = group.names()
    text = heading(names[0], names, group.title, version) + synopsis(group.items)
    text += [".SH DESCRIPTION", *prose(group.introduction), *described(group.items)]
    others = [(page, 3) for page in ["hakmem", *pages] if page != names[0]]
    return end(text, [*others, ("malloc", 3)])


def first_page(card: list[str], group: Group, version: str, pages: list[Group], example: str) -> str:
    title = card[0].split(" -- ")[1].rstrip(".")
    text = heading("hakmem", ["hakmem", *group.names()], title, version) + synopsis(group.items)
    text += [".SH DESCRIPTION", *prose(card[2:]), *described(group.items), ".SH GROUPS"]
    for one in pages:
        names = one.names()
        text += [".TP", f"\\fB{names[0]}\\fR(3)", escaped(one.title), ".br", ", ".join(names)]
    text += [".SH BUILDING", *as_typed(BUILDING), ".PP", *prose(ABOUT_BUILDING)]
    text += [".SH EXAMPLES", *as_typed(example)]
    return end(text, [*((one.names()[0], 3) for one in pages), ("hakmem", 1), ("malloc", 3)])


def pages(header: str, guide: str) -> dict[str, str]:
    """Each page's text, by the name of its file."""
    version = ".".join(re.findall(r"#define HAKMEM_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))
    card, (first, *groups) = parse(header)
    glimpse = guide.partition("## A glimpse of the API")[2]
    example = glimpse.partition("```c\n")[2].partition("```")[0]
    names = [group.names()[0] for group in groups]
    written = {f"{group.names()[0]}.3": group_page(group, version, names) for group in groups}
    written["hakmem.3"] = first_page(card, first, version, groups, example)
    return written


def linked(lines: list[str]) -> list[str]:
    """The lines, with documents as links."""
    return [re.sub(r"`?docs/([\w-]+\.md)`?", r"[\1](\1)", line) for line in lines]


def markdown_item(item: Item) -> list[str]:
    return ["", "```c", *item.declarations, "```", *([""] if item.comment else []), *linked(item.comment)]


def markdown(header: str) -> str:
    """docs/api.md without its first lines: the header's text, with a heading for each group."""
    card, (first, *groups) = parse(header)
    text = linked(card[2:])
    for group in (first._replace(title="version"), *groups):
        text += ["", f"## {group.title[0].upper()}{group.title[1:]}"]
        text += ["", *linked(group.introduction)] if group.introduction else []
        for item in group.items:
            text += markdown_item(item)
    return "\n".join(text) + "\n"
