/* field_view.c: views of fields (index/fields/view.h): read from text, opened on a file or each part of a collection.
 */
#include "index/fields/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "engine/text/c_locale.h"
#include "engine/text/edit_distance.h"
#include "index/read/collection.h"
#include "query/phrase/field_phrases.h"
#include "query/score/bm25.h"

#define MAX_WEIGHT 1e6

void gx_view_options_init(gx_view_options *o, size_t size)
{
    const gx_view_options defaults = GX_VIEW_OPTIONS;
    gx_sized_init(o, size, &defaults, sizeof defaults);
}

const char *gx_index_field(const gx_index *ix, uint32_t i, uint64_t *n_tokens)
{
    if (!ix->fields || i >= ix->fields->n)
        return NULL;
    if (n_tokens)
        *n_tokens = ix->fields->n_tokens[i];
    return ix->fields->names[i];
}

gx_status gx_index_field_dfs(const gx_index *ix, const char *term, size_t len, uint64_t *dfs, gx_error *err)
{
    gx_view_counts *counts;
    gx_clear_error(err);
    if (!ix->fields)
        return gx_fail(err, GX_EUSAGE, "%s has no fields", ix->path);
    gx_status st = gx_view_counts_open(&counts, ix, err);
    if (st != GX_OK)
        return st;
    st = gx_view_counts_get(counts, term, len, dfs);
    gx_view_counts_close(counts);
    return st == GX_OK ? st : gx_fail(err, st, "%s: %s", ix->path, gx_status_name(st));
}

static const char *const scorings[GX_N_FIELD_SCORINGS] = {"bm25f", "best", "sum"};

const char *gx_field_scoring_name(gx_field_scoring s)
{
    return (unsigned)s < GX_N_FIELD_SCORINGS ? scorings[s] : "?";
}

bool gx_field_scoring_find(gx_field_scoring *out, const char *name)
{
    for (int i = 0; i < GX_N_FIELD_SCORINGS; ++i)
        if (strcmp(scorings[i], name) == 0) {
            *out = (gx_field_scoring)i;
            return true;
        }
    return false;
}

/* ---- "title^3,text:b=0.4" ---- */

/* What is asked of each field. */
typedef struct wishes {
    bool used[GX_MAX_FIELDS];
    double weight[GX_MAX_FIELDS], b[GX_MAX_FIELDS];
} wishes;

static gx_status fail_name(const gx_index *ix, const char *name, size_t len, gx_error *err)
{
    const int shown = len < 80 ? (int)len : 80;
    uint32_t best = 0, least = UINT32_MAX;
    for (uint32_t f = 0; f < ix->fields->n; ++f) {
        const char *known = ix->fields->names[f];
        const uint32_t d = gx_edit_distance(name, len < 64 ? len : 64, known, strlen(known));
        if (d < least) {
            least = d;
            best = f;
        }
    }
    return gx_fail(err, GX_EUSAGE, "fields: %s has no field '%.*s'; the nearest is %s", ix->path, shown, name,
                   ix->fields->names[best]);
}

/* The number that begins at *p and is to end where one of `ends` does, or the text. */
static gx_status read_number(double *out, const char **p, const char *what, double most, const char *field, size_t len,
                             gx_error *err)
{
    const size_t n = strcspn(*p, "^:,");
    char text[40], *end = text;
    snprintf(text, sizeof text, "%.*s", (int)(n < 39 ? n : 39), *p);
    const bool plain = n && n < 39 && strspn(text, "0123456789.eE+-") == n;
    if (plain)
        *out = gx_strtod(text, &end);
    if (!plain || *end || !isfinite(*out) || *out < 0 || *out > most || (*out == 0 && signbit(*out)))
        return gx_fail(err, GX_EUSAGE, "fields: the %s of %.*s is '%s'; it must be a number from 0 to %.0f", what,
                       len < 80 ? (int)len : 80, field, text, most);
    *p += n;
    return GX_OK;
}

static gx_status read_field(wishes *w, const gx_index *ix, const char **p, gx_error *err)
{
    const char *const name = *p;
    const size_t len = strcspn(name, "^:,");
    const uint32_t f = gx_fields_find(ix->fields, name, len);
    gx_status st = GX_OK;
    if (f == UINT32_MAX)
        return len ? fail_name(ix, name, len, err) : gx_fail(err, GX_EUSAGE, "fields: a name is missing");
    if (w->used[f])
        return gx_fail(err, GX_EUSAGE, "fields: %s is named twice", ix->fields->names[f]);
    w->used[f] = true;
    *p += len;
    if (**p == '^') {
        ++*p;
        st = read_number(&w->weight[f], p, "weight", MAX_WEIGHT, name, len, err);
    }
    if (st == GX_OK && **p == ':') {
        if (strncmp(*p, ":b=", 3) != 0)
            return gx_fail(err, GX_EUSAGE, "fields: behind %s stands '%.40s', not :b=NUMBER", ix->fields->names[f], *p);
        *p += 3;
        st = read_number(&w->b[f], p, "b", 1, name, len, err);
    }
    if (st == GX_OK && **p && **p != ',')
        return gx_fail(err, GX_EUSAGE, "fields: behind %s stands '%.40s'; write NAME^WEIGHT:b=B", ix->fields->names[f],
                       *p);
    return st;
}

static gx_status read_wishes(wishes *w, const gx_index *ix, const char *text, double b, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t f = 0; f < ix->fields->n; ++f) {
        w->used[f] = !text;
        w->weight[f] = 1;
        w->b[f] = b;
    }
    for (const char *p = text; p && st == GX_OK;) {
        st = read_field(w, ix, &p, err);
        p = st == GX_OK && *p == ',' ? p + 1 : NULL;
    }
    return st;
}

static gx_status make_profile(gx_view_profile *p, const gx_index *ix, const gx_view_options *o, gx_error *err)
{
    const gx_preset_info *preset = (unsigned)o->preset < GX_N_PRESETS ? gx_preset_get(o->preset) : NULL;
    wishes w;
    if (!ix->fields)
        return gx_fail(err, GX_EUSAGE, "%s has no fields; build it with --field", ix->path);
    if (!preset || preset->linear || preset->lossy)
        return gx_fail(err, GX_EUSAGE, "fields are weighed by a BM25 scorer with exact lengths, not %s",
                       gx_preset_name(o->preset));
    if ((unsigned)o->scoring >= GX_N_FIELD_SCORINGS)
        return gx_fail(err, GX_EUSAGE, "field scoring %d does not exist; it is bm25f, best or sum", (int)o->scoring);
    const double k1 = isnan(o->k1) ? preset->k1 : o->k1, b = isnan(o->b) ? preset->b : o->b;
    if (!isfinite(k1) || k1 < 0)
        return gx_fail(err, GX_EUSAGE, "k1 is %g; it must be a finite number of at least 0", k1);
    if (!(b >= 0 && b <= 1))
        return gx_fail(err, GX_EUSAGE, "b is %g; it must lie between 0 and 1", b);
    const gx_status st = read_wishes(&w, ix, o->fields, b, err);
    if (st != GX_OK)
        return st;
    const double n_docs = (double)gx_index_n_docs(ix);
    *p = (gx_view_profile){.k1 = (float)k1,
                           .b = b,
                           .scoring = o->scoring,
                           .preset = o->preset,
                           .idf = preset->idf,
                           .times = preset->times_k1 ? (double)(float)k1 + 1 : 1,
                           .n_docs = n_docs,
                           .find = gx_field_phrase_find};
    for (uint32_t f = 0; f < ix->fields->n; ++f) {
        const double tokens = (double)ix->fields->n_tokens[f], avg = tokens > 0 ? tokens / n_docs : 1;
        p->fields[f] =
            (gx_field_norm){w.used[f], (float)w.weight[f], (float)(1 - w.b[f]), (float)(w.b[f] / avg), w.b[f], avg};
    }
    return GX_OK;
}

/* ---- views ---- */

static gx_status view_part(gx_part *out, const gx_part *of, const gx_view_profile *p, gx_view_counts *counts,
                           gx_error *err)
{
    *out = (gx_part){0};
    const gx_status st = gx_view_open(&out->ix, of->ix, p, of->deletes, counts, err);
    if (st == GX_OK && of->deletes)
        out->deletes = gx_deletes_share(gx_view_deletes(out->ix));
    return st;
}

static gx_status view_collection(gx_index **out, const gx_index *ix, const gx_view_profile *p, gx_view_counts *counts,
                                 gx_error *err)
{
    const uint32_t n = ix->parts->n;
    gx_part *parts = calloc(n, sizeof *parts);
    if (!parts)
        return gx_fail(err, GX_ENOMEM, "no memory for a view of %u parts", n);
    gx_status st = GX_OK;
    uint32_t opened = 0;
    for (; opened < n && st == GX_OK; ++opened)
        st = view_part(&parts[opened], &ix->parts->parts[opened], p, counts, err);
    if (st == GX_OK)
        st = gx_collection_of_joined(out, ix, parts, n, err);
    else
        for (uint32_t i = 0; i < opened; ++i) {
            gx_deletes_close(parts[i].deletes);
            gx_index_close(parts[i].ix);
        }
    if (st != GX_OK && !*out)
        return st;
    (*out)->impact_unit = GX_VIEW_UNIT;
    (*out)->parts->checksum = ix->parts->checksum;
    memcpy((*out)->parts->uuid, ix->parts->uuid, sizeof ix->parts->uuid);
    return st;
}

gx_status gx_index_open_view(gx_index **out, gx_index *ix, const gx_view_options *opt, gx_error *err)
{
    gx_view_options o = GX_VIEW_OPTIONS;
    gx_view_profile p;
    *out = NULL;
    gx_clear_error(err);
    gx_status st = gx_sized_read(&o, sizeof o, opt, GX_SIZE_THROUGH(gx_view_options, b), "gx_view_options", err);
    if (st == GX_OK && gx_view_of(ix))
        st = gx_fail(err, GX_EUSAGE, "%s is a view of fields already", ix->path);
    if (st == GX_OK)
        st = make_profile(&p, ix, &o, err);
    if (st != GX_OK)
        return st;
    gx_view_counts *counts = NULL;
    if (p.scoring != GX_FIELDS_BM25F)
        st = gx_view_counts_open(&counts, ix, err);
    if (st == GX_OK)
        st = ix->parts ? view_collection(out, ix, &p, counts, err) : gx_view_open(out, ix, &p, NULL, counts, err);
    gx_view_counts_close(counts);
    return st;
}
