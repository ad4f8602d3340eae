/* pages_driver.c: answers pages for pages.py: a request a line on standard input, an answer a line on standard output.
 *
 *   pages_driver INDEX [cpu|gpu]
 *
 *   request  op \t kind \t k \t offset \t sort \t after \t collapse \t prior \t filter \t text
 *            after "=": the last cursor given
 *   answer   n_matches first moved cursor|- docid:score ...                    scores as hexadecimal floats
 *            with groups, of each " / n_matches value docid:score ...", the value in hexadecimal digits, "-": missing
 *            error STATUS message
 *
 * With k 0 it is gx_search for all documents; `first` is the exponent of the scores' scale then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"

static char *last; /* the last cursor */

static void complain(const gx_error *err)
{
    printf("error %s: %s\n", gx_status_name(err->status), err->text);
}

static void print_group(const gx_groups *groups, const gx_group *g)
{
    gx_text value = {0};
    if (!g->missing)
        gx_text_add_value(&value, groups->type, &g->value);
    printf(" / %llu %s", (unsigned long long)g->n_matches, g->missing ? "-" : "x");
    for (size_t i = 0; i < value.len; ++i)
        printf("%02x", (unsigned char)value.bytes[i]);
    for (uint32_t i = 0; i < g->n; ++i)
        printf(" %llu:%a", (unsigned long long)g->docids[i], g->scores[i]);
    free(value.bytes);
}

static gx_status find_exponent(const gx_index *ix, const gx_query *q, const gx_query_options *opt, uint64_t *out,
                               gx_error *err)
{
    gx_explanation e = {0};
    const gx_status st = gx_explain(&e, ix, q, opt, 0, err);
    if (st == GX_OK) {
        *out = (uint64_t)e.exponent;
        gx_explanation_free(&e);
    }
    return st;
}

static void answer(gx_index *ix, gx_session *s, char **f)
{
    static const char *const ops[] = {"or", "and", "and-or"}, *const kinds[] = {"text", "boolean", "all"};
    const gx_query_kind kind_of[] = {GX_QUERY_TEXT, GX_QUERY_BOOLEAN, GX_QUERY_ALL};
    gx_query_options opt = GX_QUERY_OPTIONS;
    gx_query q = GX_TEXT_QUERY(f[9], strlen(f[9]));
    gx_filter *filter = NULL;
    gx_error err = {0};
    gx_page page;
    gx_page_end end = {.size = sizeof end};
    const uint64_t n_docs = gx_index_n_docs(ix);
    const uint32_t k = (uint32_t)strtoul(f[2], NULL, 10), max = k ? k : n_docs ? (uint32_t)n_docs : 1;
    uint64_t *docids = malloc(max * sizeof *docids), n_matches = 0;
    double *scores = malloc(max * sizeof *scores);
    uint32_t n = 0;
    for (int i = 0; i < 3; ++i) {
        opt.op = strcmp(ops[i], f[0]) == 0 ? (gx_op)i : opt.op;
        q.kind = strcmp(kinds[i], f[1]) == 0 ? kind_of[i] : q.kind;
    }
    opt.k = max;
    opt.count = true;
    gx_page_init(&page, sizeof page);
    page.offset = strtoull(f[3], NULL, 10);
    page.sort = f[4];
    page.sort_len = strlen(f[4]);
    page.after = strcmp(f[5], "=") ? f[5] : last;
    page.after_len = page.after ? strlen(page.after) : 0;
    page.collapse = f[6];
    page.collapse_len = strlen(f[6]);
    const gx_results r = {
        .size = sizeof r, .docids64 = docids, .n_hits = &n, .n_matches = &n_matches, .exact_scores = scores};
    gx_status st = *f[7] ? gx_prior_read(&opt.prior, f[7], &err) : GX_OK;
    if (st == GX_OK && *f[8])
        st = gx_filter_open(&filter, ix, f[8], strlen(f[8]), NULL, &err);
    q.filter = filter;
    if (st == GX_OK)
        st = k ? gx_search_page(s, &q, 1, &opt, &page, &r, &end, &err) : gx_search(s, &q, 1, &opt, &r, &err);
    if (st == GX_OK && !k && gx_index_n_docs(ix))
        st = find_exponent(ix, &q, &opt, &end.first, &err);
    if (st == GX_OK) {
        printf("%llu %llu %d %s", (unsigned long long)n_matches, (unsigned long long)end.first, end.moved,
               end.next ? end.next : "-");
        for (uint32_t i = 0; i < n; ++i)
            printf(" %llu:%a", (unsigned long long)docids[i], scores[i]);
        for (uint32_t i = 0; end.groups && i < end.groups->n; ++i)
            print_group(end.groups, &end.groups->groups[i]);
        putchar('\n');
    } else {
        complain(&err);
    }
    if (end.next) {
        free(last);
        last = end.next;
    }
    fflush(stdout);
    gx_groups_free(end.groups);
    gx_filter_close(filter);
    free(docids);
    free(scores);
}

int main(int argc, char **argv)
{
    gx_index *ix = NULL;
    gx_engine *en = NULL;
    gx_session *s = NULL;
    gx_error err = {0};
    gx_engine_options o = GX_ENGINE_OPTIONS;
    char *line = NULL, *fields[10];
    size_t max = 0;
    o.kind = argc > 2 && strcmp(argv[2], "gpu") == 0 ? GX_ENGINE_GPU : GX_ENGINE_CPU;
    if (argc < 2 || gx_index_open(&ix, argv[1], NULL, &err) || gx_engine_open(&en, ix, &o, &err) ||
        gx_session_open(&s, en, &err)) {
        complain(&err);
        return 1;
    }
    while (getline(&line, &max, stdin) > 0) {
        char *at = line;
        line[strcspn(line, "\n")] = 0;
        for (int i = 0; i < 10; ++i)
            fields[i] = at ? strsep(&at, "\t") : line + strlen(line);
        answer(ix, s, fields);
    }
    free(line);
    free(last);
    gx_session_close(s);
    gx_engine_close(en);
    gx_index_close(ix);
    return 0;
}
