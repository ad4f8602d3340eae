/* term.c: `gpuidx term`: a term's numbers and postings. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/lookup.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"

typedef struct found {
    const gx_index *ix;
    uint32_t number;
    const char *term;
    size_t len;
    uint64_t cf;
    gx_list_size size;
    bool impacts, positions;
} found;

/* In how many documents each field has the term. */
static int put_fields(const found *f, bool json)
{
    uint64_t dfs[GX_MAX_INDEX_FIELDS];
    gx_error err = {0};
    const char *name;
    if (!gx_index_field(f->ix, 0, NULL))
        return 0;
    if (gx_index_field_dfs(f->ix, f->term, f->len, dfs, &err))
        return cli_fail_error(&err);
    fputs(json ? ",\"fields\":{" : "  in fields      ", stdout);
    for (uint32_t i = 0; (name = gx_index_field(f->ix, i, NULL)); ++i)
        if (json)
            printf("%s\"%s\":%" PRIu64, i ? "," : "", name, dfs[i]);
        else
            printf("%s%s %s", i ? ", " : "", name, show_count(dfs[i]));
    fputs(json ? "}" : "\n", stdout);
    return 0;
}

static void put_head(const found *f, bool json)
{
    const gx_list_size *s = &f->size;
    const uint64_t df = gx_index_df(f->ix, f->number);
    const uint64_t bytes = s->docid_bytes + s->tf_bytes + s->overhead_bytes;
    if (json) {
        fputs("{\"schema\":1,\"term\":", stdout);
        out_put_json(stdout, f->term, f->len);
        printf(",\"number\":%u,\"df\":%" PRIu64 ",\"cf\":%" PRIu64 ",\"bytes\":%" PRIu64, f->number, df, f->cf, bytes);
        printf(",\"docid_bytes\":%" PRIu64 ",\"tf_bytes\":%" PRIu64 ",\"blocks\":%u", s->docid_bytes, s->tf_bytes,
               s->n_blocks);
        printf(",\"codec\":\"%s\",\"tf_codec\":\"%s\"", s->docid_codec, s->tf_codec);
        return;
    }
    out_put_clean(stdout, f->term, f->len);
    printf("\n  documents      %s\n", show_count(df));
    printf("  %-13s  %s\n", f->impacts ? "impacts, sum" : "occurrences", show_count(f->cf));
    printf("  list           %s bytes in %s block%s (%.2f bits a posting)\n", show_count(bytes),
           show_count(s->n_blocks), s->n_blocks == 1 ? "" : "s", 8.0 * (double)bytes / (double)df);
    printf("    docids       %s bytes, %s\n", show_count(s->docid_bytes), s->docid_codec);
    printf("    %s      %s bytes, %s\n", f->impacts ? "impacts" : "tfs    ", show_count(s->tf_bytes), s->tf_codec);
    printf("    heads, ends  %s bytes\n", show_count(s->overhead_bytes));
}

/* positions[tf], or NULL. */
static void put_posting(const found *f, uint64_t docid, uint32_t tf, const uint32_t *positions, bool json, bool first)
{
    size_t len;
    const char *id = gx_index_doc_id(f->ix, docid, &len);
    if (json) {
        printf("%s{\"docid\":%" PRIu64 ",\"id\":", first ? "" : ",", docid);
        out_put_json(stdout, id, len);
        printf(",\"%s\":%u", f->impacts ? "impact" : "tf", tf);
        for (uint32_t i = 0; positions && i < tf; ++i)
            printf("%s%u", i ? "," : ",\"positions\":[", positions[i]);
        fputs(positions ? "]}" : "}", stdout);
        return;
    }
    if (first)
        printf("  %10s  %10s  id\n", "docid", f->impacts ? "impact" : "tf");
    printf("  %10" PRIu64 "  %10u  ", docid, tf);
    out_put_clean(stdout, id, len);
    for (uint32_t i = 0; positions && i < tf; ++i)
        printf("%s%u", i ? " " : "  at ", positions[i]);
    putchar('\n');
}

/* The list's first n postings. */
static int put_postings(const found *f, uint64_t n, bool json)
{
    gx_postings *p;
    gx_error err = {0};
    const uint32_t *docids, *tfs;
    uint32_t here = 1;
    uint64_t done = 0;
    if (json)
        fputs(",\"postings\":[", stdout);
    gx_status st = n ? gx_postings_open(&p, f->ix, f->number, &err) : GX_OK;
    while (n && st == GX_OK && here && done < n) {
        const uint32_t *positions = NULL;
        size_t n_positions;
        st = gx_postings_next(p, &docids, &tfs, &here, &err);
        if (st == GX_OK && here && f->positions)
            st = gx_postings_positions(p, &positions, &n_positions, &err);
        for (uint32_t i = 0; st == GX_OK && i < here && done < n; ++i, ++done) {
            put_posting(f, gx_postings_base(p) + docids[i], tfs[i], positions, json, done == 0);
            positions += positions ? tfs[i] : 0;
        }
    }
    if (n)
        gx_postings_close(p);
    if (st)
        return cli_fail_error(&err);
    if (json)
        fputs("]", stdout);
    return 0;
}

static int put_term(const gx_index *ix, uint32_t number, uint64_t n, bool positions, bool json)
{
    gx_index_stats stats = {.size = sizeof stats};
    gx_index_get_stats(ix, &stats);
    found f = {
        .ix = ix, .number = number, .cf = gx_index_cf(ix, number), .impacts = stats.impacts, .positions = positions};
    f.term = gx_index_term(ix, number, &f.len);
    gx_index_list_size(ix, number, &f.size);
    put_head(&f, json);
    int code = put_fields(&f, json);
    if (!code)
        code = put_postings(&f, n, json);
    if (json)
        puts("}");
    return code;
}

/* The terms that analysis makes of a word, each printed. */
static int put_word(const cli_args *a, const gx_index *ix, const char *word)
{
    gx_error err = {0};
    gx_text_term *terms = NULL, own = {word, strlen(word), 0, strlen(word)};
    size_t n = 1;
    int code = 0;
    const bool as_is = cli_switch(a, "as-is");
    if (!as_is && gx_index_analyze_query(ix, word, strlen(word), &terms, &n, &err))
        return cli_fail_error(&err);
    if (n == 0)
        code = cli_fail(GX_ENOTFOUND, "nothing is left of '%s' after analysis: it is a stop word or punctuation", word);
    for (size_t i = 0; code == 0 && i < n; ++i) {
        const gx_text_term *t = as_is ? &own : &terms[i];
        const uint32_t number = gx_index_find_term(ix, t->term, t->len);
        if (number == UINT32_MAX)
            code = cli_fail(GX_ENOTFOUND, "%s has no term '%s'%s%s%s", a->argv[0], t->term, as_is ? "" : " (of '",
                            as_is ? "" : word, as_is ? "" : "')");
        else
            code = put_term(ix, number, cli_count(a, "top"), cli_switch(a, "positions"), lookup_json(a));
    }
    free(terms);
    return code;
}

/* ---- several words ---- */

static void put_words_json(const char *what, const char *text, const gx_expansion *e)
{
    printf("{\"schema\":1,\"%s\":", what);
    out_put_json(stdout, text, strlen(text));
    printf(",\"matched\":%" PRIu64 ",\"words\":[", e->n_matched);
    for (uint32_t i = 0; i < e->n; ++i) {
        fputs(i ? ",{\"term\":" : "{\"term\":", stdout);
        out_put_json(stdout, e->words[i].word, e->words[i].len);
        printf(",\"df\":%" PRIu64 ",\"distance\":%u}", e->words[i].df, e->words[i].distance);
    }
    puts("]}");
}

/* Words that begin with a text, or are near a word, each with its df. */
static int put_words(const cli_args *a, const gx_index *ix, const char *flag)
{
    gx_error err = {0};
    gx_expansion *e;
    gx_expand_options opt = GX_EXPAND_OPTIONS;
    const char *text = cli_text(a, flag);
    const bool like = strcmp(flag, "like") == 0;
    opt.max_words = cli_given(a, "top") ? (uint32_t)cli_count(a, "top") : 10;
    opt.as_is = cli_switch(a, "as-is");
    opt.nearest = like;
    if (opt.max_words == 0 || opt.max_words > GX_MAX_EXPANSIONS)
        return cli_usage(a, "--top=%u: from 1 to %u words can be printed", opt.max_words, GX_MAX_EXPANSIONS);
    if (gx_index_expand(&e, ix, like ? GX_PATTERN_FUZZY : GX_PATTERN_PREFIX, text, strlen(text), &opt, &err))
        return cli_fail(err.status, "--%s: %s", flag, err.text);
    if (lookup_json(a))
        put_words_json(flag, text, e);
    for (uint32_t i = 0; i < e->n && !lookup_json(a); ++i) {
        printf("%10s  ", show_count(e->words[i].df));
        out_put_clean(stdout, e->words[i].word, e->words[i].len);
        putchar('\n');
    }
    const bool none = e->n == 0;
    gx_expansion_free(e);
    return none ? cli_fail(GX_ENOTFOUND, "%s has no term %s '%s'", a->argv[0], like ? "like" : "that begins with", text)
                : 0;
}

static int check_args(const cli_args *a)
{
    const bool lists = cli_given(a, "prefix") || cli_given(a, "like");
    if (cli_given(a, "prefix") && cli_given(a, "like"))
        return cli_usage(a, "--prefix and --like are two questions; ask one at a time");
    if (lists && (a->argc > 1 || cli_switch(a, "positions")))
        return cli_usage(a, "--prefix and --like list words; leave WORD and --positions out");
    return lists || a->argc > 1 ? 0 : cli_usage(a, "a WORD is missing, or --prefix, or --like");
}

static int run(const cli_args *a)
{
    gx_index *ix;
    int code = check_args(a);
    if (code || (code = lookup_open(&ix, a->argv[0])))
        return code;
    if (cli_given(a, "prefix"))
        code = put_words(a, ix, "prefix");
    else if (cli_given(a, "like"))
        code = put_words(a, ix, "like");
    for (int i = 1; i < a->argc && code == 0; ++i)
        code = put_word(a, ix, a->argv[i]);
    gx_index_close(ix);
    return code;
}

static const cli_flag flags[] = {
    {"top", 'n', CLI_COUNT, "N", "0",
     "also print the first `N` postings of the term, by rising docid. Each is a line: the docid, how often the "
     "document "
     "contains the term, and the document's id. 0: none",
     .max = UINT32_MAX},
    {"positions", 0, CLI_SWITCH, NULL, NULL,
     "with each posting the places where the document has the term, counted in words from 0 through title and text, of "
     "an index that was built with --positions"},
    {"prefix", 0, CLI_TEXT, "TEXT", NULL,
     "instead of terms, print the words of the index that begin with `TEXT`: those that most documents hold, 10 of "
     "them or `--top`, each behind that number of documents"},
    {"like", 0, CLI_TEXT, "WORD", NULL,
     "the same for words that `WORD` may be meant for: with no typing error where it has 1 or 2 characters, at most "
     "one where it has up to 5, else two; the nearest come first. `WORD` itself is the nearest, where it is a term"},
    {"as-is", 0, CLI_SWITCH, NULL, NULL,
     "look up `WORD` as it is written, such as the stem `comput`. Without this flag, `WORD` is first made into terms "
     "as "
     "a query's words are: lower case, stemmed, or whatever the index was built with"},
    LOOKUP_FORMAT_FLAG,
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx term corpus.gx indexing", "How many documents contain it, and how long its list is."},
    {"gpuidx term corpus.gx indexing -n 10 --positions", "Where the first ten documents have it."},
    {"gpuidx term corpus.gx --as-is index -n 10 -f json", "The term `index`, with ten postings, as JSON."},
    {"gpuidx term corpus.gx --prefix ind", "Words that begin with ind, the most frequent first."},
    {"gpuidx term corpus.gx --like indxing", "Words that may have been meant."},
    {NULL},
};

const cli_command cmd_term = {
    .name = "term",
    .summary = "print a term's statistics and postings",
    .synopsis = "[OPTIONS] INDEX WORD... | INDEX --prefix TEXT | INDEX --like WORD",
    .description =
        "Prints how many documents contain a term (`df`), how often all of them together contain it (`cf`), "
        "and how many bytes and blocks its list of postings takes, with which codecs. A posting is the number "
        "of a document and how often that document contains the term. A term that the index lacks ends the "
        "program with exit code 5.\n"
        "\n"
        "With `--format=json` each term is a JSON object on a line of its own, with `schema` (1), `term`, "
        "`number` (its rank in byte order, from 0), `df`, `cf`, `bytes`, `docid_bytes`, `tf_bytes`, `blocks`, "
        "`codec`, `tf_codec`, `fields` where the index has some (how many documents have the term in each), and "
        "`postings`, each with `docid`, `id` and `tf` (`impact` where the index "
        "holds impacts), and with `--positions` `positions`. With `--prefix` and `--like` it is one object with "
        "`prefix` or `like`, `matched` (how many words match) and `words`, each with `term`, `df` and "
        "`distance` (typing errors).",
    .examples = examples,
    .flags = flags,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
