#!/usr/bin/env bats
# Values of attributes: what is printed of a facet's group selects it, and fractions of a second count.

load cli

setup_file() {
    export FLOATS=$BATS_FILE_TMPDIR/floats.gx DATES=$BATS_FILE_TMPDIR/dates.gx
    "$GPUIDX" build -q "$DATA/cases/search/reports2.floats.jsonl" -o "$FLOATS" --attr x:float --attr w:float \
        --attr v:float
    "$GPUIDX" build -q "$DATA/cases/search/reports2.dates.jsonl" -o "$DATES" --attr d:date
}

# The groups of a facet as "count value" lines, each checked as a filter.
groups() {
    ask query -q --engine=cpu -k 100 --facet "$1" -f jsonl "$FLOATS" fish
    exits 0
    python3 -c '
import json, sys
def finite(name):
    raise ValueError(name)
for f in json.load(sys.stdin, parse_constant=finite)["facets"]:
    for g in f["groups"]:
        print(g["count"], f["attribute"] + ":" + g["value"])' <<<"$output" >groups
    while read -r count filter; do
        [ "$("$GPUIDX" query -q --engine=cpu -k 100 -f tsv --filter "$filter" "$FLOATS" fish | wc -l)" -eq "$count" ]
    done <groups
    cat groups
}

@test "where a width is smaller than the distance of doubles each value is a group" {
    [ "$(groups x:width=0.1)" = '1 x:[1 TO 1.1}
1 x:1.7e+15
1 x:1700000000000000.2
1 x:1700000000000000.5' ]
    [ "$(groups x:width=0.001 | wc -l)" -eq 4 ]
    [ "$(groups x:width=0.001 | tail -n 3)" = "$(groups x:width=0.1 | tail -n 3)" ]
    groups v:width=1e-16 >v
    grep -qx '1 v:5' v
    grep -qx '1 v:2' v
    [ "$(wc -l <v)" -eq 4 ]
}

@test "the outermost ranges end where doubles do" {
    for width in 1e307 1e308 1.7976931348623157e308; do
        groups w:width=$width >w
        [ -s w ]
        ! grep inf w
    done
    for facet in w:bins=3 w:bins=20 x:bins=7 v:bins=11 w:all x:all v:all; do
        groups $facet >w
        [ -s w ]
    done
}

@test "a facet has one grouping" {
    ask query -q --engine=cpu --facet d:by=month:bins=2 "$DATES" fish
    exits 2
    complains "'bins=2': a facet has one of by=, bins=, quantiles= and width="
}

dates() {
    ask query -q --engine=cpu -k 100 -f tsv --filter "$1" "$DATES" fish
    exits 0
    local filtered=$(cut -f2 <<<"$output" | sort | tr -d '\n')
    ask query -q --engine=cpu -k 100 -f tsv --syntax=boolean "$DATES" "+fish +$1"
    [ "$(cut -f2 <<<"$output" | sort | tr -d '\n')" = "$filtered" ]
    echo "$filtered"
}

@test "a fraction of a second in a bound lies between two seconds" {
    [ "$(dates 'd:<2020-01-01T00:00:00.5Z')" = ac ]
    [ "$(dates 'd:<=2020-01-01T00:00:00.5Z')" = ac ]
    [ "$(dates 'd:>=2020-01-01T00:00:00.5Z')" = b ]
    [ "$(dates 'd:>2020-01-01T00:00:00.5Z')" = b ]
    [ "$(dates 'd:[2020-01-01T00:00:00.9Z TO *]')" = b ]
    [ "$(dates 'd:{2020-01-01T00:00:00.9Z TO *]')" = b ]
    [ "$(dates 'd:[* TO 2020-01-01T00:00:00.000001Z]')" = ac ]
    [ "$(dates 'd:[* TO 2020-01-01T00:00:00.1Z}')" = ac ]
    [ "$(dates 'd:[2020-01-01T00:00:00.1Z TO 2020-01-01T00:00:00.9Z]')" = '' ]
    [ "$(dates 'd:[2019-12-31T23:59:59.9Z TO 2020-01-01T00:00:00.1Z]')" = a ]
    [ "$(dates 'd:2020-01-01T00:00:00.5Z')" = '' ]
    [ "$(dates 'd:2020-01-01T00:00:00.000Z')" = a ]
    [ "$(dates 'd:<2020-01-01T00:00:00.0Z')" = c ]
    [ "$(dates 'd:>=2020-01-01T00:00:00.00Z')" = ab ]
    [ "$(dates 'd:<1969-12-31T23:59:59.5Z')" = c ]
    [ "$(dates 'd:>1969-12-31T23:59:59.5Z')" = ab ]
    [ "$(dates 'd:<"2020-01-01T01:00:00.5+01:00"')" = ac ]
    [ "$(dates 'd:<=9999-12-31T23:59:59.5Z')" = abc ]
    [ "$(dates 'd:<0000-01-01T00:00:00.5Z')" = '' ]
}

@test "a date outside the years that can be written is damage" {
    ask check "$DATA/cases/hostile/date_base.gx"
    exits 1
    complains 'is no date of the years 0000 to 9999'
}

write_shops() {
    cat >shops.jsonl <<'EOF'
{"id":"a","title":"Red lamp","text":"red lamp","shop":"north","price":12}
{"id":"b","title":"Red big lamp","text":"red big lamp red","shop":"south","price":9}
{"id":"c","title":"Red chair","text":"red chair and table","shop":"north","price":7,"tags":["x","y"]}
{"id":"d","title":"Red desk","text":"red desk","price":3}
{"id":"e","title":"Blue red desk","text":"blue red desk","shop":"a, \"q\"","price":3}
EOF
    "$GPUIDX" build -q -o shops.gx shops.jsonl --attr=shop:keyword --attr=price:int --attr=tags:keywords
}

@test "a value has one result, or its best ones, and the number of its matches" {
    write_shops
    ask query -q --engine=cpu shops.gx red --collapse=shop:2 -f csv
    [ "$output" = 'qid,rank,id,score,title,group,group_matches
1,1,b,0.064859397709,Red big lamp,south,1
1,2,a,0.061777599156,Red lamp,north,2
1,2,c,0.060295730829,Red chair,north,2
1,3,d,0.061777599156,Red desk,,1
1,4,e,0.058883287013,Blue red desk,"a, ""q""",1' ]
    ask query -q --engine=cpu shops.gx red --collapse=shop -f tsv --sort=price -k 2
    [ "$output" = "1	d	1
1	e	2" ]
    ask query -q --engine=cpu shops.gx red --collapse=shop:2 --show=price
    says 'shop: north, 2 matches'
    says '        0.0603  c  Red chair'
    says '            price: 7'
    says 'shop: (no value), 1 match'
    ask query -q --engine=cpu shops.gx red --collapse=shop:2 -f jsonl --cursor -k 2 --show=price
    python3 -c '
import json, sys
a = json.load(sys.stdin)
assert a["collapse"] == "shop" and a["matches"] == 5, a
groups = [(h["id"], h["group"]["value"], h["group"]["matches"], [g["id"] for g in h["group"]["hits"]])
          for h in a["hits"]]
assert groups == [("b", "south", 1, ["b"]), ("a", "north", 2, ["a", "c"])], groups
assert a["hits"][1]["group"]["hits"][1]["attributes"] == {"price": 7}
print(a["cursor"])' <<<"$output" >cursor
    ask query -q --engine=cpu shops.gx red --collapse=shop:2 -f tsv --after="$(cat cursor)"
    exits 2
    complains 'leave out the number'
    ask query -q --engine=cpu shops.gx red --collapse=shop:2 -f jsonl --after="$(cat cursor)"
    says '"rank":3,"docid":3,"id":"d"'
    says '"group":{"value":null,"matches":1,"hits":[{"docid":3,'
    ask query -q --engine=cpu shops.gx red --after="$(cat cursor)"
    exits 2
    complains 'another query'
}

@test "groups that cannot be are refused" {
    write_shops
    for bad in "tags|several values" "shp|did you mean shop" "shop:0|1 to 1000" "shop:1001|1 to 1000" \
        "shop:x|1 to 1000" "shop:|1 to 1000" "shop:2:3|1 to 1000" "|is expected" ":2|is expected"; do
        ask query -q --engine=cpu shops.gx red --collapse="${bad%|*}"
        exits 2
        complains "--collapse: "
        complains "${bad#*|}"
    done
    ask query -q --engine=cpu shops.gx red --collapse=shop --approximate=0.3
    exits 2
    complains 'no groups'
    ask query -q --engine=cpu shops.gx red --collapse=shop --prior=price --approximate=0.3
    exits 2
}
