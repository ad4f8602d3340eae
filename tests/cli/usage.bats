# Command lines: how they are read, and what is said of wrong ones.
load cli

setup_file() { build_tiny; }

@test "the version is printed" {
    ask --version
    exits 0
    [[ $output =~ ^gpuidx\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    silent
    ask --version --json
    exits 0
    python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["schema"] == 1 and d["libraries"]["zlib"] and isinstance(d["gpu"], list) and d["compiler"], d' <<<"$output"
    silent
}

@test "no command is a mistake, and shows the help" {
    ask
    exits 2
    complains 'Usage: gpuidx COMMAND'
    [ -z "$output" ]
}

@test "an unknown command gets the nearest one" {
    ask qurey
    exits 2
    complains "qurey: there is no such command; did you mean 'gpuidx query'?"
    ask frobnicate
    exits 2
    complains "frobnicate: there is no such command; 'gpuidx help' lists them"
}

@test "an unknown flag gets the nearest one" {
    ask query x.gx --scoerr=bm25
    exits 2
    complains '--scoerr: there is no such flag; did you mean --scorer?'
    complains "Try 'gpuidx query --help'."
    ask query x.gx --frobnicate
    exits 2
    complains '--frobnicate: there is no such flag'
    ask query x.gx --k=10
    exits 2
    complains '--k: there is no such flag; did you mean -k?'
    ask query x.gx -Z
    exits 2
    complains '-Z: there is no such flag'
}

@test "values out of range are refused before anything is opened" {
    ask query missing.gx -k 0 x
    exits 2
    complains '--top=0: the value is less than 1'
    ask query missing.gx -k ten x
    complains '--top=ten: the value is not a whole number'
    ask query missing.gx -k -1 x
    complains '--top=-1: the value is not a whole number'
    ask query missing.gx -k 99999999999999999999999 x
    complains 'the value is too large'
    ask query missing.gx -k 4294967296 x
    complains 'the value is more than 4294967295'
    ask query missing.gx --b=1.5 x
    complains '--b=1.5: the value is more than 1'
    ask query missing.gx --k1=nan x
    complains '--k1=nan: the value is not a number'
    ask query missing.gx --k1=-0.1 x
    complains '--k1=-0.1: the value is less than 0'
    ask query missing.gx --engine=tpu x
    exits 2
    complains '--engine=tpu: there is no such choice; did you mean cpu? it is one of auto|cpu|gpu'
}

@test "sizes take K, M, G and T" {
    for size in 512 4k 64M 2G 1T 3GiB 5MB; do
        ask query missing.gx --device-memory=$size x
        exits 5
    done
    for size in M 5X 1.5G 5MM 99999999999T; do
        ask query missing.gx --device-memory=$size x
        exits 2
    done
}

@test "--resident takes bytes, a share or auto" {
    for size in 0 4k 2G 0% 12.5% 100% auto; do
        ask query missing.gx --resident=$size x
        exits 5
    done
    for size in M 5X 101% -1% % x% '' 1.5; do
        ask query missing.gx "--resident=$size" x
        exits 2
        complains "--resident=$size: it is a number of bytes, such as 20G, a share, such as 25%, or auto"
    done
    ask query missing.gx --residency-policy=lfru x
    exits 2
    complains 'it is one of gdsf|static'
}

@test "--fields, which --members was called, is refused with the new word where nothing else has it" {
    for command in build add update; do
        ask $command missing.gx missing --fields=id=docno
        exits 2
        complains '--members names the members'
    done
    ask doc missing.gx --fields=id x
    exits 2
    complains '--fields: there is no such flag'
}

@test "a flag without its value is refused" {
    ask query x.gx --scorer
    exits 2
    complains '--scorer: it needs a value'
    ask query x.gx -k
    exits 2
    complains '-k: it needs a value, N'
    ask query x.gx --explain=yes
    exits 2
    complains '--explain: it takes no value'
}

@test "missing and superfluous arguments are refused" {
    ask query
    exits 2
    complains 'an argument is missing: gpuidx query [OPTIONS] INDEX [QUERY...]'
    ask info a.gx b.gx
    exits 2
    complains 'b.gx: one argument too many'
}

@test "flags may stand anywhere, and end at --" {
    ask help --list query
    exits 0
    ask help -- --list
    exits 2
    complains '--list: there is no such command'
}

@test "letters may be joined with each other and with their values" {
    ask query missing.gx -qk10 x
    exits 5
    ask query missing.gx -qk0 x
    exits 2
}

@test "colours obey --color and NO_COLOR" {
    ask help query
    [[ $output != *$'\033'* ]]
    ask help query --color=never
    [[ $output != *$'\033'* ]]
    ask help query --color=always
    [[ $output == *$'\033['* ]]
    NO_COLOR=1 ask help query --color=always
    [[ $output == *$'\033['* ]]
}

@test "a full disk is an error" {
    [ -w /dev/full ] || skip "there is no /dev/full"
    status=0
    "$GPUIDX" help >/dev/full 2>err || status=$?
    [ "$status" -eq 5 ]
    grep -q 'cannot write standard output: No space left on device' err
}

@test "a reader that has left is an error without words" {
    mkfifo pipe
    exec 7<>pipe 8>pipe
    exec 7<&-
    status=0
    "$GPUIDX" help query >&8 2>err || status=$?
    [ "$status" -eq 5 ]
    [ ! -s err ]
}

@test "help of a mistyped command suggests the right one" {
    ask help qeury
    exits 2
    complains "did you mean 'gpuidx query'"
}

@test "other engines' verbs are answered with ours" {
    for pair in search:query index:build stats:info evaluate:eval; do
        ask "${pair%:*}" x
        exits 2
        complains "${pair%:*}: there is no such command; here it is 'gpuidx ${pair#*:}'"
    done
}

@test "a mistyped value is answered with the nearest" {
    ask query --scorer=bm25:lucen x.gx y
    exits 2
    complains '--scorer=bm25:lucen: there is no such choice; did you mean bm25:lucene? it is one of'
    ask query --engine=xyzzy x.gx y
    complains 'there is no such choice; it is one of auto|cpu|gpu'
}

@test "a file of another kind is called what it is" {
    echo '1 Q0 d1 1 3.5 tag' >x.run
    echo 'some text' >x.txt
    ask query x.run word
    exits 4
    complains 'x.run is no index; it is a run of results'
    ask query x.txt word
    exits 4
    complains 'x.txt is no index; it is a text file'
    ask build "$TINY" -o y.gx
    exits 3
    complains "$TINY is an index already"
    ask import "$TINY" -o y.gx
    exits 3
    complains "$TINY is an index already"
    printf '\1\0\0\0\1\0\0\0' >inv.docs
    ask import inv.docs -o y.gx
    exits 2
    complains 'inv.docs is one file of a ds2i collection; name them all by what comes before the dot: inv'
}

@test "that no GPU is used is told with -v alone" {
    "$GPUIDX" devices --require >/dev/null && skip "there is a GPU"
    ask query "$TINY" twins
    exits 0
    [ -z "$stderr" ]
    ask query -v "$TINY" twins
    exits 0
    complains 'searching on the CPU'
}

@test "a list of GPUs that is wrong is refused, and one without GPUs is searched by the CPU" {
    local list
    for list in x 0,x 0, ,0 -1 1024 0,1,0 $(seq -s, 0 16); do
        ask query "$TINY" --devices=$list x
        exits 2
        complains "--devices=$list:"
    done
    complains '--devices=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16: these are more than 16 GPUs'
    ask query "$TINY" --devices=3,4,3 x
    complains '--devices=3,4,3: GPU 3 is there twice'
    ask query "$TINY" --device=0 --devices=0,1 x
    exits 2
    complains '--device and --devices: one of them'
    echo '1:one' >log
    for list in all 900,901; do
        ask replay "$TINY" log --devices=$list --engine=auto
        exits 0
        ask bench query "$TINY" log --devices=$list --engine=cpu --runs=1
        exits 0
    done
    ask query "$TINY" --devices=900,901 --engine=gpu x
    exits 7
}

@test "parts are spread over GPUs that are listed, and a file is not" {
    ask query "$TINY" --spread=parts x
    exits 2
    complains '--spread=parts: over which GPUs? --devices lists them'
    ask query "$TINY" --spread=parts --devices=0,1 --engine=gpu x
    exits 2
    complains 'is one file, and only the parts of a collection can be spread over GPUs'
    ask query "$TINY" --spread=parts --devices=0,1 --engine=cpu x
    exits 0
    "$GPUIDX" collect -q "$TINY" -o parts
    ask query parts --spread=parts --devices=900,901 x
    exits 0
}

@test "every command tells the version, and guesses no flag that is far from it" {
    for command in $("$GPUIDX" help --list); do
        ask $command --version
        exits 0
        [[ $output == 'gpuidx '[0-9]* || $output == 'gpuidx-bench '[0-9]* ]]
    done
    ask query x.gx --version
    exits 2
    complains "'gpuidx --version' prints the version"
    [[ $stderr != *'did you mean'* ]]
    ask query x.gx --colour=never
    complains 'did you mean --color?'
    ask query x.gx --absolutely
    [[ $stderr != *'did you mean'* ]]
}
