/* bench_sums: what counts and figures of all matches take on the CPU.
 *
 *   bench_sums INDEX QUERY FACETS...
 *
 * FACETS: as `gpuidx query --facet` reads them; "=LIST" is read as --sums. Prints the microseconds of processor time
 * that each takes for the query, the least of some hundred rounds, with the number of matches.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/api/gpuidx_advanced.h"
#include "tests/bench/timing.h"

enum { ROUNDS = 3000 };
#define ENOUGH 2.0 /* seconds of one kind */

static void die(const gx_error *err)
{
    fprintf(stderr, "bench_sums: %s\n", err->text);
    exit(1);
}

static void time_one(const gx_index *ix, gx_session *session, const gx_query *query, const char *text)
{
    gx_error err = {0};
    gx_facet_list *list;
    uint32_t n;
    uint64_t n_matches = 0;
    double best = 1e9, all = 0;
    const bool sums = *text == '=';
    if (gx_facet_list_read(&list, ix, sums ? NULL : text, sums ? text + 1 : NULL, &err))
        die(&err);
    const gx_facet *facets = gx_facet_list_get(list, &n);
    for (int round = 0; round < ROUNDS && all < ENOUGH; ++round) {
        gx_facets *answer;
        const double began = own_time();
        if (gx_count_facets(&answer, session, query, NULL, facets, n, &err))
            die(&err);
        const double took = own_time() - began;
        best = took < best ? took : best;
        all += took;
        n_matches = gx_facets_n_matches(answer);
        gx_facets_close(answer);
    }
    printf("| %s | %llu | %.1f |\n", text, (unsigned long long)n_matches, 1e6 * best);
    gx_facet_list_close(list);
}

int main(int argc, char **argv)
{
    gx_error err = {0};
    gx_index *ix;
    gx_engine *en;
    gx_session *session;
    gx_engine_options options = GX_ENGINE_OPTIONS;
    if (argc < 4) {
        fprintf(stderr, "usage: bench_sums INDEX QUERY FACETS...\n");
        return 2;
    }
    options.kind = GX_ENGINE_CPU;
    if (gx_index_open(&ix, argv[1], NULL, &err) || gx_engine_open(&en, ix, &options, &err) ||
        gx_session_open(&session, en, &err))
        die(&err);
    const gx_query query = GX_TEXT_QUERY(argv[2], strlen(argv[2]));
    printf("| facets | matches | us |\n| --- | --- | --- |\n");
    for (int i = 3; i < argc; ++i)
        time_one(ix, session, &query, argv[i]);
    gx_session_close(session);
    gx_engine_close(en);
    gx_index_close(ix);
    return 0;
}
