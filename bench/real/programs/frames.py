"""A data frame: groups, joins, sorting, text. Argument: how many rows."""

import sys

import numpy
import pandas


def frame_of(rows: int, seed: int) -> pandas.DataFrame:
    """The same numbers under every version of numpy."""
    place = numpy.arange(rows, dtype=numpy.uint64)
    mixed = (place * numpy.uint64(6364136223846793005 + 2 * seed)) >> numpy.uint64(33)
    return pandas.DataFrame({
        "key": (mixed % numpy.uint64(5000)).astype("int64"),
        "value": (mixed % numpy.uint64(99991)).astype("int64"),
        "name": ["name " + str(number % 7001) for number in mixed.tolist()],
    })


def main() -> None:
    rows = int(sys.argv[1])
    one, other = frame_of(rows, 1), frame_of(rows // 4, 2)
    joined = one.merge(other.drop_duplicates("key"), on="key", suffixes=("", "_other"))
    joined["text"] = joined["name"].str.upper() + joined["name_other"].str[5:]
    by_text = joined.groupby("text")["value"].agg(["sum", "max", "count"])
    table = joined.assign(part=joined["value"] % 12).pivot_table(
        index="key", columns="part", values="value", aggfunc="sum", fill_value=0)
    print(len(joined), int(by_text["sum"].sum()), int(table.to_numpy().sum()))
    print(by_text.sort_values(["sum", "count"]).tail(5).to_csv())
    print(joined.sort_values(["name", "value"]).iloc[:: max(1, rows // 5)]["text"].tolist())


if __name__ == "__main__":
    main()
