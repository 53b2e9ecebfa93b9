# Orders by customer, with sums; names turned over and put together again.
def swapped: split(" ") | reverse | join(" ");
[ .orders[]
  | .items |= map(. + {note: (.note | swapped), name: (.name | ascii_upcase)})
  | . + {total: ([.items[].price] | add)} ]
| group_by(.customer)
| map({customer: .[0].customer, orders: length, total: (map(.total) | add),
       dearest: (map(.items[]) | max_by(.price)),
       names: (map(.items[].name) | unique | join(", "))})
| sort_by(-.total, .customer)
