/* profile.c: a cost model as a JSON file:
 *
 *   {"schema": 3, "gpuidx": "0.1.0", "unit": "ns",
 *    "models": {"cpu": [{"leaf": 0, "sqrt(sum)": 12.5, ...}, ...], "gpu_alone": [...], ...}}
 *
 * Weights that are 0 are left out, and so are leaves of such weights alone.
 */
#include "query/schedule/cost_model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/json_text.h"
#include "engine/status.h"

#define SCHEMA 3

static const char *const kind_names[GX_N_COST_KINDS] = {"cpu", "gpu_alone", "gpu_batch"};

const char *gx_cost_kind_name(gx_cost_kind kind)
{
    return (unsigned)kind < GX_N_COST_KINDS ? kind_names[kind] : NULL;
}

static json_t *leaf_json(gx_cost_kind kind, uint32_t leaf, const double *w)
{
    json_t *o = NULL;
    for (uint32_t i = 0; gx_cost_term_name(kind, i); ++i) {
        if (w[i] == 0)
            continue;
        if (!o && !(o = json_pack("{s:i}", "leaf", (int)leaf)))
            return NULL;
        json_object_set_new(o, gx_cost_term_name(kind, i), json_real(w[i]));
    }
    return o;
}

gx_status gx_cost_profile_write(const gx_cost_profile *p, const char *path, bool force, gx_error *err)
{
    json_t *root = json_pack("{s:i, s:s, s:s, s:{}}", "schema", SCHEMA, "gpuidx", gx_version(), "unit", "ns", "models");
    for (int kind = 0; kind < GX_N_COST_KINDS; ++kind) {
        json_t *leaves = p->measured[kind] ? json_array() : NULL;
        for (uint32_t leaf = 0; leaves && leaf < GX_COST_LEAVES; ++leaf) {
            json_t *o = leaf_json((gx_cost_kind)kind, leaf, p->weights[kind][leaf]);
            if (o)
                json_array_append_new(leaves, o);
        }
        if (leaves)
            json_object_set_new(json_object_get(root, "models"), kind_names[kind], leaves);
    }
    char *text = root ? gx_json_dump(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    if (!text)
        return gx_fail(err, GX_ENOMEM, "no memory for a profile");
    const gx_status st = gx_write_file(path, text, strlen(text), force, err);
    free(text);
    return st;
}

static gx_status bad(const char *path, const char *why, gx_error *err)
{
    return gx_fail(err, GX_EINPUT, "%s: %s; make it anew with gpuidx calibrate", path, why);
}

static gx_status read_leaf(double weights[GX_COST_LEAVES][GX_COST_TERMS], gx_cost_kind kind, const json_t *o,
                           const char *path, gx_error *err)
{
    const json_t *number = json_object_get(o, "leaf");
    size_t n_known = 1;
    const json_int_t leaf = json_integer_value(number);
    if (!json_is_integer(number) || leaf < 0 || leaf >= GX_COST_LEAVES)
        return bad(path, "a model has no number of a leaf", err);
    for (uint32_t i = 0; gx_cost_term_name(kind, i); ++i) {
        const json_t *w = json_object_get(o, gx_cost_term_name(kind, i));
        n_known += w != NULL;
        weights[leaf][i] = w ? json_number_value(w) : 0;
        if (w && (!json_is_number(w) || !isfinite(weights[leaf][i])))
            return bad(path, "a weight is no number", err);
    }
    return n_known == json_object_size(o) ? GX_OK : bad(path, "a model has a weight of no known name", err);
}

static gx_status read_root(gx_cost_profile *p, const json_t *root, const char *path, gx_error *err)
{
    const json_t *models = json_object_get(root, "models");
    gx_status st = GX_OK;
    if (json_integer_value(json_object_get(root, "schema")) != SCHEMA || !json_is_object(models))
        return bad(path, "it is no profile of this version", err);
    for (int kind = 0; kind < GX_N_COST_KINDS && st == GX_OK; ++kind) {
        const json_t *leaves = json_object_get(models, kind_names[kind]);
        if (!leaves)
            continue;
        if (!json_is_array(leaves))
            return bad(path, "the models of an engine are no array", err);
        memset(p->weights[kind], 0, sizeof p->weights[kind]);
        p->measured[kind] = true;
        for (size_t i = 0; i < json_array_size(leaves) && st == GX_OK; ++i)
            st = read_leaf(p->weights[kind], (gx_cost_kind)kind, json_array_get(leaves, i), path, err);
    }
    return st;
}

gx_status gx_cost_profile_read(gx_cost_profile *out, const char *path, gx_error *err)
{
    json_error_t why;
    FILE *f = fopen(path, "rb");
    if (!f)
        return gx_fail(err, gx_status_of_errno(errno), "cannot open %s: %s", path, strerror(errno));
    json_t *root = gx_json_load_file(f, 0, &why);
    fclose(f);
    if (!root)
        return gx_fail(err, GX_EINPUT, "%s:%d: %s; make it anew with gpuidx calibrate", path, why.line, why.text);
    gx_cost_profile *p = malloc(sizeof *p);
    gx_status st = GX_OK;
    if (!p) {
        st = gx_fail(err, GX_ENOMEM, "no memory for a profile");
    } else {
        gx_cost_profile_init(p);
        st = read_root(p, root, path, err);
        if (st == GX_OK)
            *out = *p;
    }
    free(p);
    json_decref(root);
    return st;
}

/* ---- the library's own ---- */

/* A weight of the library's own profile, the same in all leaves of an operator: rounded from fits to
 * Terabyte-05 on abstracts of arXiv, of one NVIDIA H200 and a core of its host; of batches, of an H100. Lists that are
 * not resident are not fitted, but follow from PCIe (query/exec/MEASURED.md, "PCIe is the roof"): 16 us more for a
 * query of 5 MB, most of which is not read. */
#define MISSING_NS 0.003
typedef struct own_weight {
    gx_cost_kind kind;
    gx_op op;
    const char *term;
    double ns;
} own_weight;

static const own_weight own_weights[] = {
    {GX_COST_CPU, GX_OP_OR, "sqrt(shortest)", 14.7},
    {GX_COST_CPU, GX_OP_OR, "sqrt(sum)", 6.9},
    {GX_COST_CPU, GX_OP_OR, "terms", 517},
    {GX_COST_CPU, GX_OP_OR, "min(k, sum)", 36.2},
    {GX_COST_CPU, GX_OP_AND, "constant", 227},
    {GX_COST_CPU, GX_OP_AND, "sqrt(shortest)", 48.4},
    {GX_COST_CPU, GX_OP_AND, "sqrt(second)", 1.2},
    {GX_COST_CPU, GX_OP_AND, "terms", 47.8},
    {GX_COST_CPU, GX_OP_AND, "sqrt(min(k, sum))", 25.5},
    {GX_COST_GPU_ALONE, GX_OP_OR, "sqrt(second)", 0.6},
    {GX_COST_GPU_ALONE, GX_OP_OR, "terms", 2533},
    {GX_COST_GPU_ALONE, GX_OP_OR, "sqrt(min(k, sum))", 3513},
    {GX_COST_GPU_ALONE, GX_OP_OR, "min(k, sum)", 39.6},
    {GX_COST_GPU_ALONE, GX_OP_OR, "bytes not resident", MISSING_NS},
    {GX_COST_GPU_ALONE, GX_OP_AND, "constant", 4503},
    {GX_COST_GPU_ALONE, GX_OP_AND, "sqrt(shortest)", 58.8},
    {GX_COST_GPU_ALONE, GX_OP_AND, "sqrt(second)", 6.4},
    {GX_COST_GPU_ALONE, GX_OP_AND, "sqrt(min(k, sum))", 989},
    {GX_COST_GPU_ALONE, GX_OP_AND, "bytes not resident", MISSING_NS},
    {GX_COST_GPU_BATCH, GX_OP_OR, "queries of 1 list", 300},
    {GX_COST_GPU_BATCH, GX_OP_OR, "queries of 2 to 6 lists", 1400},
    {GX_COST_GPU_BATCH, GX_OP_OR, "queries of 7 lists", 20000},
    {GX_COST_GPU_BATCH, GX_OP_OR, "most alone of 7 lists", 1.2},
    {GX_COST_GPU_BATCH, GX_OP_OR, "most alone", 0.6},
    {GX_COST_GPU_BATCH, GX_OP_OR, "norm of alone", 0.5},
    {GX_COST_GPU_BATCH, GX_OP_OR, "all bytes not resident", MISSING_NS},
    {GX_COST_GPU_BATCH, GX_OP_AND, "queries of 1 list", 300},
    {GX_COST_GPU_BATCH, GX_OP_AND, "most alone of 1 list", 0.3},
    {GX_COST_GPU_BATCH, GX_OP_AND, "queries of 2 to 6 lists", 200},
    {GX_COST_GPU_BATCH, GX_OP_AND, "queries of 7 lists", 10000},
    {GX_COST_GPU_BATCH, GX_OP_AND, "most alone", 0.6},
    {GX_COST_GPU_BATCH, GX_OP_AND, "batch", 3000},
    {GX_COST_GPU_BATCH, GX_OP_AND, "sqrt(batch)", 3800},
    {GX_COST_GPU_BATCH, GX_OP_AND, "all bytes not resident", MISSING_NS},
};

static uint32_t term_number(gx_cost_kind kind, const char *name)
{
    uint32_t i = 0;
    while (strcmp(gx_cost_term_name(kind, i), name) != 0)
        ++i;
    return i;
}

void gx_cost_profile_init(gx_cost_profile *p)
{
    memset(p, 0, sizeof *p);
    for (uint32_t leaf = 0; leaf < GX_COST_LEAVES; ++leaf) {
        const gx_op op = leaf / (GX_COST_LEAVES / 3) == GX_OP_AND ? GX_OP_AND : GX_OP_OR; /* AND-then-OR: as OR */
        for (size_t i = 0; i < sizeof own_weights / sizeof *own_weights; ++i) {
            const own_weight *w = &own_weights[i];
            if (w->op == op)
                p->weights[w->kind][leaf][term_number(w->kind, w->term)] = w->ns;
        }
    }
}
