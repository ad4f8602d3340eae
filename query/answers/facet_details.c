/* facet_details.c: a facet of a set: counts, and what belongs to each group beside its count. */
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/read/collection.h"
#include "query/answers/facet_asked.h"
#include "query/answers/facet_set.h"
#include "query/facet/facet_slots.h"
#include "query/facet/figures.h"

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory to count a facet");
}

/* ---- sets ---- */

uint64_t *gx_facet_words(uint64_t n_docs)
{
    return calloc(n_docs / 64 + 2, sizeof(uint64_t));
}

static const gx_index *file_of(const gx_index *ix, uint32_t part)
{
    return ix->parts ? ix->parts->parts[part].ix : ix;
}

static uint32_t n_files(const gx_index *ix)
{
    return ix->parts ? ix->parts->n : 1;
}

static gx_status open_set(gx_facet_set *s, const gx_index *ix, bool local, gx_error *err)
{
    uint32_t most = 0;
    for (uint32_t p = 0; p < n_files(ix); ++p)
        most = file_of(ix, p)->n_docs > most ? file_of(ix, p)->n_docs : most;
    *s = (gx_facet_set){.ix = ix, .local = local ? gx_facet_words(most) : NULL, .scratch = gx_facet_words(most)};
    return s->scratch && (s->local || !local) ? GX_OK : no_memory(err);
}

gx_status gx_facet_set_open(gx_facet_set *s, const gx_index *ix, const uint64_t *words, uint64_t n_matches,
                            gx_error *err)
{
    const gx_status st = open_set(s, ix, ix->parts != NULL, err);
    s->words = words;
    s->n_matches = n_matches;
    return st;
}

void gx_facet_set_close(gx_facet_set *s)
{
    free(s->local);
    free(s->scratch);
}

/* The set in file `part`. */
static const uint64_t *words_of(const gx_facet_set *s, uint32_t part)
{
    if (s->words && !s->ix->parts)
        return s->words;
    if (s->words) {
        gx_part_scatter(&s->ix->parts->parts[part], s->words, s->local);
        return s->local;
    }
    const gx_grouped_docs *l = &s->listed[part];
    memset(s->local, 0, ((size_t)file_of(s->ix, part)->n_docs / 64 + 2) * sizeof *s->local);
    for (size_t i = l->starts[s->group]; i < l->starts[s->group + 1]; ++i)
        s->local[l->docs[i] / 64] |= UINT64_C(1) << l->docs[i] % 64;
    return s->local;
}

/* ---- counts ---- */

static gx_status count_whole(gx_facet_count *c, uint64_t n_matches, gx_error *err)
{
    if (!(c->groups = malloc(sizeof *c->groups)))
        return no_memory(err);
    c->groups[0] = (gx_counted_group){0, n_matches};
    c->n_groups = 1;
    c->n_present = n_matches;
    return GX_OK;
}

static gx_status count(gx_facet_count *c, const gx_facet_set *s, uint32_t column, gx_error *err)
{
    gx_status st = GX_OK;
    if (c->facet.grouping == GX_FACET_ALL)
        return count_whole(c, s->n_matches, err);
    for (uint32_t p = 0; p < n_files(s->ix) && c->facet.grouping == GX_FACET_BINS; ++p)
        gx_facet_count_look(c, file_of(s->ix, p), column, words_of(s, p));
    for (uint32_t p = 0; p < n_files(s->ix) && c->facet.grouping == GX_FACET_QUANTILES && st == GX_OK; ++p)
        st = gx_facet_count_gather(c, file_of(s->ix, p), column, words_of(s, p), err);
    if (c->facet.grouping == GX_FACET_QUANTILES && st == GX_OK)
        st = gx_facet_count_cut(c, err);
    for (uint32_t p = 0; p < n_files(s->ix) && st == GX_OK; ++p)
        st = gx_facet_count_add(c, file_of(s->ix, p), column, words_of(s, p), s->scratch, err);
    return st == GX_OK ? gx_facet_count_end(c, err) : st;
}

/* ---- what belongs to each group ---- */

/* What the pairs of documents and groups go to. */
typedef struct details {
    gx_facet_made *made;
    const gx_facet *facet;
    gx_tally *tallies;       /* [facet->n_sums] */
    gx_grouped_docs *listed; /* [files] of an inner facet; NULL: there is none */
    gx_grouped_docs *here;   /* those of the file at hand */
} details;

static gx_status open_figures(details *d, const gx_index *ix, gx_error *err)
{
    gx_facet_made *m = d->made;
    const uint32_t n = d->facet->n_sums;
    const gx_index **files = malloc(n_files(ix) * sizeof *files);
    gx_status st = GX_OK;
    m->sums = calloc(n + 1ull, sizeof *m->sums);
    m->names = calloc(n + 1ull, sizeof(char *));
    m->percentiles = calloc(n + 1ull, sizeof(gx_value *));
    m->figures = calloc((size_t)m->shown.n * n + 1, sizeof *m->figures);
    d->tallies = calloc(n + 1ull, sizeof *d->tallies);
    if (!files || !m->sums || !m->names || !m->percentiles || !m->figures || !d->tallies)
        st = no_memory(err);
    else
        m->shown.n_sums = n;
    for (uint32_t p = 0; p < n_files(ix) && st == GX_OK; ++p)
        files[p] = file_of(ix, p);
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        uint32_t column;
        st = gx_sum_check(&m->sums[i], &column, ix, d->facet, i, err);
        if (st == GX_OK && (!(m->names[i] = strndup(m->sums[i].name, m->sums[i].name_len)) ||
                            !(m->percentiles[i] = calloc((size_t)m->shown.n * m->sums[i].n_percentiles + 1,
                                                         sizeof *m->percentiles[i]))))
            st = no_memory(err);
        if (st == GX_OK)
            st = gx_tally_open(&d->tallies[i], &m->sums[i], column, ix->columns[column].type, m->shown.n, files,
                               n_files(ix), err);
    }
    free(files);
    m->shown.figures = m->figures;
    return st;
}

static gx_status take_pairs(void *user, const uint32_t *docs, const uint32_t *slots, uint32_t n, gx_error *err)
{
    details *d = user;
    gx_grouped_docs *l = d->here;
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < d->facet->n_sums && st == GX_OK; ++i)
        st = gx_tally_add(&d->tallies[i], docs, slots, n, err);
    if (!l || st != GX_OK)
        return st;
    if (!gx_reserve(&l->docs, &l->max_docs, l->n + n, sizeof *l->docs) ||
        !gx_reserve(&l->slots, &l->max_slots, l->n + n, sizeof *l->slots))
        return no_memory(err);
    memcpy(l->docs + l->n, docs, n * sizeof *docs);
    memcpy(l->slots + l->n, slots, n * sizeof *slots);
    l->n += n;
    return GX_OK;
}

static gx_status pass(details *d, const gx_facet_set *s, const gx_facet_count *c, uint32_t column, gx_error *err)
{
    gx_slots slots;
    const bool whole = c->facet.grouping == GX_FACET_ALL;
    gx_status st = gx_slots_open(&slots, whole ? NULL : c, d->made->shown.n, s->n_matches, !s->ix->parts, err);
    for (uint32_t p = 0; p < n_files(s->ix) && st == GX_OK; ++p) {
        const gx_index *file = file_of(s->ix, p);
        for (uint32_t i = 0; i < d->facet->n_sums; ++i)
            gx_tally_file(&d->tallies[i], file);
        d->here = d->listed ? &d->listed[p] : NULL;
        st = gx_slots_each(&slots, file, column, words_of(s, p), take_pairs, d, err);
    }
    gx_slots_close(&slots);
    return st;
}

static gx_status end_figures(details *d, gx_error *err)
{
    gx_facet_made *m = d->made;
    const uint32_t n = m->shown.n_sums;
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        st = gx_tally_end(&d->tallies[i], m->figures + i, n, m->percentiles[i], err);
        for (uint32_t g = 0; g < m->shown.n && st == GX_OK; ++g) {
            gx_figures *f = &m->figures[(size_t)g * n + i];
            f->name = m->names[i];
            f->name_len = m->sums[i].name_len;
            f->asked = m->sums[i].percentiles;
        }
    }
    return st;
}

/* ---- inner facets ---- */

/* The documents of each group side by side. */
static gx_status sort_listed(gx_grouped_docs *l, uint32_t n_slots, gx_error *err)
{
    uint32_t *sorted = malloc((l->n + 1) * sizeof *sorted);
    if (!sorted || !(l->starts = calloc(n_slots + 2ull, sizeof *l->starts))) {
        free(sorted);
        return no_memory(err);
    }
    for (size_t i = 0; i < l->n; ++i)
        ++l->starts[l->slots[i] + 2];
    for (uint32_t g = 0; g < n_slots; ++g)
        l->starts[g + 1] += l->starts[g];
    /* starts[g + 1] is where the next document of group g goes, and in the end where the group ends */
    for (size_t i = 0; i < l->n; ++i)
        sorted[l->starts[l->slots[i] + 1]++] = l->docs[i];
    free(l->docs);
    l->docs = sorted;
    return GX_OK;
}

static gx_status count_inner(details *d, const gx_facet_set *s, gx_error *err)
{
    gx_facet_made *m = d->made;
    const uint32_t n = m->shown.n;
    gx_facet inner;
    gx_facet_set of;
    uint32_t column;
    gx_status st = open_set(&of, s->ix, true, err);
    m->inner = calloc(n + 1ull, sizeof *m->inner);
    m->inner_shown = calloc(n + 1ull, sizeof *m->inner_shown);
    if (st == GX_OK && (!m->inner || !m->inner_shown))
        st = no_memory(err);
    if (st == GX_OK)
        st = gx_facet_check_inner(&inner, &column, s->ix, d->facet, err);
    for (uint32_t p = 0; p < n_files(s->ix) && st == GX_OK; ++p)
        st = sort_listed(&d->listed[p], n, err);
    of.listed = d->listed;
    for (uint32_t g = 0; g < n && st == GX_OK; ++g) {
        of.group = g;
        of.n_matches = m->groups[g].count;
        st = gx_facet_make(&m->inner[g], &of, &inner, column, err);
        m->inner_shown[g] = m->inner[g].shown;
    }
    gx_facet_set_close(&of);
    if (st == GX_OK)
        m->shown.inner = m->inner_shown;
    return st;
}

static gx_status add_details(gx_facet_made *made, const gx_facet_set *s, const gx_facet *facet, uint32_t column,
                             const gx_facet_count *c, gx_error *err)
{
    details d = {.made = made, .facet = facet};
    gx_status st = GX_OK;
    if (facet->inner && !(d.listed = calloc(n_files(s->ix), sizeof *d.listed)))
        return no_memory(err);
    if (facet->n_sums)
        st = open_figures(&d, s->ix, err);
    if (st == GX_OK)
        st = pass(&d, s, c, column, err);
    if (st == GX_OK && facet->n_sums)
        st = end_figures(&d, err);
    if (st == GX_OK && facet->inner)
        st = count_inner(&d, s, err);
    for (uint32_t i = 0; i < facet->n_sums && d.tallies; ++i)
        gx_tally_close(&d.tallies[i]);
    for (uint32_t p = 0; p < n_files(s->ix) && d.listed; ++p) {
        free(d.listed[p].docs);
        free(d.listed[p].slots);
        free(d.listed[p].starts);
    }
    free(d.tallies);
    free(d.listed);
    return st;
}

gx_status gx_facet_make(gx_facet_made *made, const gx_facet_set *s, const gx_facet *facet, uint32_t column,
                        gx_error *err)
{
    const bool whole = facet->grouping == GX_FACET_ALL;
    gx_facet_count c = {.facet = *facet, .type = whole ? GX_ATTRIBUTE_INT : s->ix->columns[column].type};
    gx_status st = count(&c, s, column, err);
    if (st == GX_OK)
        st = gx_facet_show(made, &c, whole ? NULL : &s->ix->columns[column], s->n_matches, err);
    if (st == GX_OK && (facet->n_sums || facet->inner))
        st = add_details(made, s, facet, column, &c, err);
    gx_facet_count_free(&c);
    return st;
}

void gx_facet_made_free(gx_facet_made *m)
{
    for (uint32_t i = 0; i < m->shown.n_sums; ++i) {
        free(m->names[i]);
        free(m->percentiles[i]);
    }
    for (uint32_t g = 0; m->inner && g < m->shown.n; ++g)
        gx_facet_made_free(&m->inner[g]);
    free(m->groups);
    free(m->at);
    free(m->texts);
    free(m->figures);
    free(m->percentiles);
    free(m->sums);
    free(m->names);
    free(m->inner);
    free(m->inner_shown);
    free((char *)m->shown.name);
}

const gx_figures *gx_facet_figures(const gx_facet_answer *f, uint32_t g, uint32_t i)
{
    return g < f->n && i < f->n_sums ? &f->figures[(size_t)g * f->n_sums + i] : NULL;
}

const gx_facet_answer *gx_facet_inner(const gx_facet_answer *f, uint32_t g)
{
    return f->inner && g < f->n ? &f->inner[g] : NULL;
}
