#include "tools/cli/search_flags.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/lookup.h"
#include "tools/cli/progress.h"

/* The option's value on the command line, or its default; NULL: there is none. -k is --top here. */
static const char *value_of(const cli_args *a, const gx_search_option *o)
{
    const char *flag = strcmp(o->name, "k") == 0 ? "top" : o->name;
    return cli_has(a, flag) ? cli_text(a, flag) : NULL;
}

gx_query_options cli_query_options(const cli_args *a)
{
    gx_search_setup s;
    size_t n;
    const gx_search_option *options = gx_search_options(&n);
    gx_search_setup_init(&s, sizeof s);
    for (size_t i = 0; i < n; ++i) {
        const char *text = options[i].kind == GX_OPTION_TEXT ? NULL : value_of(a, &options[i]); /* they have messages */
        if (text) /* the flag has checked it */
            gx_search_setup_set(&s, options[i].name, strlen(options[i].name), text, strlen(text), NULL);
    }
    s.options.recursion = (uint32_t)cli_count(a, "recursion");
    return s.options;
}

bool cli_skips_blocks(const gx_query_options *o)
{
    return o->block_budget > 0;
}

int cli_add_approximate(gx_query_options *o, const cli_args *a)
{
    const char *text = cli_text(a, "approximate");
    gx_error err = {0};
    if (gx_approximate_read(o, text, &err))
        return cli_usage(a, "--approximate=%s: %s", text, err.text);
    if (cli_skips_blocks(o) && strcmp(cli_text(a, "engine"), "hybrid") == 0)
        return cli_usage(a, "--approximate=%s: blocks are of the CPU engine; leave out --engine=hybrid", text);
    return 0;
}

int cli_add_prior(gx_query_options *o, const cli_args *a)
{
    gx_error err = {0};
    const char *text = cli_text(a, "prior");
    if (!text)
        return 0;
    if (gx_prior_read(&o->prior, text, &err))
        return cli_usage(a, "--prior=%s: %s", text, err.text);
    return 0;
}

int cli_add_synonyms(gx_query_options *o, const cli_args *a, const gx_index *ix)
{
    static gx_synonyms *synonyms; /* as long as the program */
    gx_error err = {0};
    const char *path = cli_text(a, "synonyms");
    if (!path)
        return 0;
    gx_synonyms_close(synonyms);
    if (gx_synonyms_read(&synonyms, ix, path, &err))
        return cli_fail_error(&err);
    if (cli_verbose())
        cli_note("%s: %u words and phrases are replaced", path, gx_synonyms_n(synonyms));
    o->synonyms = synonyms;
    return 0;
}

void cli_settle_approximate(gx_query_options *o, const gx_engine *en)
{
    if (!cli_skips_blocks(o) || gx_engine_get_kind(en) != GX_ENGINE_GPU)
        return;
    o->block_budget = 0;
    cli_note("blocks of --approximate are of the CPU engine (--engine=cpu); the GPU %s",
             o->approximate > 0 ? "leaves out terms alone" : "answers exactly");
}

bool cli_is_exact(const gx_query_options *o)
{
    return !(o->approximate > 0) && !cli_skips_blocks(o);
}

void cli_default_scorer(gx_query_options *o, const cli_args *a, const gx_index *ix)
{
    gx_index_stats stats = {.size = sizeof stats};
    gx_index_get_quick_stats(ix, &stats);
    if (stats.impacts && !cli_given(a, "scorer"))
        o->preset = GX_IMPACT;
}

void cli_note_operators(const char *text, size_t len, const gx_index *ix, const gx_query_options *o)
{
    static bool told;
    size_t begin, end;
    gx_index_stats stats = {.size = sizeof stats};
    if (told || !gx_plain_operator(text, len, &begin, &end))
        return;
    gx_index_get_quick_stats(ix, &stats);
    const bool quotes = stats.positions && o->quotes == GX_QUOTES_PHRASE;
    while (quotes && text[begin] == '"') { /* a phrase */
        text += end;
        len -= end;
        if (!gx_plain_operator(text, len, &begin, &end))
            return;
    }
    told = true;
    cli_note("%.*s is searched as plain words: " CLI_PLAIN_SIGNS, end - begin < 60 ? (int)(end - begin) : 60,
             text + begin);
}

int cli_add_sdm(gx_query_options *o, const cli_args *a)
{
    gx_error err = {0};
    const char *text = cli_text(a, "sdm");
    if (!text)
        return 0;
    if (gx_sdm_read(&o->sdm, text, &err))
        return cli_usage(a, "--sdm=%s: %s", text, err.text);
    if (o->sdm.words > 0 && cli_query_kind(cli_choice(a, "syntax")) == GX_QUERY_BOOLEAN)
        return cli_usage(a, "--sdm weighs pairs of plain queries; leave out --syntax=boolean");
    if (o->sdm.words > 0 && cli_given(a, "rm3"))
        return cli_usage(a, "--sdm and --rm3: one of them");
    return 0;
}

gx_query_kind cli_query_kind(int syntax)
{
    return syntax == 1 ? GX_QUERY_BOOLEAN : GX_QUERY_TEXT;
}

bool cli_read_rm3(gx_rm3_options *out, const char *text, char *why, size_t why_len)
{
    gx_search_setup s;
    gx_error err = {0};
    gx_search_setup_init(&s, sizeof s);
    if (gx_search_setup_set(&s, "rm3", 3, text, strlen(text), &err)) {
        snprintf(why, why_len, "%.150s", err.text);
        return false;
    }
    *out = s.rm3;
    return true;
}

int cli_rm3(gx_rm3_options *out, const cli_args *a, const gx_index *ix)
{
    gx_index_stats stats = {.size = sizeof stats};
    char why[160];
    *out = (gx_rm3_options){.size = sizeof *out};
    if (!cli_given(a, "rm3"))
        return 0;
    if (!cli_read_rm3(out, cli_text(a, "rm3"), why, sizeof why))
        return cli_usage(a, "--rm3=%s: %s", cli_text(a, "rm3"), why);
    if (cli_query_kind(cli_choice(a, "syntax")) == GX_QUERY_BOOLEAN)
        return cli_usage(a, "--rm3 expands plain queries; leave out --syntax=boolean");
    gx_index_get_quick_stats(ix, &stats);
    if (!stats.texts)
        return cli_fail(GX_ENOTFOUND,
                        "--rm3: %s stores no texts, of which feedback terms are taken; build it with "
                        "--store=text",
                        a->argv[0]);
    return 0;
}

const gx_shard *cli_shard;

gx_engine_options cli_engine_options(const cli_args *a)
{
    gx_engine_options o = GX_ENGINE_OPTIONS;
    o.kind = (gx_engine_kind)cli_choice(a, "engine");
    if (o.kind > GX_ENGINE_GPU) /* hybrid: the CPU engine of both */
        o.kind = GX_ENGINE_CPU;
    o.device = (int)cli_count(a, "device");
    o.device_memory = cli_count(a, "device-memory");
    if (cli_given(a, "map-memory"))
        o.map_memory = cli_count(a, "map-memory");
    o.linger_us = (uint32_t)cli_count(a, "linger");
    o.shard = cli_shard;
    o.join = (gx_join)cli_choice(a, "join");
    return o;
}

/* The GPUs of this machine that can be used; none: the engine says why. */
static int add_all_devices(gx_engine_options *o)
{
    gx_device *all;
    uint32_t n;
    gx_error ignored;
    if (o->kind == GX_ENGINE_CPU || gx_devices(&all, &n, &ignored))
        return 0;
    for (uint32_t i = 0; i < n && o->n_devices < GX_MAX_DEVICES; ++i) {
        if (all[i].usable)
            o->devices[o->n_devices++] = all[i].number;
    }
    free(all);
    return 0;
}

int cli_add_devices(gx_engine_options *o, const cli_args *a)
{
    static const cli_flag number = {"", 0, CLI_COUNT, "", NULL, "", 0, 1023};
    const char *list = cli_text(a, "devices");
    o->spread = (gx_spread)cli_choice(a, "spread");
    if (!list && o->spread == GX_SPREAD_PARTS)
        return cli_usage(a, "--spread=parts: over which GPUs? --devices lists them");
    if (!list)
        return 0;
    if (cli_given(a, "device"))
        return cli_usage(a, "--device and --devices: one of them");
    if (strcmp(list, "all") == 0)
        return add_all_devices(o);
    for (const char *at = list; at;) {
        char part[16], why[96];
        const size_t len = strcspn(at, ",");
        double value;
        uint64_t n;
        snprintf(part, sizeof part, "%.*s", len < sizeof part ? (int)len : (int)sizeof part - 1, at);
        if (len >= sizeof part || !cli_read_number(&number, part, &value, &n, why, sizeof why))
            return cli_usage(a, "--devices=%s: it is a list of the numbers of GPUs, such as 0,1, or all", list);
        if (o->n_devices == GX_MAX_DEVICES)
            return cli_usage(a, "--devices=%s: these are more than %u GPUs", list, GX_MAX_DEVICES);
        for (uint32_t i = 0; i < o->n_devices; ++i) {
            if (o->devices[i] == (int)n)
                return cli_usage(a, "--devices=%s: GPU %d is there twice", list, (int)n);
        }
        o->devices[o->n_devices++] = (int)n;
        at = at[len] ? at + len + 1 : NULL;
    }
    return 0;
}

int cli_add_residency(gx_engine_options *o, const cli_args *a)
{
    static const cli_flag bytes = {"", 0, CLI_BYTES, "", NULL, ""}, share = {"", 0, CLI_NUMBER, "", NULL, "", 0, 100};
    const char *text = cli_text(a, "resident");
    const size_t len = strlen(text);
    char number[32], why[96];
    double value = 0;
    uint64_t n = 0;
    o->residency_policy = (gx_residency_policy)cli_choice(a, "residency-policy");
    if (strcmp(text, "auto") == 0)
        return 0;
    const bool is_share = len > 1 && text[len - 1] == '%';
    snprintf(number, sizeof number, "%.*s", (int)(is_share ? len - 1 : len), text);
    if (len >= sizeof number || !cli_read_number(is_share ? &share : &bytes, number, &value, &n, why, sizeof why))
        return cli_usage(a, "--resident=%s: it is a number of bytes, such as 20G, a share, such as 25%%, or auto",
                         text);
    if (is_share)
        o->resident_share = value / 100;
    else
        o->resident_memory = n;
    return 0;
}

int cli_warm(gx_engine *en, const cli_args *a)
{
    const char *log = cli_text(a, "warm");
    gx_error err = {0};
    uint64_t n = 0;
    if (!log)
        return 0;
    if (gx_engine_warm(en, log, NULL, &n, &err))
        return cli_fail_error(&err);
    if (cli_verbose())
        cli_note("%s: the lists of %llu queries were counted", log, (unsigned long long)n);
    return 0;
}

/* The kind of a file that is no index, and the command that reads it. NULL: unknown. */
static const char *what_it_is(const char *path)
{
    char line[4096], word[64];
    size_t n = 0, text = 0;
    FILE *f = cli_is_regular(path) && !cli_is_index(path) ? fopen(path, "rb") : NULL;
    if (f)
        n = fread(line, 1, sizeof line - 1, f);
    if (f)
        fclose(f);
    line[n] = 0;
    for (size_t i = 0; i < n; ++i)
        text += (unsigned char)line[i] >= ' ' || strchr("\t\r\n", line[i] ? line[i] : 'x');
    if (n == 0 || text < n)
        return NULL;
    if (sscanf(line, "%*s %63s %*s %*u %*f %*s", word) == 1 && strcmp(word, "Q0") == 0)
        return "a run of results; 'gpuidx eval QRELS RUN' evaluates it";
    return "a text file; 'gpuidx build' makes an index of a corpus";
}

int cli_view_fields(gx_index **ix, const cli_args *a)
{
    gx_view_options opt = GX_VIEW_OPTIONS;
    const gx_query_options of_query = cli_query_options(a);
    gx_index *view;
    gx_error err = {0};
    if (!cli_given(a, "fields"))
        return cli_given(a, "field-scoring") ? cli_fail(GX_EUSAGE, "--field-scoring needs --fields") : 0;
    opt.fields = strcmp(cli_text(a, "fields"), "all") == 0 ? NULL : cli_text(a, "fields");
    opt.preset = of_query.preset;
    opt.k1 = of_query.k1;
    opt.b = of_query.b;
    opt.scoring = (gx_field_scoring)cli_choice(a, "field-scoring");
    if (gx_index_open_view(&view, *ix, &opt, &err))
        return cli_fail_error(&err);
    gx_index_close(*ix); /* the view holds it */
    *ix = view;
    return 0;
}

int cli_open_index(gx_index **out, const cli_args *a, const char *path)
{
    static const gx_check levels[] = {GX_CHECK_STRUCTURE, GX_CHECK_CHECKSUM, GX_CHECK_FULL};
    gx_index_options options = GX_INDEX_OPTIONS;
    gx_error err = {0};
    options.check = levels[cli_choice(a, "check")];
    options.load = (gx_load)cli_choice(a, "load");
    if (!gx_index_open(out, path, &options, &err)) {
        lookup_tell_analysis(*out, path);
        return cli_has(a, "fields") && cli_has(a, "field-scoring") && cli_has(a, "prune") ? cli_view_fields(out, a) : 0;
    }
    const char *what = err.status == GX_ECORRUPT ? what_it_is(path) : NULL;
    return what ? cli_fail(err.status, "%s is no index; it is %s", path, what) : cli_fail_error(&err);
}

int cli_open_engine(gx_engine **out, const gx_index *ix, const gx_engine_options *options)
{
    gx_error err = {0};
    if (gx_engine_open(out, ix, options, &err))
        return cli_fail_error(&err);
    if (cli_verbose() && gx_engine_get_fallback(*out, &err)) /* `gpuidx devices` says so too */
        cli_note("%s; searching on the CPU", err.text);
    return 0;
}

/* Which of the flags that compare algorithms have no effect beside one another. */
static void tell_algorithms(const cli_args *a)
{
    if (!cli_has(a, "algorithm") || !cli_has(a, "prune") || !cli_has(a, "recursion"))
        return;
    const gx_query_options o = cli_query_options(a);
    const bool every = !o.prune, pmf = o.algorithm == GX_ALGORITHM_PMF;
    if (every && cli_given(a, "algorithm"))
        cli_note("--algorithm=%s means nothing beside --prune=off, which scores every posting in one way",
                 cli_text(a, "algorithm"));
    else if (o.algorithm == GX_ALGORITHM_BLOCK_MAX && o.op == GX_OP_AND)
        cli_note("--algorithm=block-max means something to OR alone; AND is answered as by auto");
    if (!cli_given(a, "recursion"))
        return;
    if (every || !pmf)
        cli_note("--recursion means something to --algorithm=pmf alone");
    else if (o.op == GX_OP_OR)
        cli_note("--recursion means something to AND alone; OR is answered by pmf as by taat");
}

void cli_tell_ignored(const cli_args *a, bool gpu)
{
    static const char *const of_gpus[] = {"device",   "devices",          "spread", "device-memory",
                                          "resident", "residency-policy", "warm",   "linger"};
    char names[160] = "";
    size_t n = 0, len = 0;
    tell_algorithms(a);
    if (gpu)
        return;
    for (size_t i = 0; i < sizeof of_gpus / sizeof *of_gpus; ++i)
        if (cli_has(a, of_gpus[i]) && cli_given(a, of_gpus[i]))
            len += (size_t)snprintf(names + len, sizeof names - len, "%s--%s", n++ ? ", " : "", of_gpus[i]);
    if (n)
        cli_note("%s mean%s something to a GPU alone, and the CPU searches", names, n == 1 ? "s" : "");
}

bool cli_gpu_failed(gx_engine *en, gx_error *why)
{
    return gx_engine_get_kind(en) == GX_ENGINE_GPU && gx_engine_get_fallback(en, why) != GX_OK;
}

int cli_precompute_pair_thresholds(gx_engine *en, const cli_args *a, const gx_query_options *options)
{
    const uint32_t n = (uint32_t)cli_count(a, "pair-thresholds");
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    gx_error err = {0};
    if (n == 0 || options->op == GX_OP_AND)
        return 0;
    const double begin = progress_clock();
    if (gx_engine_precompute_pair_thresholds(en, options, n, processors > 0 ? (uint32_t)processors : 1, &err))
        return cli_fail_error(&err);
    cli_note("pairs of %u terms, k %u: %.2f s", n, options->k, progress_clock() - begin);
    return 0;
}
