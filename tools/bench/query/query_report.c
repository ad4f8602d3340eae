#include "tools/bench/query/query_report.h"

#include "engine/api/gpuidx_advanced.h"
#include "query/engine/engine.h"
#include "tools/bench/common.h"
#include "tools/cli/cli.h"

const char *const query_step_names[GX_N_STEPS] = {"initialize", "decompress", "intersect", "score", "top_k"};
const char *const query_stage_names[4] = {"copy_in", "search", "select", "copy_out"};

const char *query_op_name(gx_op op)
{
    return op == GX_OP_OR ? "or" : op == GX_OP_AND ? "and" : "and-or";
}

const char *query_algorithm_name(gx_algorithm a)
{
    static const char *const names[GX_N_ALGORITHMS] = {"auto", "pmf", "taat", "block-max", "daat"};
    return names[a];
}

/* ---- values of a row ---- */

static double per_second(const query_bench *b, const query_row *r)
{
    return r->seconds > 0 ? b->n / r->seconds : 0;
}

static double per_query(const query_bench *b, double x)
{
    return x / b->n;
}

static double per_batch(const query_bench *b, const query_row *r, uint64_t x)
{
    return (double)x / ((b->n + r->batch - 1) / r->batch);
}

/* Bytes a second over what the memory gives. */
static double memory_share(const query_row *r)
{
    return r->engine->read_speed > 0 && r->seconds > 0 ? r->bytes / r->seconds / r->engine->read_speed : 0;
}

/* Picoseconds of a posting touched, beyond what any query takes. */
static double ps_per_posting(const query_row *r)
{
    return r->touched > 0 && r->seconds > r->fixed_seconds ? (r->seconds - r->fixed_seconds) / r->touched * 1e12 : 0;
}

static double sum_of_steps(const query_row *r)
{
    double sum = 0;
    for (int i = 0; i < GX_N_STEPS; ++i)
        sum += r->work.steps[i];
    return sum;
}

/* ---- rows ---- */

/* Deleted documents that the parts of a collection still have. */
static uint64_t count_deleted(const gx_index *ix)
{
    gx_part_info part = {.size = sizeof part};
    uint64_t n = 0;
    for (uint32_t i = 0; gx_index_get_part(ix, i, &part) == GX_OK; ++i)
        n += part.n_deleted;
    return n;
}

static void print_header(const query_bench *b)
{
    const uint32_t n_parts = gx_index_n_parts(b->ix);
    const uint64_t n_deleted = count_deleted(b->ix);
    bench_print_machine(b->seed);
    printf("%llu documents, %llu postings", (unsigned long long)gx_index_n_docs(b->ix),
           (unsigned long long)b->ix->n_postings);
    if (n_parts)
        printf(", in %u part%s", n_parts, n_parts == 1 ? "" : "s");
    if (n_deleted)
        printf(", which still hold%s %llu deleted document%s", n_parts == 1 ? "s" : "", (unsigned long long)n_deleted,
               n_deleted == 1 ? "" : "s");
    printf("; %u queries; one thread, median of %u run%s\n", b->n, b->runs, b->runs == 1 ? "" : "s");
    for (uint32_t i = 0; i < b->n_engines; ++i) {
        const query_engine *e = &b->engines[i];
        const uint32_t n_searched = gx_engine_n_searched(e->en);
        printf("%s: %s; memory read at %.1f GB/s%s", e->name, gx_engine_describe(e->en), e->read_speed / 1e9,
               gx_engine_get_kind(e->en) == GX_ENGINE_CPU ? " by one core" : "");
        if (n_searched < n_parts)
            printf("; it has joined the parts to %u", n_searched);
        putchar('\n');
    }
}

/* A number with a dash for what was not counted. */
static void print_or_dash(double x, int width, const char *format)
{
    if (x > 0)
        printf(format, width, x);
    else
        printf(" %*s", width, "-");
}

/* What stands in the way of a GPU's work, a batch. */
static void print_gpu_calls(const query_bench *b)
{
    bool first = true;
    for (size_t i = 0; i < b->n_rows; ++i) {
        const query_row *r = &b->rows[i];
        if (!r->work.parts)
            continue;
        if (first)
            printf("\n%-4s %-6s %5s %-6s %5s %12s %9s %12s\n", "", "op", "k", "how", "batch", "parts", "waits",
                   "allocations");
        first = false;
        printf("%-4s %-6s %5u %-6s %5u %12.2f %9.2f %12.2f\n", r->engine->name, query_op_name(r->op), r->k,
               query_algorithm_name(r->algorithm), r->batch, per_batch(b, r, r->work.parts),
               per_batch(b, r, r->work.waits), per_batch(b, r, r->work.allocations));
    }
}

static void print_energy(const query_bench *b)
{
    bool first = true;
    for (size_t i = 0; i < b->n_rows; ++i) {
        const query_row *r = &b->rows[i];
        if (r->joules <= 0)
            continue;
        if (first)
            printf("\n%-4s %-6s %5s %-6s %5s %12s\n", "", "op", "k", "how", "batch", "mJ a query");
        first = false;
        printf("%-4s %-6s %5u %-6s %5u %12.4f\n", r->engine->name, query_op_name(r->op), r->k,
               query_algorithm_name(r->algorithm), r->batch, 1e3 * r->joules);
    }
}

static void print_table(const query_bench *b)
{
    print_header(b);
    printf("\n%-4s %-6s %5s %-6s %5s %10s  %9s %9s %9s %9s %9s  %s\n", "", "op", "k", "how", "batch", "queries/s",
           "p50 us", "p90", "p95", "p99", "p99.9", "answers");
    for (size_t i = 0; i < b->n_rows; ++i) {
        const query_row *r = &b->rows[i];
        printf("%-4s %-6s %5u %-6s %5u %10.0f ", r->engine->name, query_op_name(r->op), r->k,
               query_algorithm_name(r->algorithm), r->batch, per_second(b, r));
        for (int p = 0; p < QUERY_PERCENTILES; ++p)
            print_or_dash(r->percentiles[p] * 1e6, 9, " %*.1f");
        if (r->different)
            printf("  %u DIFFER\n", r->different);
        else
            puts("  equal");
    }
    printf("\n%-4s %-6s %5s %-6s %5s %12s %9s %9s %10s %10s %9s %9s %7s %7s\n", "", "op", "k", "how", "batch",
           "postings", "blocks", "decoded", "look-ups", "touched", "ps each", "KB read", "memory", "to OR");
    for (size_t i = 0; i < b->n_rows; ++i) {
        const query_row *r = &b->rows[i];
        printf("%-4s %-6s %5u %-6s %5u %12.0f %9.1f", r->engine->name, query_op_name(r->op), r->k,
               query_algorithm_name(r->algorithm), r->batch, per_query(b, (double)r->work.postings),
               per_query(b, (double)r->work.blocks));
        print_or_dash(per_query(b, (double)r->work.blocks_decoded), 9, " %*.1f");
        print_or_dash(per_query(b, (double)r->work.lookups), 10, " %*.1f");
        print_or_dash(per_query(b, r->touched), 10, " %*.1f");
        print_or_dash(ps_per_posting(r), 9, " %*.1f");
        print_or_dash(per_query(b, r->bytes) / 1e3, 9, " %*.1f");
        print_or_dash(memory_share(r) * 100, 6, " %*.1f%%");
        print_or_dash(per_query(b, (double)r->work.and_fell_to_or) * 100, 6, " %*.1f%%");
        putchar('\n');
    }
    print_gpu_calls(b);
    printf("\nus a query\n%-4s %-6s %5s %-6s %5s %8s %9s %9s", "", "op", "k", "how", "batch", "plan", "all else",
           "fixed");
    for (int s = 0; s < 4; ++s)
        printf(" %9s", query_stage_names[s]);
    for (int s = 0; s < GX_N_STEPS; ++s)
        printf(" %10s", query_step_names[s]);
    putchar('\n');
    for (size_t i = 0; i < b->n_rows; ++i) {
        const query_row *r = &b->rows[i];
        printf("%-4s %-6s %5u %-6s %5u %8.2f %9.3f %9.3f", r->engine->name, query_op_name(r->op), r->k,
               query_algorithm_name(r->algorithm), r->batch, per_query(b, r->plan_seconds) * 1e6,
               per_query(b, r->seconds) * 1e6, per_query(b, r->fixed_seconds) * 1e6);
        for (int s = 0; s < 4; ++s)
            print_or_dash(per_query(b, r->work.seconds[s]) * 1e6, 9, " %*.2f");
        for (int s = 0; s < GX_N_STEPS; ++s)
            print_or_dash(per_query(b, r->work.steps[s]) * 1e6, 10, " %*.2f");
        putchar('\n');
    }
}

static void print_csv(const query_bench *b)
{
    printf("engine,op,k,algorithm,recursion,batch,queries_per_second,mean_us");
    for (int p = 0; p < QUERY_PERCENTILES; ++p)
        printf(",p%g_us", query_percentiles[p]);
    printf(",fixed_us,postings,blocks,blocks_decoded,lookups,postings_touched,"
           "ps_a_posting_touched,bytes_read,memory_share,and_fell_to_or,parts,waits,allocations,plan_us");
    for (int s = 0; s < 4; ++s)
        printf(",%s_us", query_stage_names[s]);
    for (int s = 0; s < GX_N_STEPS; ++s)
        printf(",%s_us", query_step_names[s]);
    puts(",different");
    for (size_t i = 0; i < b->n_rows; ++i) {
        const query_row *r = &b->rows[i];
        printf("%s,%s,%u,%s,%u,%u,%.1f,%.3f", r->engine->name, query_op_name(r->op), r->k,
               query_algorithm_name(r->algorithm), r->recursion, r->batch, per_second(b, r), r->mean * 1e6);
        for (int p = 0; p < QUERY_PERCENTILES; ++p)
            r->percentiles[p] > 0 ? printf(",%.3f", r->percentiles[p] * 1e6) : putchar(',');
        printf(",%.4f,%.1f,%.2f,%.2f,%.2f,%.1f,%.2f,%.1f,%.5f,%.4f,%.2f,%.2f,%.2f,%.4f",
               per_query(b, r->fixed_seconds) * 1e6, per_query(b, (double)r->work.postings),
               per_query(b, (double)r->work.blocks), per_query(b, (double)r->work.blocks_decoded),
               per_query(b, (double)r->work.lookups), per_query(b, r->touched), ps_per_posting(r),
               per_query(b, r->bytes), memory_share(r), per_query(b, (double)r->work.and_fell_to_or),
               per_batch(b, r, r->work.parts), per_batch(b, r, r->work.waits), per_batch(b, r, r->work.allocations),
               per_query(b, r->plan_seconds) * 1e6);
        for (int s = 0; s < 4; ++s)
            printf(",%.4f", per_query(b, r->work.seconds[s]) * 1e6);
        for (int s = 0; s < GX_N_STEPS; ++s)
            printf(",%.4f", per_query(b, r->work.steps[s]) * 1e6);
        printf(",%u\n", r->different);
    }
}

void query_print_rows(const query_bench *b, query_format format)
{
    if (format == QUERY_CSV) {
        print_csv(b);
    } else {
        print_table(b);
        print_energy(b);
    }
}

/* ---- the paper's tables ---- */

static const query_row *find_row(const query_bench *b, const query_row *like, gx_op op)
{
    for (size_t i = 0; i < b->n_rows; ++i) {
        const query_row *r = &b->rows[i];
        if (r->engine == like->engine && r->op == op && r->k == like->k && r->algorithm == like->algorithm &&
            r->batch == like->batch)
            return r;
    }
    return NULL;
}

static const gx_op table2_ops[] = {GX_OP_AND, GX_OP_OR, GX_OP_AND_OR};

static json_t *table2_json(const query_bench *b)
{
    static const char *const names[] = {"and_ms", "or_ms", "and_or_ms"};
    json_t *list = json_array();
    for (size_t i = 0; i < b->n_rows; ++i) {
        const query_row *first = &b->rows[i];
        if (first->op != table2_ops[0])
            continue;
        json_t *o =
            json_pack("{s:s, s:s, s:i, s:I}", "engine", first->engine->name, "algorithm",
                      query_algorithm_name(first->algorithm), "batch", (int)first->batch, "k", (json_int_t)first->k);
        for (int k = 0; k < 3; ++k) {
            const query_row *r = find_row(b, first, table2_ops[k]);
            json_object_set_new(o, names[k], bench_json(r ? per_query(b, r->seconds) * 1e3 : 0));
        }
        json_array_append_new(list, o);
    }
    return list;
}

void query_print_table2(const query_bench *b, query_format format)
{
    if (format == QUERY_TABLE) {
        print_header(b);
        printf("\nms a query, top %u\n%-4s %-6s %5s %9s %9s %9s\n", b->k, "", "how", "batch", "AND", "OR", "AND+OR");
    } else {
        puts("engine,algorithm,batch,and_ms,or_ms,and_or_ms");
    }
    for (size_t i = 0; i < b->n_rows; ++i) {
        const query_row *first = &b->rows[i];
        if (first->op != table2_ops[0])
            continue;
        printf(format == QUERY_TABLE ? "%-4s %-6s %5u" : "%s,%s,%u", first->engine->name,
               query_algorithm_name(first->algorithm), first->batch);
        for (int o = 0; o < 3; ++o) {
            const query_row *r = find_row(b, first, table2_ops[o]);
            printf(format == QUERY_TABLE ? " %9.4f" : ",%.6f", r ? per_query(b, r->seconds) * 1e3 : 0.0);
        }
        putchar('\n');
    }
}

/* Table 3 has the rows of this operator whose steps were timed; ours has no steps. */
static bool in_table3(const query_row *r, gx_op op)
{
    return r->op == op && r->algorithm != GX_ALGORITHM_AUTO && sum_of_steps(r) > 0;
}

static const char *const table3_names[GX_N_STEPS] = {"initialization", "decompression", "intersection", "scoring",
                                                     "top_k"};

static json_t *table3_json(const query_bench *b)
{
    json_t *list = json_array();
    for (int o = 0; o < 2; ++o) {
        for (size_t i = 0; i < b->n_rows; ++i) {
            const query_row *r = &b->rows[i];
            if (!in_table3(r, table2_ops[o]))
                continue;
            json_t *x = json_pack("{s:s, s:s, s:s, s:i, s:I}", "op", query_op_name(r->op), "engine", r->engine->name,
                                  "algorithm", query_algorithm_name(r->algorithm), "batch", (int)r->batch, "k",
                                  (json_int_t)r->k);
            for (int s = 0; s < GX_N_STEPS; ++s)
                json_object_set_new(x, table3_names[s], json_real(100 * r->work.steps[s] / sum_of_steps(r)));
            json_array_append_new(list, x);
        }
    }
    return list;
}

void query_print_table3(const query_bench *b, query_format format)
{
    if (format == QUERY_TABLE) {
        print_header(b);
        printf("\n%% of the steps' time, top %u\n%-6s %-4s %-6s %5s", b->k, "op", "", "how", "batch");
    } else {
        printf("op,engine,algorithm,batch");
    }
    for (int s = 0; s < GX_N_STEPS; ++s)
        printf(format == QUERY_TABLE ? " %14s" : ",%s", table3_names[s]);
    putchar('\n');
    for (int o = 0; o < 2; ++o) {
        for (size_t i = 0; i < b->n_rows; ++i) {
            const query_row *r = &b->rows[i];
            if (!in_table3(r, table2_ops[o]))
                continue;
            printf(format == QUERY_TABLE ? "%-6s %-4s %-6s %5u" : "%s,%s,%s,%u", query_op_name(r->op), r->engine->name,
                   query_algorithm_name(r->algorithm), r->batch);
            for (int s = 0; s < GX_N_STEPS; ++s)
                printf(format == QUERY_TABLE ? " %14.1f" : ",%.2f", 100 * r->work.steps[s] / sum_of_steps(r));
            putchar('\n');
        }
    }
    if (format != QUERY_TABLE)
        return;
    bool first = true;
    for (size_t i = 0; i < b->n_rows; ++i) {
        const query_row *r = &b->rows[i];
        const double sum = r->work.seconds[0] + r->work.seconds[1] + r->work.seconds[2] + r->work.seconds[3];
        if (r->algorithm != GX_ALGORITHM_AUTO || sum <= 0)
            continue;
        if (first)
            puts("\nOurs, which decodes, looks up and scores in one search, % of its stages' time");
        first = false;
        printf("%-4s %-6s %5u:", r->engine->name, query_op_name(r->op), r->batch);
        for (int s = 0; s < 4; ++s)
            printf(" %s %.1f", query_stage_names[s], 100 * r->work.seconds[s] / sum);
        putchar('\n');
    }
}

/* ---- JSON ---- */

int query_print_json(const query_bench *b, uint32_t table)
{
    json_t *list = json_array(), *engines = json_array();
    for (uint32_t i = 0; i < b->n_engines; ++i)
        json_array_append_new(engines, json_pack("{s:s, s:s, s:f, s:I}", "kind", b->engines[i].name, "name",
                                                 gx_engine_describe(b->engines[i].en), "memory_bytes_per_second",
                                                 b->engines[i].read_speed, "searched_parts",
                                                 (json_int_t)gx_engine_n_searched(b->engines[i].en)));
    for (size_t i = 0; i < b->n_rows; ++i) {
        const query_row *r = &b->rows[i];
        json_t *latency = json_object(), *stages = json_object(), *steps = json_object();
        char name[16];
        json_object_set_new(latency, "samples", json_integer(r->n_latencies));
        json_object_set_new(latency, "mean", json_real(r->mean * 1e6));
        for (int p = 0; p < QUERY_PERCENTILES; ++p) {
            snprintf(name, sizeof name, "p%g", query_percentiles[p]);
            json_object_set_new(latency, name, bench_json(r->percentiles[p] * 1e6));
        }
        json_object_set_new(stages, "plan", json_real(per_query(b, r->plan_seconds) * 1e6));
        for (int s = 0; s < 4; ++s)
            json_object_set_new(stages, query_stage_names[s], json_real(per_query(b, r->work.seconds[s]) * 1e6));
        for (int s = 0; s < GX_N_STEPS; ++s)
            json_object_set_new(steps, query_step_names[s], json_real(per_query(b, r->work.steps[s]) * 1e6));
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:I, s:s, s:i, s:i, s:f, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, "
                      "s:f, s:f, s:f, s:o, s:o, s:i, s:o}",
                      "engine", r->engine->name, "op", query_op_name(r->op), "k", (json_int_t)r->k, "algorithm",
                      query_algorithm_name(r->algorithm), "recursion", (int)r->recursion, "batch", (int)r->batch,
                      "queries_per_second", per_second(b, r), "latency_us", latency, "fixed_us",
                      per_query(b, r->fixed_seconds) * 1e6, "postings_touched", per_query(b, r->touched),
                      "ps_a_posting_touched", ps_per_posting(r), "postings", per_query(b, (double)r->work.postings),
                      "blocks", per_query(b, (double)r->work.blocks), "blocks_decoded",
                      per_query(b, (double)r->work.blocks_decoded), "lookups", per_query(b, (double)r->work.lookups),
                      "bytes_read", per_query(b, r->bytes), "memory_share", memory_share(r), "and_fell_to_or",
                      per_query(b, (double)r->work.and_fell_to_or), "parts", per_batch(b, r, r->work.parts), "waits",
                      per_batch(b, r, r->work.waits), "allocations", per_batch(b, r, r->work.allocations), "stage_us",
                      stages, "step_us", steps, "different", (int)r->different, "joules", bench_json(r->joules)));
    }
    json_t *root = json_pack("{s:i, s:I, s:I, s:I, s:i, s:i, s:o, s:o}", "schema", 2, "documents",
                             (json_int_t)gx_index_n_docs(b->ix), "postings", (json_int_t)b->ix->n_postings, "queries",
                             (json_int_t)b->n, "runs", (int)b->runs, "pair_thresholds", (int)b->pairs, "engines",
                             engines, "rows", list);
    if (gx_index_n_parts(b->ix))
        json_object_set_new(root, "collection",
                            json_pack("{s:I, s:I}", "parts", (json_int_t)gx_index_n_parts(b->ix), "deleted_documents",
                                      (json_int_t)count_deleted(b->ix)));
    bench_put_machine(root, b->seed);
    if (table)
        json_object_set_new(root, table == 2 ? "table2" : "table3", table == 2 ? table2_json(b) : table3_json(b));
    return bench_print_json(root);
}
