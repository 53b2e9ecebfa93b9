"""Numbers and words that are the same on every machine."""


class Numbers:
    """A small generator whose sequence does not depend on a library's version."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def below(self, limit: int) -> int:
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self.state >> 33) % limit

    def word(self) -> str:
        """A word of two to nine letters; short ones repeat often."""
        return VOCABULARY[self.below(1 + self.below(len(VOCABULARY)))]

    def words(self, count: int) -> str:
        return " ".join(self.word() for _ in range(count))


def vocabulary(count: int) -> list[str]:
    numbers = Numbers(10)
    return ["".join("etaoinshrdlu"[numbers.below(12)] for _ in range(2 + numbers.below(8)))
            for _ in range(count)]


VOCABULARY = vocabulary(4000)
