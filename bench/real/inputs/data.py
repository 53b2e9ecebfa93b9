"""What data tools read."""

from .numbers import Numbers


def journal_ledger(count: int) -> bytes:
    """Bookings between accounts, in two currencies."""
    numbers = Numbers(31)
    lines = []
    for number in range(count):
        day = f"{2010 + number * 9 // count}/{1 + numbers.below(12):02}/{1 + numbers.below(28):02}"
        amount = f"{numbers.below(100000) / 100:.2f}"
        lines += [f"{day} * {numbers.words(2)}", f"    Expenses:{numbers.word()}:{numbers.below(40)}   {amount} EUR",
                  f"    ; {numbers.word()}: {numbers.word()}", f"    Assets:Bank{numbers.below(9)}", ""]
    return "\n".join(lines).encode()


def reads_sam(count: int) -> bytes:
    """Pieces of a genome at random places."""
    numbers = Numbers(32)
    lines = ["@HD\tVN:1.6\tSO:unsorted"] + [f"@SQ\tSN:chr{number}\tLN:10000000" for number in range(1, 9)]
    for number in range(count):
        bits = numbers.below(1 << 30) << 60 | numbers.below(1 << 30) << 30 | numbers.below(1 << 30)
        bases = "".join("ACGT"[bits >> 2 * place & 3] for place in range(45)) * 2
        lines.append(f"read{number}\t0\tchr{1 + numbers.below(8)}\t{1 + numbers.below(9999000)}\t60\t90M\t*\t0\t0\t"
                     f"{bases}\t{'I' * 90}\tNM:i:{numbers.below(9)}")
    return "\n".join([*lines, ""]).encode()


def graph_dot(nodes: int) -> bytes:
    numbers = Numbers(33)
    lines = ["digraph work {", "  node [shape=box];"]
    for number in range(1, nodes):
        lines.append(f"  n{number} [label=\"{numbers.words(2)}\"];")
        for _ in range(1 + numbers.below(2)):
            lines.append(f"  n{max(0, number - 1 - numbers.below(30))} -> n{number};")
    return "\n".join([*lines, "}", ""]).encode()
