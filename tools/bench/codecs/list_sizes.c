#include "tools/bench/codecs/list_sizes.h"

#include <stdlib.h>

#include "codecs/decode.h"
#include "engine/status.h"
#include "tools/bench/codecs/size_models.h"
#include "tools/bench/common.h"

static double *add_row(sizes *s, const char *form)
{
    sizes_row *row = &s->rows[s->n_rows++];
    snprintf(row->form, sizeof row->form, "%s", form);
    row->bits = 0;
    return &row->bits;
}

/* What a list is packed into. */
typedef struct space {
    uint32_t *gaps, *heads, *words, *ends;
} space;

static uint64_t blocks_of(const gx_codec *c, uint64_t n)
{
    return (n + c->block_len - 1) / c->block_len;
}

/* Bits of a list's gaps in the codec's blocks. */
static double packed_bits(const gx_codec *c, const space *x, uint64_t n)
{
    const uint8_t param = c->param ? c->param(x->gaps, n) : 0;
    return 32.0 * (double)gx_pack_list(c, param, x->gaps, n, x->words, x->ends);
}

/* ---- Figure 3 of Ding et al. ---- */

/* d-gaps less one, as an index codes them: the first docid, then how many docids lie between two. */
static void to_gaps(const uint32_t *docids, uint64_t n, uint32_t *gaps)
{
    for (uint64_t i = 0; i < n; ++i)
        gaps[i] = i ? docids[i] - docids[i - 1] - 1 : docids[0];
}

static bool count_recursion(sizes_row *rows, const space *x, const uint32_t *docids, uint64_t n)
{
    to_gaps(docids, n, x->gaps);
    for (uint32_t levels = 0; levels < SIZE_LEVELS; ++levels) {
        const uint64_t bits = size_pfordelta_whole(x->gaps, n, levels);
        if (bits == UINT64_MAX)
            return false;
        rows[levels].bits += (double)bits;
    }
    rows[SIZE_LEVELS].bits += (double)size_pfordelta_blocks(x->gaps, n);
    rows[SIZE_LEVELS + 1].bits += (double)size_rice(x->gaps, n);
    rows[SIZE_LEVELS + 2].bits += packed_bits(&gx_codec_pfordelta, x, n);
    rows[SIZE_LEVELS + 3].bits += packed_bits(&gx_codec_rice, x, n);
    return true;
}

static void name_recursion(sizes *s)
{
    for (uint32_t levels = 0; levels < SIZE_LEVELS; ++levels) {
        char form[64];
        snprintf(form, sizeof form, "PForDelta, whole lists, %u level%s", levels, levels == 1 ? "" : "s");
        add_row(s, form);
    }
    add_row(s, "PForDelta, a width for each block");
    add_row(s, "Rice, whole lists");
    add_row(s, "PForDelta of an index, without ends");
    add_row(s, "Rice of an index, without ends");
}

/* ---- Elias-Fano ---- */

static void name_eliasfano(sizes *s)
{
    add_row(s, "whole lists");
    add_row(s, "whole lists with pointers to skip by");
    add_row(s, "blocks of an index");
    add_row(s, "where blocks end");
    add_row(s, "heads of blocks");
    add_row(s, "blocks with both");
}

static void count_eliasfano(sizes_row *rows, const space *x, const uint32_t *docids, uint64_t n)
{
    const gx_codec *c = &gx_codec_ef128;
    const uint64_t universe = docids[n - 1] + 1ull, whole = size_eliasfano(n, universe);
    const double of_blocks = 32.0 * (double)blocks_of(c, n);
    gx_docids_to_gaps(docids, n, c->block_len, x->gaps, x->heads);
    const double payload = packed_bits(c, x, n);
    rows[0].bits += (double)whole;
    rows[1].bits += (double)(whole + size_eliasfano_pointers(n, universe));
    rows[2].bits += payload;
    rows[3].bits += of_blocks;
    rows[4].bits += of_blocks;
    rows[5].bits += payload + 2 * of_blocks;
}

/* ---- both ---- */

gx_status sizes_count(sizes *out, sizes_figure figure, const gx_bench_lists *l, gx_error *err)
{
    uint64_t longest = 0;
    bool good = true;
    *out = (sizes){.n = l->begins[l->n_lists]};
    for (uint32_t i = 0; i < l->n_lists; ++i) {
        const uint64_t n = l->begins[i + 1] - l->begins[i];
        longest = n > longest ? n : longest;
    }
    uint64_t words = gx_pack_list_words(&gx_codec_ef128, longest),
             of_rice = gx_pack_list_words(&gx_codec_rice, longest);
    words = of_rice > words ? of_rice : words;
    of_rice = gx_pack_list_words(&gx_codec_pfordelta, longest);
    words = of_rice > words ? of_rice : words;
    const uint64_t n_blocks = blocks_of(&gx_codec_ef128, longest) + 1;
    space x = {malloc((longest + 1) * 4), malloc(n_blocks * 4), malloc(words * 4 + GX_READ_SLACK),
               malloc(n_blocks * 4)};
    good = x.gaps && x.heads && x.words && x.ends;
    figure == SIZES_RECURSION ? name_recursion(out) : name_eliasfano(out);
    for (uint32_t i = 0; i < l->n_lists && good; ++i) {
        const uint32_t *docids = l->values + l->begins[i];
        const uint64_t n = l->begins[i + 1] - l->begins[i];
        if (figure == SIZES_RECURSION)
            good = count_recursion(out->rows, &x, docids, n);
        else
            count_eliasfano(out->rows, &x, docids, n);
    }
    for (uint32_t i = 0; i < out->n_rows; ++i)
        out->rows[i].bits /= (double)out->n;
    free(x.gaps);
    free(x.heads);
    free(x.words);
    free(x.ends);
    return good ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for lists of %llu docids", (unsigned long long)longest);
}

int sizes_print(const sizes *s, sizes_figure figure, const codec_report *r, codec_format format)
{
    if (format == FORMAT_JSON) {
        json_t *rows = json_array();
        for (uint32_t i = 0; i < s->n_rows; ++i)
            json_array_append_new(rows, json_pack("{s:s, s:f}", "form", s->rows[i].form, "bits", s->rows[i].bits));
        json_t *root = json_pack("{s:i, s:s, s:s*, s:s*, s:i, s:i, s:I, s:o}", "schema", 1, "figure",
                                 figure == SIZES_RECURSION ? "recursion" : "elias-fano", "index", r->index, "log",
                                 r->log, "queries", (int)r->n_queries, "lists", (int)r->n_lists, "postings",
                                 (json_int_t)s->n, "rows", rows);
        bench_put_machine(root, r->seed);
        return bench_print_json(root);
    }
    if (format == FORMAT_CSV)
        puts("form,bits");
    else
        codec_print_setup(r);
    for (uint32_t i = 0; i < s->n_rows; ++i)
        printf(format == FORMAT_CSV ? "\"%s\",%.3f\n" : "%-40s %8.3f bits a docid\n", s->rows[i].form, s->rows[i].bits);
    return 0;
}
