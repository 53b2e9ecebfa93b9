-- Tables, indices, joins, aggregates and long texts in a database in memory.
-- The numbers look random and are not: the output is the same on every run.
PRAGMA temp_store = memory;
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, city TEXT, note TEXT);
CREATE TABLE purchase(id INTEGER PRIMARY KEY, customer INTEGER, item TEXT, price REAL, day INTEGER);

INSERT INTO customer
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
SELECT i, 'customer ' || (i * 7919 % 20011), 'city ' || (i * 31 % 211),
       substr('abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz', 1 + i % 20, i % 32)
FROM n;

INSERT INTO purchase
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150000)
SELECT i, 1 + i * 104729 % 20000, 'item ' || (i * 13 % 977), (i * 37 % 9973) / 8.0, i % 365
FROM n;

CREATE INDEX by_customer ON purchase(customer, day);
CREATE INDEX by_item ON purchase(item);
CREATE INDEX by_city ON customer(city, name);

SELECT city, count(*), round(sum(price), 2), max(day)
FROM customer JOIN purchase ON purchase.customer = customer.id
GROUP BY city ORDER BY 3 DESC LIMIT 20;

SELECT length(group_concat(name, ',')), city FROM customer GROUP BY city ORDER BY 1, 2 LIMIT 20;

SELECT sum(position) FROM (
    SELECT row_number() OVER (PARTITION BY item ORDER BY price, id) AS position FROM purchase
) WHERE position % 7 = 0;

UPDATE purchase SET price = price * 1.25, item = item || ' (new)' WHERE day BETWEEN 100 AND 200;
DELETE FROM purchase WHERE customer % 11 = 3;
SELECT item, count(DISTINCT customer), round(avg(price), 3)
FROM purchase GROUP BY item ORDER BY 2 DESC, item LIMIT 20;

CREATE TABLE word(text TEXT PRIMARY KEY, uses INTEGER) WITHOUT ROWID;
INSERT INTO word SELECT upper(item) || hex(customer), count(*) FROM purchase GROUP BY 1;
SELECT count(*), sum(uses), max(length(text)) FROM word WHERE text LIKE '%1%2%';
VACUUM;
SELECT count(*) FROM customer WHERE id IN (SELECT customer FROM purchase WHERE price > 1000);
