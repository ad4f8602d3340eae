# The one table of flags: help, manual pages and completions say the same.
load cli

setup_file() {
    # what follows goes through this list, so it must not be empty
    [ "$(commands | wc -l)" -ge 5 ]
    [ "$(bench_commands | wc -l)" -ge 5 ]
}

# The commands of gpuidx but the words that start gpuidx-bench, and that program's: `bench codecs`.
commands() {
    "$GPUIDX" help --list | grep -vx -e bench -e generate
}

bench_commands() {
    "$GPUIDX" bench help --list | sed 's/^/bench /'
}

# The flags that --help-all lists for a command: "--name", and "-x" for letters.
flags_of() {
    "$GPUIDX" $1 --help-all | sed -n '/^Flags$/,/^$/p' |
        sed -n 's/^ \{2,6\}\(-\([a-zA-Z0-9]\), \)\{0,1\}--\([a-z0-9-]*\).*/--\3 \2/p'
}

@test "every command has help, flags, and a line in the list" {
    ask help
    exits 0
    for command in $(commands); do
        says "  $command "
        [ -n "$(flags_of "$command")" ]
        "$GPUIDX" "$command" --help | diff - <("$GPUIDX" help "$command")
    done
    says '  bench '
    says '  generate '
    "$GPUIDX" bench --help | diff - <("$GPUIDX" help bench)
    "$GPUIDX" generate --help | diff - <("$GPUIDX" bench generate --help)
    while read -r _ command; do
        "$GPUIDX" bench "$command" --help | diff - <("$GPUIDX-bench" help "$command")
    done < <(bench_commands)
    ask help query bench
    exits 2
}

@test "help shows the usual flags of a command that has many, and --help-all the rest" {
    shown() {
        sed -n '/^Flags$/,/^$/p' | grep -c '^ \{2,6\}\(-[a-zA-Z0-9], \)\{0,1\}--'
    }
    for command in $(commands); do
        [ "$("$GPUIDX" help $command | shown)" -le 16 ]
        "$GPUIDX" help --all $command | diff - <("$GPUIDX" $command --help-all)
    done
    for command in build query replay add update import serve mcp sweep calibrate; do
        n=$("$GPUIDX" help $command | shown)
        [ "$n" -ge 11 ]
        [ "$n" -le 16 ]
        left=$("$GPUIDX" help $command |
            sed -n "s/^\([0-9]*\) more flags: 'gpuidx help --all $command' shows them.$/\1/p")
        [ $((n + left + 3)) = "$("$GPUIDX" $command --help-all | shown)" ] # and --quiet, --verbose, --color
        ! "$GPUIDX" help --all $command | grep 'more flags:'
    done
}

@test "bench and generate start gpuidx-bench, which lies beside gpuidx" {
    ask bench
    exits 2
    complains 'Usage: gpuidx-bench COMMAND'
    ask bench --version
    says 'gpuidx-bench '
    mkdir alone
    cp "$GPUIDX" alone
    for command in 'bench codecs --list' generate 'help bench'; do
        GPUIDX=$PWD/alone/gpuidx ask $command
        exits 5
        complains 'cannot run gpuidx-bench: No such file or directory; it belongs into the folder of gpuidx'
    done
    GPUIDX=$PWD/alone/gpuidx ask completion bash
    exits 0
}

@test "every flag is in the manual page, and the manual page has no other" {
    while read -r command; do
        "$GPUIDX" help --man $command | sed -n 's/^\.It .*Fl \\-\([a-z0-9-]*\).*/--\1/p' | sort >man
        flags_of "$command" | cut -d' ' -f1 | sort >help
        diff help man
        flags_of "$command" | while read -r _ letter; do
            [ -z "$letter" ] || "$GPUIDX" help --man $command | grep -q "^\.It Fl $letter"
        done
    done < <(commands; bench_commands)
}

@test "every text is whole, and names only flags and values that are there" {
    python3 "$HERE/help_texts.py" "$GPUIDX"
}

@test "every flag is in the completions" {
    for shell in bash zsh fish; do
        "$GPUIDX" completion $shell >$shell
    done
    while read -r command; do
        of=gpuidx
        [[ $command != bench\ * ]] || of=gpuidx-bench
        sed -n "/^_${of/-/_}() {/,/^}/p" bash | sed -n "/^    ${command##* })/,/esac ;;/p" >bash-part
        sed -n "/^_${of/-/_}() {/,/^}/p" zsh | sed -n "/^    ${command##* })/,/;;$/p" >zsh-part
        grep "^complete -c $of .*seen_subcommand_from ${command##* }'" fish >fish-part
        while read -r flag letter; do
            grep -q -e "[ ']$flag[ ='=]" bash-part
            grep -q -e "'$flag=\{0,1\}\[" zsh-part
            grep -q -e " -l ${flag#--} " fish-part
            if [ -n "$letter" ]; then
                grep -q -e " -$letter[ ']" bash-part
                grep -q -e "'-$letter+\{0,1\}\[" zsh-part
                grep -q -e " -s $letter " fish-part
            fi
        done < <(flags_of "$command")
    done < <(commands; bench_commands)
}

@test "the manual pages are clean mdoc" {
    command -v mandoc >/dev/null || skip "mandoc is not installed"
    while read -r command; do
        # the one complaint left is that pages which are not installed are referred to
        "$GPUIDX" help --man $command | { mandoc -T lint -W style || true; } >lint
        if grep -v 'referenced manual not found' lint; then
            return 1
        fi
    done < <(echo; commands; bench_commands)
}

@test "no line of a terminal's help is longer than 80 columns unless a word is" {
    while read -r command; do
        "$GPUIDX" help --all $command | grep -v -e '^Usage' -e '^  \$' -e '^  *gpuidx ' -e '^  *-' >lines
        if grep -E '.{81}' lines; then
            return 1
        fi
    done < <(echo; commands; bench_commands)
}

@test "bash completes commands, flags, choices and files" {
    eval "$("$GPUIDX" completion bash)"
    compopt() { :; }
    complete_line() {
        COMP_LINE=$1
        COMP_POINT=${#1}
        _gpuidx
    }
    complete_line 'gpuidx que'
    [ "${COMPREPLY[*]}" = query ]
    complete_line 'gpuidx query --eng'
    [ "${COMPREPLY[*]}" = --engine= ]
    complete_line 'gpuidx query --engine=g'
    [ "${COMPREPLY[*]}" = gpu ]
    complete_line 'gpuidx query --engine='
    [ "${COMPREPLY[*]}" = 'auto cpu gpu hybrid' ]
    complete_line 'gpuidx query --engine g'
    [ "${COMPREPLY[*]}" = gpu ]
    complete_line 'gpuidx query --scorer=bm25:luc' # readline has cut the word at the colon
    [ "${COMPREPLY[*]}" = 'lucene lucene-lossy' ]
    complete_line 'gpuidx query -f js'
    [ "${COMPREPLY[*]}" = jsonl ]
    complete_line 'gpuidx build --codec=gpubp'
    [ "${COMPREPLY[*]}" = 'gpubp128 gpubp256' ]
    complete_line 'gpuidx build --stemmer=ger'
    [ "${COMPREPLY[*]}" = german ]
    complete_line 'gpuidx eval -m ndcg@'
    [ "${COMPREPLY[*]}" = ndcg@10 ]
    complete_line 'gpuidx eval -m map,ndcg@'
    [ "${COMPREPLY[*]}" = map,ndcg@10 ]
    complete_line 'gpuidx sweep --scorer=bm25:atire,bm25:pi'
    [ "${COMPREPLY[*]}" = pisa ]
    complete_line 'gpuidx query --load='
    [ "${COMPREPLY[*]}" = 'map read' ]
    complete_line 'gpuidx build --fold=u'
    [ "${COMPREPLY[*]}" = unicode ]
    touch some.gx
    complete_line 'gpuidx build -m '
    [[ ${COMPREPLY[*]} != *ndcg* ]]
    complete_line 'gpuidx query som'
    [ "${COMPREPLY[*]}" = some.gx ]
    complete_line 'gpuidx query some.gx --k'
    [ "${COMPREPLY[*]}" = '--k1=' ]
    complete_line 'gpuidx help inf'
    [ "${COMPREPLY[*]}" = info ]
    complete_line 'gpuidx completion z'
    [ "${COMPREPLY[*]}" = zsh ]
    complete_line 'gpuidx bench cod'
    [ "${COMPREPLY[*]}" = codecs ]
    complete_line 'gpuidx bench codecs --tab'
    [ "${COMPREPLY[*]}" = --table= ]
    complete_line 'gpuidx bench query --engine=g'
    [ "${COMPREPLY[*]}" = gpu ]
    complete_line 'gpuidx generate --dens'
    [ "${COMPREPLY[*]}" = --density= ]
}

@test "zsh and fish accept their completions" {
    tried=
    for shell in zsh fish; do
        command -v $shell >/dev/null || continue
        tried=1
        "$GPUIDX" completion $shell >script
        $shell -n script
    done
    [ -n "$tried" ] || skip "neither shell is installed"
}

@test "zsh and fish are told the values of flags that take a name" {
    "$GPUIDX" completion zsh >zsh
    "$GPUIDX" completion fish >fish
    for values in 'codec auto raw' 'stemmer none ' 'stopwords none lucene' 'measures official map'; do
        flag=${values%% *} first=${values#* }
        grep -q -e "'--$flag=\[.*\]:$flag:.*[( ]$first" zsh
        grep -q -e " -l $flag .*-a '$first" fish
    done
    grep -q -e "stopwords:{compadd none lucene; _files}' " zsh
    grep -q -e "-l stopwords -r -a 'none lucene' " fish
}

@test "zsh completes flags, and choices with colons" {
    command -v zsh >/dev/null && command -v python3 >/dev/null || skip "zsh or python3 is not installed"
    "$GPUIDX" completion zsh >_gpuidx
    python3 "$HERE/terminal.py" zsh -f <<END
type PS1='ready> '; fpath=($PWD \$fpath); autoload -Uz compinit; compinit -u -d $PWD/dump; echo al''l
see all
see ready>
keys gpuidx que
keys TAB
see query
pause 0.3
keys --scor
keys TAB
see --scorer=
pause 0.3
keys bm25:l
keys TAB
see lucene
END
}

@test "fish completes commands, flags and values" {
    command -v fish >/dev/null || skip "fish is not installed"
    "$GPUIDX" completion fish >script
    completed() { # the words that fish offers for a line
        HOME=$PWD fish --no-config -c "source script; complete -C '$1'" | cut -f1 | tr '\n' ' '
    }
    [ "$(completed 'gpuidx que')" = 'query ' ]
    [[ $(completed 'gpuidx query --eng') = '--engine'* ]]
    [ "$(completed 'gpuidx query --engine=g')" = '--engine=gpu ' ]
    [ "$(completed 'gpuidx query --engine g')" = 'gpu ' ]
    [ "$(completed 'gpuidx query --scorer=bm25:luc')" = '--scorer=bm25:lucene --scorer=bm25:lucene-lossy ' ]
    [ "$(completed 'gpuidx query -f js')" = 'jsonl ' ]
    [ "$(completed 'gpuidx build --codec=gpubp')" = '--codec=gpubp128 --codec=gpubp256 ' ]
    [ "$(completed 'gpuidx build --stemmer=ger')" = '--stemmer=german ' ]
    [ "$(completed 'gpuidx eval -m ndcg@')" = 'ndcg@10 ' ]
    [ "$(completed 'gpuidx query --load=')" = '--load=map --load=read ' ]
    [[ $(completed 'gpuidx bench ') = *'codecs '* ]]
    [ "$(completed 'gpuidx help inf')" = 'info ' ]
    [ "$(completed 'gpuidx completion z')" = 'zsh ' ]
    touch some.gx
    [ "$(completed 'gpuidx query som')" = 'some.gx ' ]
}

@test "zsh completes short flags and the names of codecs, stemmers and measures" {
    command -v zsh >/dev/null && command -v python3 >/dev/null || skip "zsh or python3 is not installed"
    "$GPUIDX" completion zsh >_gpuidx
    for line in 'query -f js|jsonl' 'build --codec=gpubp25|gpubp256' 'build --stemmer=germ|german' 'bench cod|codecs' \
        'eval -m ndcg@|ndcg@10' 'query --load=rea|read' 'build --fold=uni|unicode' 'help inf|info' \
        'sweep --scorer=bm25:pi|bm25:pisa'; do
        python3 "$HERE/terminal.py" zsh -f <<END
type PS1='ready> '; fpath=($PWD \$fpath); autoload -Uz compinit; compinit -u -d $PWD/dump; echo al''l
see all
see ready>
keys gpuidx ${line%|*}
keys TAB
see ${line##*|}
END
    done
}

@test "an unknown shell has no completion" {
    ask completion tcsh
    exits 2
    complains 'tcsh: there is no completion for this shell'
}
