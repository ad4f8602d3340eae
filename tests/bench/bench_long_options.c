#include "tests/bench/bench_long_options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

const char *const algorithm_names[] = {"auto", "pmf", "taat", "block-max", "exhaustive"};

static numbers parse_numbers(const char *text)
{
    numbers v = {0};
    for (char *end; v.n < MAX_VALUES && *text; text = *end ? end + 1 : end)
        v.of[v.n++] = strtoull(text, &end, 0);
    return v;
}

static void parse_settings(options *o, char *text)
{
    for (char *next; o->n_approximate < MAX_SETTINGS && (next = strsep(&text, ";"));)
        o->approximate[o->n_approximate++] = next;
}

static gx_sparse_shape parse_shape(const char *name)
{
    return strcmp(name, "unicoil") == 0          ? GX_SPARSE_UNICOIL
           : strcmp(name, "inference-free") == 0 ? GX_SPARSE_INFERENCE_FREE
                                                 : GX_SPARSE_SPLADE;
}

static numbers parse_algorithms(const char *text)
{
    numbers v = {0};
    for (; text && *text && v.n < MAX_VALUES; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
        v.of[v.n++] = *text == 'b' ? GX_ALGORITHM_BLOCK_MAX : *text == 'e' ? EXHAUSTIVE : GX_ALGORITHM_AUTO;
    return v;
}

/* Whether an option is a plain number, which it stores: the names are those of `longs`. */
static bool parse_number(options *o, int c, uint64_t n)
{
    uint32_t *const to = c == 'd'   ? &o->sparse.n_docs
                         : c == 'n' ? &o->times
                         : c == 'q' ? &o->queries
                         : c == 'r' ? &o->runs
                         : c == 'j' ? &o->sessions
                         : c == 'c' ? &o->check
                         : c == 'o' ? &o->alone
                         : c == 'b' ? &o->scatter_add
                         : c == 'G' ? &o->groups
                                    : NULL;
    const uint64_t least = c == 'n' || c == 'r' || c == 'G', most = c == 'j' ? 64 : UINT32_MAX;
    if (to)
        *to = (uint32_t)(n < least ? least : n > most ? most : n);
    return to;
}

static void parse_option(options *o, int c)
{
    const uint64_t n = optarg ? strtoull(optarg, NULL, 0) : 0;
    if (parse_number(o, c, n))
        return;
    switch (c) {
    case 's':
        o->sparse.shape = parse_shape(optarg);
        break;
    case 'x':
        o->sparse.by_place = false;
        break;
    case 'e':
        o->sparse.seed = n;
        break;
    case 'i':
        o->index = optarg;
        break;
    case 'l':
        o->log = optarg;
        break;
    case 't':
        o->terms = parse_numbers(optarg);
        break;
    case 'k':
        o->k = parse_numbers(optarg);
        break;
    case 'a':
        o->algorithms = parse_algorithms(optarg);
        break;
    case 'm':
        o->map_memory = parse_numbers(optarg);
        break;
    case 'z':
        o->sparse.codec = gx_codec_by_name(optarg);
        break;
    case 'g':
        o->on_cpu = strcmp(optarg, "cpu") == 0;
        break;
    case 'p':
        parse_settings(o, optarg);
        break;
    default:
        exit(2);
    }
}

options parse_options(int argc, char **argv)
{
    static const struct option longs[] = {
        {"shape", 1, 0, 's'}, {"docs", 1, 0, 'd'},        {"scattered", 0, 0, 'x'},
        {"seed", 1, 0, 'e'},  {"index", 1, 0, 'i'},       {"log", 1, 0, 'l'},
        {"times", 1, 0, 'n'}, {"queries", 1, 0, 'q'},     {"terms", 1, 0, 't'},
        {"k", 1, 0, 'k'},     {"algorithm", 1, 0, 'a'},   {"groups", 1, 0, 'G'},
        {"runs", 1, 0, 'r'},  {"sessions", 1, 0, 'j'},    {"check", 1, 0, 'c'},
        {"alone", 1, 0, 'o'}, {"scatter-add", 1, 0, 'b'}, {"map-memory", 1, 0, 'm'},
        {"codec", 1, 0, 'z'}, {"engine", 1, 0, 'g'},      {"approximate", 1, 0, 'p'},
        {0, 0, 0, 0},
    };
    options o = {.sparse = {GX_SPARSE_SPLADE, 1000000, 1, true, gx_codec_by_name("gpubp128"), 0},
                 .times = 1,
                 .queries = 1024,
                 .runs = 5,
                 .check = 64,
                 .groups = 1,
                 .terms = {1, {0}},
                 .k = {2, {10, 1000}},
                 .algorithms = {1, {GX_ALGORITHM_AUTO}},
                 .map_memory = {1, {UINT64_MAX}}};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;)
        parse_option(&o, c);
    return o;
}
