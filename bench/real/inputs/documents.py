"""Documents and pictures: XML, JSON, SVG, Markdown, HTML, PDF, roff, text."""

import json
from collections.abc import Iterator

from .numbers import Numbers


def orders(count: int, seed: int) -> Iterator[dict]:
    """Orders of a shop, with a few items each."""
    numbers = Numbers(seed)
    for number in range(count):
        items = [{"name": numbers.words(2), "price": 1 + numbers.below(99999) / 100,
                  "note": numbers.words(1 + numbers.below(9))} for _ in range(1 + numbers.below(6))]
        yield {"number": number, "customer": numbers.below(1 + count // 12), "items": items}


def shop_xml(count: int) -> bytes:
    lines = ["<?xml version=\"1.0\"?>", "<shop>"]
    for order in orders(count, 11):
        lines.append(f"<order number=\"{order['number']}\" customer=\"{order['customer']}\">")
        lines += [f"<item price=\"{item['price']:.2f}\"><name>{item['name']}</name>"
                  f"<note>{item['note']}</note></item>" for item in order["items"]]
        lines.append("</order>")
    return "\n".join([*lines, "</shop>", ""]).encode()


def shop_json(count: int) -> bytes:
    return json.dumps({"orders": list(orders(count, 12))}).encode()


def picture_svg(count: int) -> bytes:
    """Paths, gradients, groups with opacity, and text."""
    numbers = Numbers(13)
    lines = ["<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"900\">", "<defs>"]
    for number in range(40):
        lines.append(f"<linearGradient id=\"g{number}\"><stop offset=\"0\" stop-color=\"#{numbers.below(1 << 24):06x}\"/>"
                     f"<stop offset=\"1\" stop-color=\"#{numbers.below(1 << 24):06x}\"/></linearGradient>")
    lines.append("</defs>")
    for number in range(count):
        if number % 25 == 0:
            lines.append(("</g>" if number else "") + f"<g opacity=\"0.{2 + numbers.below(8)}\" "
                         f"transform=\"rotate({numbers.below(30)} 450 450)\">")
        x, y = numbers.below(900), numbers.below(900)
        curves = " ".join(f"c{numbers.below(60)},{numbers.below(60)} {numbers.below(60) - 30},"
                          f"{numbers.below(60) - 30} {numbers.below(80) - 40},{numbers.below(80) - 40}"
                          for _ in range(1 + numbers.below(6)))
        lines.append(f"<path d=\"M{x},{y} {curves} z\" fill=\"url(#g{numbers.below(40)})\" "
                     f"stroke=\"#{numbers.below(1 << 24):06x}\" stroke-dasharray=\"{1 + numbers.below(5)},2\"/>")
    return "\n".join([*lines, "</g></svg>", ""]).encode()


def text_lines(count: int) -> bytes:
    numbers = Numbers(14)
    vocabulary = [numbers.word() + str(numbers.below(30)) for _ in range(12000)]
    lines = (" ".join(vocabulary[numbers.below(1 + numbers.below(12000))] for _ in range(12))
             for _ in range(count))
    return ("\n".join(lines) + "\n").encode()


def document_md(sections: int) -> bytes:
    numbers = Numbers(15)
    lines: list[str] = []
    for number in range(sections):
        lines += [f"## Section {number}", "", f"{numbers.words(30)} *{numbers.words(3)}* `{numbers.word()}` "
                  f"[{numbers.word()}](#{numbers.word()} \"{numbers.word()}\") **{numbers.words(20)}**", ""]
        lines += [f"{'  ' * numbers.below(3)}- {numbers.words(6)} <b>{numbers.word()}</b>" for _ in range(8)]
        lines += ["", f"> {numbers.words(12)} ![{numbers.word()}][image]", "", f"    {numbers.words(9)}", ""]
    return "\n".join([*lines, "[image]: picture.png", ""]).encode()


def page_html(rows: int) -> bytes:
    """As found in the wild: tags that are not closed, attributes without quotes."""
    numbers = Numbers(16)
    lines = ["<html><head><title>Rows</title><body bgcolor=white>"]
    for number in range(rows):
        lines.append(f"<table width=100% border=1><tr><td align=left><font color=red>{numbers.words(5)}<b>"
                     f"{numbers.word()}</font></b><td>{numbers.words(7)}<p>{numbers.words(4)}<br><i>{number}</table>")
    return "\n".join([*lines, "</html>", ""]).encode()


def manual_roff(sections: int) -> bytes:
    numbers = Numbers(17)
    lines = [".TH WORK 1", ".SH NAME", "work \\- a long manual"]
    for number in range(sections):
        lines += [f".SH SECTION {number}", numbers.words(90), ".PP", f".BR {numbers.word()} ({numbers.below(8)}),"]
        for _ in range(4):
            lines += [".TP", f".BI \\-\\-{numbers.word()} \" {numbers.word()}\"", f"{numbers.words(40)} \\fI{numbers.word()}\\fP"]
    return "\n".join([*lines, ""]).encode()


def pages_pdf(pages: int) -> bytes:
    """Pages of text with a font that needs no file."""
    numbers = Numbers(18)
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"",
               b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    children = []
    for _ in range(pages):
        lines = [f"1 0 0 1 {40 + numbers.below(200)} {800 - 11 * line} Tm ({numbers.words(9)}) Tj" for line in range(65)]
        content = ("BT /F 9 Tf\n" + "\n".join(lines) + "\nET").encode()
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
        objects.append(b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents %d 0 R"
                       b"/Resources<</Font<</F 3 0 R>>>>>>" % len(objects))
        children.append(b"%d 0 R" % len(objects))
    objects[1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (pages, b" ".join(children))
    return assembled_pdf(objects)


def assembled_pdf(objects: list[bytes]) -> bytes:
    parts, at, offsets = [b"%PDF-1.4\n"], 9, []
    for number, content in enumerate(objects, 1):
        part = b"%d 0 obj\n%s\nendobj\n" % (number, content)
        offsets.append(at)
        at += len(part)
        parts.append(part)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    parts.append(b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n"
                 % (len(objects) + 1, table, len(objects) + 1, at))
    return b"".join(parts)
