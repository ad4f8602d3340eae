# `gpuidx recode`, `import` and `export`: indexes become other indexes.
load cli

setup_file() { build_tiny; }

# What queries see of an index.
answers() {
    for query in 'merge find' 'posting lists' 'gpu'; do
        "$GPUIDX" query -q "$1" "$query" --engine=cpu --format=tsv -k 100 "${@:2}"
    done
}

@test "recode packs an index with every codec, and answers stay the same" {
    for codec in raw gpubp128 gpubp256 gpuvbyte128 gpuvbyte1024; do
        ask recode "$TINY" -o $codec.gx --codec=$codec
        exits 0
        ask check -q $codec.gx
        exits 0
        diff <(answers "$TINY") <(answers $codec.gx)
    done
}

@test "recode leaves out titles and texts when asked to" {
    ask recode "$TINY" -o bare.gx --drop=title
    exits 0
    ask info bare.gx
    [[ $output != *TITL* && $output != *TEXT* ]]
    diff <(answers "$TINY") <(answers bare.gx)
}

@test "recode replaces nothing unasked, and knows its codecs" {
    cp "$TINY" there.gx
    ask recode "$TINY" -o there.gx
    exits 5
    complains 'there.gx exists'
    ask recode "$TINY" -o other.gx --codec=zip
    exits 2
    complains 'no codec is called "zip"'
    [ ! -e other.gx ]
    ask recode "$TINY"
    exits 2
}

@test "what export writes, import reads" {
    ask export "$TINY" -o x
    exits 0
    [ -s x.docs ] && [ -s x.freqs ] && [ -s x.sizes ] && [ -s x.terms ] && [ -s x.documents ]
    ask import x -o back.gx
    exits 0
    ask check back.gx
    exits 0
    says 'no damage found'
    diff <("$GPUIDX" query -q "$TINY" 'merge' --engine=cpu --format=tsv) <("$GPUIDX" query -q back.gx 'merg' --engine=cpu --format=tsv)
}

@test "import names the file and the byte of what is wrong" {
    ask export "$TINY" -o x
    truncate -s -4 x.freqs
    ask import x -o back.gx
    exits 3
    complains 'x.freqs: byte '
    [ ! -e back.gx ]
    ask import nothing -o back.gx
    exits 5
    complains 'nothing.docs'
}
