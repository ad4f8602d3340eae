#include "tools/cli/hybrid.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/profile.h"

bool hybrid_is_asked(const cli_args *a)
{
    return strcmp(cli_text(a, "engine"), "hybrid") == 0;
}

static void read_flags(gx_service_options *o, const cli_args *a)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    o->cpu_threads = processors > 4 ? (uint32_t)processors / 4 : 1;
    if (!cli_has(a, "cpu-threads"))
        return;
    if (cli_count(a, "cpu-threads"))
        o->cpu_threads = (uint32_t)cli_count(a, "cpu-threads");
    o->gpu_threads = (uint32_t)cli_count(a, "gpu-threads");
    o->batch = (uint32_t)cli_count(a, "gpu-batch");
    o->batch_seconds = 1e-6 * cli_number(a, "batch-time");
    o->decisions = cli_text(a, "decisions");
    o->force = cli_has(a, "force") && cli_switch(a, "force");
    o->hang = cli_number(a, "gpu-timeout");
}

int hybrid_open(hybrid *h, const cli_args *a, const char *index_path, const gx_index *ix, gx_engine *cpu)
{
    gx_engine_options engine = cli_engine_options(a);
    gx_error err = {0};
    char *where = NULL;
    *h = (hybrid){.profile = malloc(sizeof *h->profile)};
    if (!h->profile)
        return cli_fail(GX_ENOMEM, "no memory for a profile");
    gx_service_options_init(&h->options, sizeof h->options);
    engine.kind = GX_ENGINE_GPU;
    int refused = cli_add_devices(&engine, a);
    if (refused || (refused = cli_add_residency(&engine, a)))
        return refused;
    if (gx_engine_open(&h->gpu, ix, &engine, &err))
        cli_note("the CPU answers all queries: %s", err.text);
    if (h->gpu && (refused = cli_warm(h->gpu, a)))
        return refused;
    const int code =
        profile_read(h->profile, &where, cli_has(a, "cpu-threads") ? cli_text(a, "profile") : NULL, index_path, ix);
    if (where && cli_verbose())
        cli_note("costs of queries are those of %s", where);
    free(where);
    read_flags(&h->options, a);
    h->options.cpu = cpu;
    h->options.gpu = h->gpu;
    h->options.profile = h->profile;
    return code;
}

void hybrid_close(hybrid *h)
{
    gx_engine_close(h->gpu);
    free(h->profile);
    *h = (hybrid){0};
}
