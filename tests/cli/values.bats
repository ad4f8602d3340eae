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
