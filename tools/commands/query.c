/* query.c: `gpuidx query`: one query, a stream of them, or the shell. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/text/ascii.h"
#include "tools/shell/query_context.h"
#include "tools/shell/shell.h"

/* Join all arguments behind the index with blanks, so that quotes may be left out. */
static char *join(int n, char **words)
{
    size_t len = 1;
    for (int i = 0; i < n; ++i)
        len += strlen(words[i]) + 1;
    char *text = malloc(len), *p = text;
    for (int i = 0; text && i < n; ++i) {
        p = stpcpy(p, words[i]);
        if (i + 1 < n)
            *p++ = ' ';
    }
    return text;
}

static int ask_arguments(ask *k, int n, char **words, bool *none)
{
    uint32_t n_hits;
    char *text = join(n, words);
    if (!text)
        return cli_fail(GX_ENOMEM, "no memory for the query");
    const int code = ask_query(k, "1", 1, text, strlen(text), &n_hits);
    *none = n_hits == 0;
    free(text);
    return code;
}

enum { MAX_LINE = 1 << 20 }; /* bytes of a query in standard input */

/* The next line, without its end, into line[MAX_LINE + 1]; its length, or -1 at the end. A line of
 * more than MAX_LINE bytes counts one more, and what is behind them is not read. */
static ssize_t read_line(FILE *in, char *line)
{
    size_t len = 0;
    int c = 0;
    while (len <= MAX_LINE && (c = getc_unlocked(in)) != EOF && c != '\n')
        line[len++] = (char)c;
    if (c == EOF && len == 0)
        return -1;
    while (len && len <= MAX_LINE && line[len - 1] == '\r')
        --len;
    return (ssize_t)len;
}

/* The line as UTF-8, as replay reads logs; the first time that a line must be converted is told. */
static int convert_line(const ask *k, gx_log_text *b, char *line, size_t n, gx_log_counts *told)
{
    gx_error err = {0};
    gx_log_counts now = {0};
    for (char *nul = line; (nul = memchr(nul, 0, (size_t)(line + n - nul)));) {
        *nul = ' ';
        ++now.nuls;
    }
    if (gx_log_convert(b, line, n, GX_LOG_AUTO, &now, &err))
        return cli_fail_error(&err);
    if (now.latin1 && !told->latin1++)
        cli_note("standard input:%llu: this line is not UTF-8; it is read as Latin-1, and so are others like it",
                 (unsigned long long)k->line);
    if (now.nuls && !told->nuls++)
        cli_note("standard input:%llu: NUL bytes, read as blanks", (unsigned long long)k->line);
    return 0;
}

/* Why an id cannot stand in a run. NULL: it can. */
static const char *fault_of_id(const char *id, size_t n)
{
    if (n == 0)
        return "the query's id is empty";
    for (size_t i = 0; i < n; ++i)
        if (gx_is_space(id[i]))
            return "white space in the query's id";
    return NULL;
}

/* Refuse the line, which holds no query. 0: it is passed over. */
static int refuse_line(const ask *k, const char *text, size_t len, const char *why)
{
    char number[24];
    gx_error err = {.status = GX_EINPUT};
    const gx_query asked = {.size = sizeof asked, .kind = k->kind, .text = text, .len = len};
    const int digits = snprintf(number, sizeof number, "%llu", (unsigned long long)k->line);
    snprintf(err.text, sizeof err.text, "%s", why);
    return ask_refuse_line(k, &asked, number, (size_t)digits, &err);
}

static void drop_rest_of_line(FILE *in)
{
    int c;
    while ((c = getc_unlocked(in)) != EOF && c != '\n')
        ;
}

/* A query a line: text, or qid, a tab and text; the qid is the line's number where none is given.
 * */
static int ask_lines(ask *k, FILE *in, bool *none)
{
    char *line = malloc(MAX_LINE + 1), number[24];
    gx_log_text utf8 = {0};
    gx_log_counts told = {0};
    ssize_t n;
    int code = line ? 0 : cli_fail(GX_ENOMEM, "no memory for queries");
    if (!k->id_files && !isatty(STDIN_FILENO))
        k->ids.read_ids = document_filter_refuse_ids;
    for (k->line = 1; code == 0 && !cli_output_failed() && (n = read_line(in, line)) >= 0; ++k->line) {
        uint32_t n_hits = 0;
        const size_t mark = k->line == 1 && n >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        if (n > MAX_LINE) {
            code = refuse_line(k, "", 0, "a query of more than 1048576 bytes; shorten it or split it");
            if (k->skip)
                drop_rest_of_line(in);
            continue;
        }
        if ((code = convert_line(k, &utf8, line + mark, (size_t)n - mark, &told)))
            break;
        const char *text = utf8.p, *tab = memchr(text, '\t', utf8.n);
        const char *fault = tab ? fault_of_id(text, (size_t)(tab - text)) : NULL;
        if (fault) {
            code = refuse_line(k, tab + 1, utf8.n - (size_t)(tab - text) - 1, fault);
        } else if (tab) {
            const size_t id = (size_t)(tab - text);
            code = ask_query(k, text, id, tab + 1, utf8.n - id - 1, &n_hits);
        } else {
            const int digits = snprintf(number, sizeof number, "%llu", (unsigned long long)k->line);
            code = ask_query(k, number, (size_t)digits, text, utf8.n, &n_hits);
        }
        *none = *none && n_hits == 0;
    }
    if (code == 0 && ferror(in))
        code = cli_fail(GX_EIO, "cannot read queries from standard input: %s", strerror(errno));
    free(utf8.p);
    free(line);
    return code;
}

static int run(const cli_args *a)
{
    ask k;
    bool none = true;
    const char *tag = cli_text(a, "run-tag");
    if (!*tag || tag[strcspn(tag, " \t\r\n")])
        return cli_usage(a, "--run-tag: a run's last column is neither empty nor has white space in it");
    int code = ask_open(&k, a, a->argv[0]);
    const bool shell = code == 0 && a->argc == 1 && isatty(STDIN_FILENO) && k.format == OUT_HUMAN;
    if (code == 0 && !shell)
        out_head(stdout, k.format, k.ix, k.shown.numbers, k.shown.n, k.page.collapse != NULL);
    if (shell) {
        code = shell_run(&k);
        none = false;
    } else if (code == 0 && a->argc > 1 && !(a->argc == 2 && strcmp(a->argv[1], "-") == 0)) {
        code = ask_arguments(&k, a->argc - 1, a->argv + 1, &none);
    } else if (code == 0) {
        k.name_queries = true;
        code = ask_lines(&k, stdin, &none);
    }
    ask_close(&k);
    return code == 0 && none && cli_switch(a, "fail-empty") ? 1 : code;
}

static const cli_flag flags[] = {
    CLI_SEARCH_FLAGS,
    {"facet", 0, CLI_LIST, "NAME[:N]", NULL,
     "count all documents that match, not only those printed, by the attribute `NAME`, and print the `N` (10) largest "
     "counts; may be given several times. `category:20`, `created:by=month`, `price:bins=10`, `brand:avg=price`, "
     "`brand/year`, `brand:exclude-own`: see Facet syntax"},
    {"sums", 0, CLI_LIST, "NAME[:FIGURE]...", NULL,
     "print figures of the attribute `NAME`, of type int, float or date, over all documents that match, not only "
     "those printed: `min`, `max`, `sum`, `avg`, `distinct`, and percentiles such as `p50` or `p99.9`. Without a "
     "`FIGURE` the first four. May be given several times: see Facet syntax"},
    {"prior", 0, CLI_TEXT, "NAME:w=X,form=F", NULL,
     "add a number of each document to its score, such as its pagerank: `X` (1) times ln(1 + x) with `form=log` (the "
     "default), x / (x + H) with `form=sat,half=H` (1), or x with `form=linear`, where x is the value of the "
     "attribute `NAME`, an int or float, of several the greatest. Documents without a value, or with one below 0, "
     "add nothing. The results are exact; `--explain` shows what was added. Pages, groups and "
     "`--sort` go by these scores, too"},
    CLI_RM3_FLAG,
    {"format", 'f', CLI_CHOICE, OUT_FORMATS, "human", "how results are printed"},
    {"show", 0, CLI_LIST, "NAME,...", NULL,
     "print the values of these attributes of each result, or of `all`: in `human` on a line of their own, in `csv` in "
     "columns behind the title, in `jsonl` as the member `attributes`; may be given several times"},
    {"sort", 0, CLI_LIST, "NAME,...", NULL,
     "order results by the values of attributes, not by score: `price:desc,year`; see Order and pages"},
    {"collapse", 0, CLI_TEXT, "NAME[:N]", NULL,
     "print the best result of each value of the attribute `NAME` alone, such as a shop or the document that passages "
     "are of, or the best `N` (1) of each, and how many documents with this value match; see Groups"},
    {"offset", 0, CLI_COUNT, "N", "0", "leave out the first `N` results", .max = UINT32_MAX},
    {"after", 0, CLI_TEXT, "CURSOR", NULL,
     "begin behind the last result of an earlier page, whose cursor `--cursor` has printed, or `cursor` of `jsonl`"},
    {"cursor", 0, CLI_SWITCH, NULL, NULL,
     "print the cursor of the next page for `--after`: in `jsonl` as the member `cursor`, else as a note"},
    {"explain", 0, CLI_SWITCH, NULL, NULL, "print why each result has its score: the formula with its numbers"},
    {"snippets", 0, CLI_CHOICE, "on|off", "on", "show the best part of each text, where the index holds the texts"},
    {"deadline", 0, CLI_NUMBER, "MS", NULL,
     "give a query at most `MS` milliseconds; one that takes longer is not answered, and ends the program with exit "
     "code "
     "9 unless `--on-error=skip`",
     .min = 1e-6, .max = 1e9},
    {"on-error", 0, CLI_CHOICE, "fail|skip", "fail",
     "what a line of standard input does that cannot be answered. `fail`: it ends the program; `skip`: a warning says "
     "why, in `-f jsonl` an object with `error` takes the place of the answer, and the next line is read. Take `skip` "
     "for a program that answers many users"},
    {"run-tag", 0, CLI_TEXT, "NAME", "gpuidx", "the last column of the `trec` format"},
    CLI_ID_FILES_FLAG,
    {"fail-empty", 0, CLI_SWITCH, NULL, NULL, "exit with 1 when no query has a result"},
    {NULL},
};

static const cli_section sections[] = {
    {"Queries",
     "A query is plain text. It is made into terms as the documents were when the index was built; a term that is "
     "said twice counts twice. At most 1,024 different terms are allowed. Signs mean nothing in it, but for quotes "
     "(`--quotes`): a note says so, once, where there is a quoted span, a + or - "
     "before a word, or a * or ~2 behind one. Of an index of learned "
     "weights a query may be a JSON object of terms and weights, as in `{\"land\": 1.5}`.\n"
     "\n"
     "A query without words, as in `gpuidx query shop.gx '' --filter 'price:<20'`, finds all documents that the "
     "filters leave, each with score 0, by docid; in the boolean syntax `*` alone does, too. An empty line of standard "
     "input finds nothing. A query of whose words "
     "analysis leaves none finds nothing, which is told.\n"
     "\n"
     "From standard input comes a query a line: its text, or its id, a tab and its text. Where there is no id, the "
     "line's number is one. Each answer is written before the next line is read. A line that is not UTF-8 is read "
     "as Latin-1, which is told. A line that cannot be answered, of too many terms, of more than 1 MiB, or with an "
     "empty id or white space in it, ends the program with exit code 3, or is passed over with `--on-error=skip`."},
    {"While an index changes",
     "Each query is answered from the newest commit of a collection: what `add`, `update`, `delete` or `merge` of "
     "another "
     "process commits is seen by the next line of the same pipe and the next query of the shell. An index file "
     "stays the "
     "one that was opened: after `gpuidx build --force` or `mv` a program that runs goes on with the old file, and "
     "a new "
     "one sees the new file."},
    {"Filter syntax",
     "`--filter` takes conditions on the attributes that `gpuidx build --attr` kept and `gpuidx info` lists:\n"
     "\n"
     "  year:2019               the value is 2019; of several, one of them\n"
     "  year:[2015 TO 2019]     2015, 2019, and what lies between\n"
     "  year:{2015 TO 2019}     what lies between; [2015 TO 2019} mixes both\n"
     "  year:[2015 TO *]        2015 and all above\n"
     "  price:<20               also <=, > and >=\n"
     "  date:2019-05            any second of that month; >2019-05 is after it\n"
     "  open:true               or false\n"
     "  has:doi                 documents that have a value\n"
     "  brand:son*              keywords that begin so\n"
     "  id:doc7, id:@FILE       a document; those whose ids the file has\n"
     "  a AND b, a OR b, NOT a  AND binds more than OR, NOT most\n"
     "  (a OR b) AND c          a group; groups and NOTs nest up to 64 levels\n"
     "\n"
     "A value with blanks, brackets or quotes stands in double quotes; a backslash takes the next character as it is. "
     "Values are compared whole, but for a * at the end of a keyword; elsewhere a * outside of quotes is refused. "
     "Keywords are ordered byte by byte. A document of "
     "several values meets a condition if one of them does, so that `year:>2015 AND year:<2019` may be met by "
     "two. One without a value meets no condition on that attribute, and so NOT selects it. A range whose ends are in "
     "the wrong order selects nothing."},
    {"Facet syntax",
     "`--facet` takes the name of an attribute and options behind colons:\n"
     "\n"
     "  category            the 10 values with the most matches; of a date, years\n"
     "  category:20         the 20 largest counts; category:all: all of them\n"
     "  created:by=month    of a date: by year, month or day, in UTC\n"
     "  price:bins=10       10 ranges of equal width, from the least value that a\n"
     "                      match has to the greatest\n"
     "  price:width=5       ranges of width 5, one of which begins at 0\n"
     "  price:bins=stored   the bins of the attribute's bitmap columns; not of a\n"
     "                      collection of several files\n"
     "  price:quantiles=4   4 ranges that have about as many matches each\n"
     "  year:all:order=value  by value, not by count\n"
     "  brand:avg=price     and the average price of each group's matches;\n"
     "                      likewise min, max, sum, distinct and percentiles:\n"
     "                      brand:20:sum=price:p50=price:max=year\n"
     "  brand:stats=price   min, max, sum and avg\n"
     "  brand:5/year:all    and of each group's matches the facet year:all\n"
     "  brand:exclude-own   as if --filter had no condition on brand: what other\n"
     "                      values would find, for a page with check boxes\n"
     "\n"
     "Whole numbers are summed exactly. Sums of floats are exact and then rounded once, to the nearest double; so are "
     "averages. A percentile such as `p90` is the least value that at least 90 % of the values do not exceed; `p0` "
     "is the least. Each value of a document with several counts. Of no values there are only the number, 0, and the "
     "sum, 0; `jsonl` says null for the others, and for a sum that no double can hold. A date has no sum, and its "
     "average is shown as the second that it lies in. Keywords and bools have no figures. `exclude-own` leaves out "
     "those operands of the filter's outermost AND that name the attribute and no other one; where an OR or a NOT "
     "names it beside others, the query is refused. "
     "Conditions of a query in boolean syntax stay.\n"
     "\n"
     "The counts are exact and of all documents that match the query, whatever `-k` is, under the filters and without "
     "deleted documents. A document with several values counts once in each group that has one of them; one without "
     "a value is counted as such. Bins and widths print all ranges, by value. Behind the attribute's name and a colon, "
     "what is printed of a group is a filter that selects it; a keyword may need quotes. The formats `human` and "
     "`jsonl` have facets. A GPU counts what it searches if that is faster; the CPU counts for it where the index is a "
     "collection, a facet has more than 1,048,576 groups or is bins of several values a document, or the GPU has no "
     "memory left for the attribute; it also counts for it what has figures, an inner facet or quantiles."},
    {"Order and pages",
     "`--sort` takes names of attributes, the first of which decides, with words behind colons:\n"
     "\n"
     "  price               the least price first\n"
     "  price:desc          the greatest price first\n"
     "  year:desc,price     the newest first; those of one year by price\n"
     "  price:missing-first documents without a price before all others; missing-last,\n"
     "                      behind them, is the default, up or down\n"
     "\n"
     "Keywords are ordered byte by byte, false before true. Of a document with several values the least one counts, "
     "with `desc` the greatest. Results that are equal in all of this come by falling score, then by docid. Each has "
     "its score, as without `--sort`. Without words, all documents that the filters leave are ordered. The CPU sorts, "
     "also beside a GPU, with the same answers; the first queries of an attribute take longer.\n"
     "\n"
     "`-k 20 --offset=40` is the third page of 20. A cursor goes on where a page has ended: it names the query, its "
     "filter, order and scorer, the index and the commit, and is refused of any other query. As long as a collection "
     "stays at that commit, pages are cuts of one list; later a note, in `jsonl` `moved`, says that the page is one of "
     "the last commit, in which results may have come and gone. A cursor does not name `-k`: pages may have "
     "different lengths. With `--op=and-or` the "
     "pages are those of AND where that has `k` results in all, else those of OR."},
    {"Groups",
     "`--collapse=shop` prints one result of each shop: the best one, by score or by `--sort`. Documents without a "
     "value are one group together. `-k`, `--offset` and cursors count groups, and the results are exact: the best `k` "
     "groups of all matches, however many documents of one group come first. An attribute of which a document of the "
     "index has several values, and the type keywords, are refused.\n"
     "\n"
     "Behind each result stand its group's value and how many of its documents match. With `--collapse=shop:3` "
     "the best 3 (at most 1,000) follow: in `human` on lines of their own, in `csv` as rows with the same rank, "
     "in `jsonl` in `hits` of the result's `group`, of which the first is the result itself. How many groups "
     "there are in all `--facet=shop` tells. With `--op=and-or`, AND answers where `k` documents match it."},
    {"Phrases",
     "An index of `gpuidx build --positions` finds words that stand near each other. In the boolean syntax, and "
     "what has quotes in plain queries too:\n"
     "\n"
     "  \"new york city\"    the words in a row\n"
     "  \"new york\"~3       the words moved by at most 3 places: of the places where\n"
     "                     they stand, less their places in the phrase, the greatest\n"
     "                     exceeds the least by at most 3\n"
     "  \"new yor*\"         the last word may be a prefix, in the boolean syntax alone\n"
     "  NEAR/5(york new)   the words within 5 places, in any order; Indri's #uw5\n"
     "  ONEAR/5(new york)  the words in order, each at most 5 places behind the one\n"
     "                     before; Indri's #5\n"
     "\n"
     "A phrase stands wherever a word may: `+\"new york\" -\"new york times\" hotel^2`. What stands in quotes is "
     "analysed as a text is: stop words leave gaps. Each word of a "
     "match stands at a place of its own, and all of them in the title or all in the text. A match may begin at any "
     "place: a phrase is found as often as there are different places at which one begins, the least one of the places "
     "counted as above, for `ONEAR` that of its first word.\n"
     "\n"
     "A phrase is scored as a word would be: its weight is the sum of its words' idf, its tf the number of its matches "
     "in the document, the length that of the document. The words of a phrase add nothing by themselves; write them "
     "beside it for that, or use `--sdm` (below). At most 1,000 words are allowed in a phrase, and 10,000 behind ~ and "
     "/. Where the last word is a prefix, it counts as one word that stands wherever one of the words does that begin "
     "so, at most `--max-expansions`, and its idf is that of the one in most documents. Refused are a phrase of stop "
     "words alone, and a `*` behind another word or beside ~."},
    {"Dependence",
     "With `--sdm=WORDS,ORDERED,UNORDERED` words that stand next to each other in a plain query count as pairs, too: "
     "the sequential dependence model of Metzler and Croft. Where S is the score of a query of its own, that of a "
     "document is\n"
     "\n"
     "  WORDS * sum of S(a) + ORDERED * sum of S(\"a b\")\n"
     "                      + UNORDERED * sum of S(NEAR/8(a b))\n"
     "\n"
     "over all words a and all pairs of a word a and the next one b. `new york times` with 0.85,0.1,0.05 is\n"
     "\n"
     "  new^.85 york^.85 times^.85 \"new york\"^.1 \"york times\"^.1\n"
     "  NEAR/8(new york)^.05 NEAR/8(york times)^.05\n"
     "\n"
     "of the boolean syntax. Stop words between two words part no pair, but count in \"a b\" as they do in quotes. A "
     "phrase in quotes counts as a word, and is in no pair. Which documents match is as without `--sdm`. The index "
     "must have positions. Refused beside it are `--op=and-or`, `--rm3`, `--fields`, `--scorer=impact` and the "
     "boolean syntax."},
    {"Patterns",
     "In the boolean syntax a word may stand for several words of the index:\n"
     "\n"
     "  neutrin*          words that begin so\n"
     "  n?utrino, *trino  ? is a character, * any number of them\n"
     "  neutrino~1        words with at most one typing error; ~2 with two; ~ alone:\n"
     "                    none in words of 1 or 2 characters, one up to 5, else two\n"
     "  /neutrin[os]+/    a regular expression\n"
     "\n"
     "A typing error is a character put in, left out or replaced, or two neighbours swapped; what was swapped has no "
     "other error (optimal string alignment).\n"
     "\n"
     "A regular expression has `. [a-z] [^a-z] \\d \\w \\s ( ) | * + ? {2} {2,} {2,4}`. It matches whole words, "
     "without look-around and back references, and runs in time linear in a word's length.\n"
     "\n"
     "The words of the index are terms as its analyzer made them: with `english` they are stems, so that `neutrinos*` "
     "finds nothing where `neutrino*` does. Letters of a pattern become lower case, or are folded, as those of texts; "
     "the word before ~ is stemmed too.\n"
     "\n"
     "At most `--max-expansions` (50) words are searched for, those that most documents hold, of equal ones the first "
     "in byte order; a note says if more match. In a collection they are those of the whole. `--expansion-scoring` "
     "says what they add to a document's score, where idf, tf and f (`--scorer`) are as for words:\n"
     "\n"
     "  each      sum over the words of idf(df) * f(tf) / (1 + d), d typing errors\n"
     "  one       idf(greatest df of the words) * f(sum of their tfs): one word, as\n"
     "            Lucene's SynonymQuery\n"
     "  constant  1, or the weight behind ^, as Lucene's ConstantScoreQuery\n"
     "\n"
     "`one` and `constant` need term frequencies: an index of impacts and `--fields` refuse them. On a GPU the CPU "
     "finds their documents. A pattern counts as one of the words that a query may have; all its words together "
     "are at most 1,024. Refused are patterns that match every word, such as `?*` and `/.*/`, and those of more than "
     "1,000 characters. In `jsonl` the member `patterns` has `pattern`, `matched` (how many words match) and `words` "
     "with `term`, `df` and `distance`.\n"
     "\n"
     "For a word that no document holds, `suggestions` has the nearest words in the same form; in `human` a note "
     "does."},
    {"Synonyms",
     "`--synonyms=FILE` replaces words of queries. A line of the file is a rule, in the form of Solr's synonym files:\n"
     "\n"
     "  tv, telly => television, tv   each word before => becomes those behind it\n"
     "  sofa, couch, new sofa         each becomes all of them\n"
     "  # a comment                   \\, and \\= are the characters themselves\n"
     "\n"
     "An entry of several words is a phrase, for which the index needs positions. Entries are analysed as queries are. "
     "Rules of one word add up; what a rule gives is not looked up again. In plain queries the longest run of words "
     "that is an entry is replaced, in the boolean syntax a word or a quoted phrase. What replaces it counts as one "
     "word: with `--op=and` a document needs one of its entries. Its words score as one word (`one` under Patterns), "
     "each of its phrases adds its own score. Refused, with line and column, are lines that are no rules, entries of "
     "stop words alone, and circles: `a => b` where other rules turn b into a."},
    {"Long queries",
     "`--query-k1` and `--query-b` weigh the words of a plain query by BM25, too, for queries as long as documents:\n"
     "\n"
     "  score  = sum over words of weight * idf * f(tf)\n"
     "  weight = idf * qtf / (qtf + k1 * (1 - b + b * qlen / avgdl))\n"
     "\n"
     "qtf says how often the query has the word, qlen how many words it has in all, those that no document has among "
     "them; avgdl is that of the documents. One of the two alone: k1 is 0.9, b 0.4. This is query-side BM25 as in "
     "Anserini (BRIGHT). Quotes mean nothing then; the boolean syntax and `--synonyms` are refused."},
    {"Boolean syntax",
     "With `--syntax=boolean`:\n"
     "\n"
     "  a b          words side by side, as --op says; this binds least\n"
     "  +a b -c      documents with a, without c; b only adds to the score\n"
     "  a AND b      both; binds more than OR\n"
     "  a OR b       any\n"
     "  NOT a        documents without a; binds most\n"
     "  (a b)        a group\n"
     "  a^2.5        the score of a, or of a group, counts 2.5 times\n"
     "  \"a b\"        a phrase; \"a b\"~3, NEAR/5(a b), ONEAR/5(a b): see Phrases\n"
     "  neutrin*     a word that stands for several: see Patterns\n"
     "  *            alone: all documents\n"
     "  year:2019    a condition on an attribute, in any form that --filter takes:\n"
     "               year:[2015 TO 2019], price:<20, has:doi, id:doc7, id:@FILE\n"
     "  \\+ \\: \\(     a backslash takes the next character as it is\n"
     "\n"
     "AND, OR and NOT are written in capitals. Each NOT or - negates what the one before it says. Signs that mean "
     "something in other engines only are refused with their place: `!word`, `&&`, `||`, `[a TO b]`,"
     "  `year>2015`, `+-word`, a blank at the colon of a condition. A word with such a sign stands "
     "in double quotes. A result holds at least one word that is not negated, unless it matches "
     "by conditions, and its score is the sum over those words. Stop words disappear. Where a word is made into "
     "several terms, all of them are needed after +, - and NOT and beside AND; elsewhere each counts as a word. Groups "
     "nest up to 64 levels. Fields are refused: the index stores none. "
     "`--op=and-or` takes plain words, phrases and weights alone.\n"
     "\n"
     "A condition may stand where a word may: `neural AND year:[2015 TO 2019] AND NOT venue:SIGIR`, `+neural "
     "+year:2016`, `(a AND year:2016) OR (b AND year:2017)`. It selects documents and adds nothing to the score, as "
     "a filter clause of Lucene, so it has no weight, and as an optional clause beside a required one it changes "
     "nothing. `--filter` holds besides. Conditions that all results must meet cost what a filter of the query's own "
     "costs; the others are evaluated on the CPU, beside lists that are decoded whole.\n"
     "\n"
     "In a query with a condition that is not negated a document may match without any of the words that score: "
     "`year:2016` alone, `a OR year:2016`, `+year:2016 a`. Such documents have score 0 and come last, by docid. A "
     "name that no attribute has is refused; write `title\\:x` for a word with a colon in it. In queries that come "
     "from standard input, `id:@FILE` is refused unless `--allow-id-files` is given."},
    {"The index file",
     "The index is mapped into memory and not copied. Replace one that may be in use by `mv`, never by writing over it "
     "or truncating it: a program that reads a page which is gone ends with exit code 4. With `--load=read` the whole "
     "file is read first, and later changes to it do no harm."},
    {"Formats", "  human   rank, score, id, title, snippet; number of matches and time\n"
                "  trec    qid Q0 id rank score tag (blanks in ids become _)\n"
                "  tsv     qid, id and rank, with tabs between (MS MARCO)\n"
                "  jsonl   an object a query: schema, qid, query, engine, seconds,\n"
                "          matches, cursor, moved, collapse, facets, sums, hits (rank,\n"
                "          docid, id, score, title, snippet, attributes, group (value,\n"
                "          matches, hits))\n"
                "  csv     qid,rank,id,score,title with a head line; attributes behind,\n"
                "          and group,group_matches with --collapse\n"
                "\n"
                "In `human`, control characters become blanks, and those that turn the direction of text U+FFFD. In "
                "`csv`, a field that a spreadsheet would take for a formula has a ' before it, and control characters "
                "become blanks. The other formats have texts as they are.\n"
                "\n"
                "Scores are printed with as many digits as it takes to read the same number back."},
    {"Scorers",
     "N documents, df of them with the term, tf occurrences in this one, dl its length and avgdl the average, K = "
     "k1 (1 - b + b dl / avgdl). The score is the sum over the query's terms of\n"
     "\n"
     "  bm25              ln(1 + (N-df+.5)/(df+.5)) tf/(tf+K)    k1 0.9, b 0.4\n"
     "  bm25:lucene       the same                               k1 1.2, b 0.75\n"
     "  bm25:pisa         max(1e-6, ln((N-df+.5)/(df+.5)))\n"
     "                    (k1+1) tf/(tf+K)                       k1 0.9, b 0.4\n"
     "  bm25:atire        ln(N/df) (k1+1) tf/(tf+K)              k1 0.9, b 0.4\n"
     "  bm25:robertson    max(0, ln((N-df+.5)/(df+.5)))\n"
     "                    (k1+1) tf/(tf+K)                       k1 1.2, b 0.75\n"
     "  bm25:lucene-lossy as bm25, with Lucene's one-byte lengths\n"
     "  impact            tf: the sum of the impacts that an index of such holds,\n"
     "                    or of the counts of any other\n"
     "\n"
     "They are options of the query, not of the index. Equal scores are ordered by docid, the smaller first. A score "
     "is a sum of integers on a scale of about 2^-30 of the query's total weight, the same on every engine: where one "
     "term weighs less than a millionth of the others together, its part is coarse."},
    {"Expansion",
     "With `--rm3=DOCS,TERMS,WEIGHT` a query is searched twice. The feedback documents are the best DOCS of the first "
     "search, which keeps to `--op` and the filters. The terms of each are those of its stored title and text, "
     "analysed as the build did. Left out are terms of fewer than 2 or more than 20 bytes, terms with other "
     "characters than a to z and 0 to 9, and terms that more than a tenth of all documents contain; the TERMS of "
     "greatest tf stay, and tf over the sum of their tfs is p. A term weighs the sum over the documents of p times "
     "the document's score; the TERMS heaviest stay, divided by their sum. The second search is an OR of weighted "
     "terms: WEIGHT times the share of the term in the query, plus 1 - WEIGHT times that. This is RM3 as in "
     "Anserini. `--format=jsonl` and `--explain` show the terms with their weights."},
    {"Shell",
     "Without a query, and with a terminal, `gpuidx query` prompts for queries, with line editing and a history "
     "that is kept in `$XDG_STATE_HOME/gpuidx/history`. A line that begins with a dot is a command; `.help` lists "
     "them, `.settings` shows what is set, Tab completes their names. Ctrl-C cancels the running query, stops its "
     "answer or empties the line. Ctrl-D leaves.\n"
     "\n"
     "At a terminal, an answer of more lines than the screen goes through `$PAGER`, or `less -FRX` where that is not "
     "set; `PAGER=cat` does without."},
    {"Text fields",
     "An index with fields (`gpuidx build --field`) is searched by them with `--fields=title^3,text:b=0.6`: `^W` is a "
     "field's weight, 0 to 1,000,000, 1 unless given; `:b=B` its b, else that of `--b` or the scorer. A "
     "document matches "
     "where one of these fields has the word. `--field-scoring` says what the score is:\n"
     "\n"
     "  bm25f   sum over terms of idf * tf' / (tf' + k1)\n"
     "          tf' = sum over fields of weight * tf / norm\n"
     "  sum     sum over fields of weight * S\n"
     "  best    the greatest over fields of weight * S\n"
     "          S = sum over terms of idf_f * x / (x + k1), x = tf / norm\n"
     "  norm    1 - b + b * len / avglen\n"
     "\n"
     "times k1 + 1 where the scorer is. tf and len are those of the field in the document, and avglen is the mean over "
     "all documents. idf goes by the documents that have the term in one of the fields, idf_f by those that have it in "
     "this field. `sum` and `best` are what Elasticsearch calls most_fields and best_fields. Answers are exact; what "
     "stands beside idf counts in steps of 2^-23. A list is made for the weights when a query first asks for "
     "it, so the "
     "first query of a word is slower. The CPU searches fields, unless `--engine=gpu` is given: then all lists are "
     "made first.\n"
     "\n"
     "With `--syntax=boolean`, `title:quark` and `title:(quark gluon)` search for words in this field alone, whose "
     "weight and b count; idf goes by the documents that have the word there. Any field of the index may stand there.\n"
     "\n"
     "Of an index with positions, too, a phrase or window has all its words in one field: `\"a b\"`, `NEAR/5(a b)`, "
     "`title:\"a b\"`, `title:(\"a b\" c)`. It is scored as a word whose tf in a field is the number of its "
     "matches there, and whose idf, or idf_f, is the sum of its words'. The CPU finds all its documents when a query "
     "first asks for it, and keeps them."},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx query corpus.gx 'inverted index compression'", "The ten best documents."},
    {"gpuidx query corpus.gx -k 100 --op=and --format=jsonl <queries.txt",
     "The hundred best documents with all words of each query, for a program to read."},
    {"gpuidx query papers.gx --filter 'year:[2015 TO 2019] AND NOT venue:SIGIR' 'query expansion'",
     "The best of five years, one venue left out."},
    {"gpuidx query papers.gx --syntax=boolean '+expansion +year:>2015 -(venue:SIGIR OR survey)'",
     "The same in the query's own words."},
    {"gpuidx query papers.gx --facet venue:5 --facet year:all:order=value 'query expansion'",
     "Beside the ten best: where and when all documents that match appeared."},
    {"gpuidx query corpus.gx --scorer=bm25:lucene --explain 'block max'", "Why they have their scores."},
    {"gpuidx query corpus.gx --rm3=10,10,0.5 'vitamin D'", "The query with ten terms of its ten best documents."},
    {"gpuidx query corpus.gx --sdm 'new york times'", "Documents in which the words stand together come first."},
    {"gpuidx query corpus.gx", "The shell."},
    {NULL},
};

const cli_command cmd_query = {
    .name = "query",
    .summary = "answer queries from an index",
    .synopsis = "[OPTIONS] INDEX [QUERY...]",
    .description = "Prints the documents that match best. The query stands on the command line; without one, or with "
                   "`-`, queries are read from standard input, a line each. Without one, and where that is a "
                   "terminal, a shell is opened.",
    .sections = sections,
    .examples = examples,
    .flags = flags,
    .common = "top op syntax filter scorer engine facet rm3 format show sort collapse snippets explain",
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
