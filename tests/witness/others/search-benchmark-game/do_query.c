/* do_query.c INDEX: answers search-benchmark-game. A line of its input is a command, a tab and a query: words, of which
 * any may be there; words that all begin with +, of which each must be; or a phrase between quotes. COUNT and
 * TOP_N_COUNT are answered by the number of matches, TOP_N by 1; any other command by UNSUPPORTED.
 */
#include <gpuidx.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most results that a command asks for, 0: none; UINT32_MAX: it is not supported. */
static uint32_t results_of(const char *command, bool *count)
{
    unsigned k;
    char rest[16] = "";
    *count = strcmp(command, "COUNT") == 0;
    if (*count)
        return 0;
    if (sscanf(command, "TOP_%u%15s", &k, rest) < 1 || k == 0 || k > 100000 || (rest[0] && strcmp(rest, "_COUNT") != 0))
        return UINT32_MAX;
    *count = rest[0] != 0;
    return k;
}

static int fail(const gx_error *err)
{
    fprintf(stderr, "do_query: %s\n", err->text);
    return gx_status_exit(err->status);
}

static gx_status answer(gx_session *s, char *text, uint32_t k, bool count, uint64_t *n_matches, gx_error *err)
{
    static uint32_t docids[100000];
    uint32_t n_hits;
    gx_query_options options;
    gx_results results = GX_RESULTS(docids, NULL, &n_hits);
    gx_query_options_init(&options, sizeof options);
    options.op = text[0] == '+' ? GX_OP_AND : GX_OP_OR;
    options.k = k ? k : 1;
    options.count = count;
    results.n_matches = n_matches;
    for (char *p = text; options.op == GX_OP_AND && (p = strchr(p, '+'));)
        *p = ' ';
    const gx_query query = GX_TEXT_QUERY(text, strlen(text));
    return gx_search(s, &query, 1, &options, &results, err);
}

int main(int argc, char **argv)
{
    const char *const wanted = getenv("GPUIDX_ENGINE");
    gx_engine_options options;
    gx_index *index;
    gx_engine *engine;
    gx_session *session;
    gx_error err = {0};
    char line[65536];
    if (argc != 2) {
        fprintf(stderr, "usage: do_query INDEX\n");
        return 2;
    }
    gx_engine_options_init(&options, sizeof options);
    options.kind = wanted && strcmp(wanted, "auto") == 0 ? GX_ENGINE_AUTO : GX_ENGINE_CPU;
    if (gx_index_open(&index, argv[1], NULL, &err) || gx_engine_open(&engine, index, &options, &err) ||
        gx_session_open(&session, engine, &err))
        return fail(&err);
    while (fgets(line, sizeof line, stdin)) {
        char *text = strchr(line, '\t');
        bool count = false;
        uint64_t n_matches = 0;
        line[strcspn(line, "\n")] = 0;
        if (text)
            *text++ = 0;
        const uint32_t k = results_of(line, &count);
        if (!text || k == UINT32_MAX) {
            puts("UNSUPPORTED");
        } else if (answer(session, text, k, count, &n_matches, &err)) {
            return fail(&err);
        } else {
            printf("%llu\n", count ? (unsigned long long)n_matches : 1ULL);
        }
        fflush(stdout);
    }
    gx_session_close(session);
    gx_engine_close(engine);
    gx_index_close(index);
    return 0;
}
