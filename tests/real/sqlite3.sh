#!/usr/bin/env bash
# sqlite3: tables, indices, joins, text search and a file that is vacuumed.
# shellcheck source=../support/real.sh
. "$(dirname "$0")/../support/real.sh"
need sqlite3
prove sqlite3 -version

cat >"$work/script.sql" <<'SQL'
pragma journal_mode = memory;
create table item (id integer primary key, name text, price real, category int);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
insert into item select i, printf('item-%d-%s', i * 7919 % 60013, hex(i * i)), (i * 31 % 1000) / 10.0, i % 97 from n;
create index by_name on item (name);
create index by_category on item (category, price);
create table note as select id, group_concat(name, ' ') over (order by id rows 5 preceding) as text from item where id % 3 = 0;
select category, count(*), round(sum(price), 2), min(name), max(name) from item group by category order by category;
select a.category, count(*) from item a join item b on a.name = b.name and a.id >= b.id group by a.category order by 2 desc, 1 limit 10;
select length(text), substr(text, 1, 60) from note order by text limit 20;
update item set name = name || '-' || category where id % 5 = 0;
delete from item where category in (select category from item group by category having sum(price) > 30000);
select count(*), sum(length(name)) from item;
select json_group_array(json_object('id', id, 'name', name)) from (select * from item limit 2000);
vacuum;
pragma integrity_check;
SQL
for how in without with; do
    run=env
    [ $how = with ] && run=under
    $run sqlite3 "$work/$how.db" <"$work/script.sql" >"$work/$how.out" 2>&1
done
same "the queries' answers" "$work/without.out" "$work/with.out"
same "the database file" "$work/without.db" "$work/with.db"
