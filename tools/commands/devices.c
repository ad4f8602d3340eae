/* devices.c: `gpuidx devices`: the GPUs of this machine, and why one cannot be used. */
#include <jansson.h>
#include <stdlib.h>

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"
#include "tools/cli/progress.h"

static int print_json(const gx_device *devices, uint32_t n, const gx_error *err)
{
    json_t *list = json_array(), *root;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_device *d = &devices[i];
        json_t *o = json_pack("{s:i, s:s, s:I, s:I, s:i, s:i, s:I, s:I, s:b}", "number", d->number, "name", d->name,
                              "memory", (json_int_t)d->memory, "free_memory", (json_int_t)d->free_memory, "major",
                              d->major, "minor", d->minor, "multiprocessors", (json_int_t)d->multiprocessors,
                              "l2_bytes", (json_int_t)d->l2_bytes, "usable", (int)d->usable);
        if (!d->usable)
            json_object_set_new(o, "why", json_string(d->why));
        json_array_append_new(list, o);
    }
    root = json_pack("{s:i, s:o}", "schema", 1, "devices", list);
    if (n == 0)
        json_object_set_new(root, "why", json_string(err->text));
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    if (!text)
        return cli_fail(GX_ENOMEM, "no memory for the list of GPUs");
    puts(text);
    free(text);
    return 0;
}

static void print_human(const gx_device *devices, uint32_t n, const gx_error *err)
{
    if (n == 0)
        printf("no GPU: %s\n", err->text);
    for (uint32_t i = 0; i < n; ++i) {
        const gx_device *d = &devices[i];
        printf("GPU %d: %s, %s", d->number, d->name, show_bytes(d->memory));
        if (d->free_memory)
            printf(" (%s free)", show_bytes(d->free_memory));
        printf(", compute capability %d.%d, %u multiprocessors, %s L2\n", d->major, d->minor, d->multiprocessors,
               show_bytes(d->l2_bytes));
        if (!d->usable)
            printf("  not usable: %s\n", d->why);
    }
}

static int run(const cli_args *a)
{
    gx_device *devices = NULL;
    uint32_t n = 0, n_usable = 0;
    gx_error err = {0};
    const gx_status st = gx_devices(&devices, &n, &err);
    int code = 0;
    if (st != GX_OK && st != GX_ENOGPU)
        return cli_fail_error(&err);
    if (cli_switch(a, "json"))
        code = print_json(devices, n, &err);
    else
        print_human(devices, n, &err);
    for (uint32_t i = 0; i < n; ++i)
        n_usable += devices[i].usable;
    free(devices);
    return code == 0 && n_usable == 0 && cli_switch(a, "require") ? gx_status_exit(GX_ENOGPU) : code;
}

static const cli_flag flags[] = {
    {"json", 0, CLI_SWITCH, NULL, NULL, "print one JSON object instead, for programs; its \"schema\" is 1"},
    {"require", 0, CLI_SWITCH, NULL, NULL,
     "end with exit code 7 where no GPU can be used, so that a script can test for one"},
    {NULL},
};

static const cli_section examples[] = {
    {"gpuidx devices", "What `query --engine=gpu` and `replay --devices` can choose from."},
    {NULL},
};

const cli_command cmd_devices = {
    .name = "devices",
    .summary = "list the GPUs, and say why one cannot be used",
    .synopsis = "[OPTIONS]",
    .description =
        "Lists the GPUs that CUDA sees: for each the number by which `query --device` chooses it, its name, its "
        "memory, and whether gpuidx can use it, or why not. Where there is none, the reason is printed, and the "
        "exit code is 0 all the same unless `--require` is given: everything works on the CPU, too.",
    .examples = examples,
    .flags = flags,
    .max_args = 0,
    .run = run,
};
