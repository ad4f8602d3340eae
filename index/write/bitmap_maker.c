#include "index/write/bitmap_maker.h"

#include <stdlib.h>
#include <string.h>

#include "codecs/decode.h"
#include "codecs/words/bits.h"
#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/attributes/attributes.h"

#define BLOCK 128u
#define AUTO_BINS 256u
#define AUTO_DOCS 16384u        /* fewer documents have no columns unless they are asked for */
#define SAMPLE 65536u           /* values by which bins are drawn */
#define GROUP_WORDS (16u << 20) /* of columns in memory at once */
#define LLOYD_ROUNDS 200

typedef struct maker {
    const gx_bitmap_source *source;
    gx_bitmap_options asked;
    gx_bitmap_encoding encoding;
    uint32_t n_bins, n_columns;
    /* of numbers: */
    uint64_t *distinct; /* [1 << distinct_bits] a hash table of sort keys + 1, 0: empty */
    uint32_t n_distinct, distinct_bits, most_distinct; /* n_distinct > most_distinct: there are more */
    uint64_t *sample;                                  /* [n_sample] sort keys */
    uint32_t n_sample;
    uint64_t *least, *greatest; /* [n_bins] sort keys; until the bins are tallied, they begin at `least` */
    uint64_t *found;            /* [n_bins] the least key of each */
    /* [n_bins] */
    uint32_t *docs;             /* documents of the bin */
    uint32_t *borders;          /* borders of the column's runs */
    uint32_t *last;             /* the bin's last document + 1 */
    gx_bitmap_entry *directory; /* [n_columns] */
    uint64_t *from;             /* [n_columns] where the group has the column's numbers */
    uint32_t *group;            /* a group's numbers */
    uint32_t *packed, *coded;   /* scratch of encoding */
    size_t max_packed, max_coded;
} maker;

static void close_maker(maker *m)
{
    void *const parts[] = {m->distinct, m->sample,    m->least, m->greatest, m->found,  m->docs, m->borders,
                           m->last,     m->directory, m->from,  m->group,    m->packed, m->coded};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
        free(parts[i]);
}

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory for the bitmap columns of an attribute");
}

const char *gx_bitmap_options_fault(gx_attribute_type type, const gx_bitmap_options *o)
{
    if ((unsigned)o->encoding > GX_BITMAPS_RANGE || (unsigned)o->binning > GX_BINS_LLOYD)
        return "has an encoding or a binning that does not exist";
    if (o->bins > GX_MAX_BINS)
        return "has more than 4096 bins";
    if (gx_is_keyword(type) && o->encoding == GX_BITMAPS_RANGE)
        return "has keywords, of which there is no range encoding";
    if (gx_is_keyword(type) && (o->bins || o->binning))
        return "has keywords, which have a bin a string";
    if (o->encoding == GX_BITMAPS_NONE && (o->bins || o->binning))
        return "has bins and no bitmap columns";
    return NULL;
}

gx_bitmap_options gx_bitmap_options_asked(gx_attribute_type type, const gx_bitmap_options *asked)
{
    return gx_bitmap_options_fault(type, asked) ? (gx_bitmap_options){0} : *asked;
}

/* ---- bins ---- */

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t value_of(const gx_bitmap_row *row, uint32_t i)
{
    return row->several ? row->several[i] : row->numbers ? row->numbers[i] : row->value;
}

/* Count a value among the different ones, as long as they are few. */
static void count_distinct(maker *m, uint64_t key)
{
    const uint32_t mask = (UINT32_C(1) << m->distinct_bits) - 1;
    uint32_t slot = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & mask;
    if (key == UINT64_MAX) { /* has no place in the table, so let there be too many */
        m->n_distinct = m->most_distinct + 1;
        return;
    }
    while (m->distinct[slot] && m->distinct[slot] != key + 1)
        slot = (slot + 1) & mask;
    if (m->distinct[slot])
        return;
    m->distinct[slot] = key + 1;
    ++m->n_distinct;
}

/* Read all values: the different ones, if they are few, and a sample. */
static gx_status survey(maker *m, gx_error *err)
{
    const gx_bitmap_source *s = m->source;
    const uint32_t stride = (uint32_t)((s->several ? s->n_values : s->n_docs) / SAMPLE) + 1;
    gx_bitmap_row row;
    uint32_t n = 0;
    m->most_distinct = m->asked.bins ? m->asked.bins : AUTO_BINS;
    m->distinct_bits = 14; /* more than twice GX_MAX_BINS */
    m->distinct = calloc((size_t)1 << m->distinct_bits, sizeof *m->distinct);
    m->sample = malloc(((size_t)SAMPLE + 2) * sizeof *m->sample);
    if (!m->distinct || !m->sample)
        return no_memory(err);
    gx_status st = s->rewind(s->user, err);
    for (uint32_t d = 0; d < s->n_docs && st == GX_OK; ++d) {
        st = s->next(s->user, &row, err);
        for (uint32_t i = 0; st == GX_OK && i < row.n; ++i) {
            const uint64_t key = gx_sort_key(s->type, value_of(&row, i));
            if (m->n_distinct <= m->most_distinct)
                count_distinct(m, key);
            if (n++ % stride == 0)
                m->sample[m->n_sample++] = key;
        }
    }
    qsort(m->sample, m->n_sample, sizeof *m->sample, compare_u64);
    return st;
}

/* A sort key as a number, and back. */
static double number_of(gx_attribute_type type, uint64_t key)
{
    const uint64_t raw = gx_raw_of_sort_key(type, key);
    double x;
    if (type != GX_ATTRIBUTE_FLOAT)
        return (double)key;
    memcpy(&x, &raw, sizeof x);
    return x;
}

static uint64_t key_of(gx_attribute_type type, double x)
{
    uint64_t raw;
    if (type != GX_ATTRIBUTE_FLOAT)
        return x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
    memcpy(&raw, &x, sizeof raw);
    return gx_sort_key(type, raw);
}

static void draw_quantiles(maker *m, uint32_t n)
{
    for (uint32_t i = 0; i < n; ++i)
        m->least[i] = m->sample[(uint64_t)i * m->n_sample / n];
}

static void draw_widths(maker *m, uint32_t n)
{
    const gx_attribute_type type = m->source->type;
    const double low = number_of(type, m->sample[0]), high = number_of(type, m->sample[m->n_sample - 1]);
    for (uint32_t i = 0; i < n; ++i) {
        const double t = (double)i / n;
        m->least[i] = key_of(type, low * (1 - t) + high * t);
    }
}

/* Where bins begin in the sorted sample: half-way between the means of neighbours. false: as before. */
static bool move_borders(const maker *m, const double *sums, uint32_t n, double *means, uint32_t *begin)
{
    bool moved = false;
    for (uint32_t i = 0; i < n; ++i) {
        const uint32_t size = begin[i + 1] - begin[i];
        means[i] = size ? (sums[begin[i + 1]] - sums[begin[i]]) / size : i ? means[i - 1] : 0;
    }
    for (uint32_t i = 1, at = 0; i < n; ++i) {
        const double border = means[i - 1] / 2 + means[i] / 2;
        while (at < m->n_sample && number_of(m->source->type, m->sample[at]) / SAMPLE < border)
            ++at;
        moved |= at != begin[i];
        begin[i] = at;
    }
    return moved;
}

/* Lloyd's algorithm on the sample, from quantiles on. Sums of SAMPLE numbers divided by SAMPLE do not
 * overflow. */
static bool draw_by_lloyd(maker *m, uint32_t n)
{
    double *sums = calloc(m->n_sample + 1ull, sizeof *sums), *means = calloc(n + 1ull, sizeof *means);
    uint32_t *begin = malloc((n + 1ull) * sizeof *begin);
    const bool ok = sums && means && begin;
    for (uint32_t i = 0; ok && i < m->n_sample; ++i)
        sums[i + 1] = sums[i] + number_of(m->source->type, m->sample[i]) / SAMPLE;
    for (uint32_t i = 0; ok && i <= n; ++i)
        begin[i] = (uint32_t)((uint64_t)i * m->n_sample / n);
    for (int round = 0; ok && round < LLOYD_ROUNDS && move_borders(m, sums, n, means, begin); ++round)
        ;
    for (uint32_t i = 0; ok && i < n; ++i)
        m->least[i] = m->sample[begin[i] < m->n_sample ? begin[i] : m->n_sample - 1];
    free(sums);
    free(means);
    free(begin);
    return ok;
}

/* Where bins begin: m->least. */
static gx_status draw_bins(maker *m, gx_error *err)
{
    const uint32_t n = m->most_distinct;
    uint32_t kept = 0;
    m->least = calloc(n + 1ull, sizeof *m->least);
    m->greatest = calloc(n + 1ull, sizeof *m->greatest);
    m->found = calloc(n + 1ull, sizeof *m->found);
    if (!m->least || !m->greatest || !m->found)
        return no_memory(err);
    if (m->n_distinct <= n) {
        for (uint32_t slot = 0; slot < UINT32_C(1) << m->distinct_bits; ++slot)
            if (m->distinct[slot])
                m->least[m->n_bins++] = m->distinct[slot] - 1;
        qsort(m->least, m->n_bins, sizeof *m->least, compare_u64);
        return GX_OK;
    }
    if (m->asked.binning == GX_BINS_WIDTH)
        draw_widths(m, n);
    else if (m->asked.binning == GX_BINS_QUANTILES)
        draw_quantiles(m, n);
    else if (!draw_by_lloyd(m, n))
        return no_memory(err);
    m->least[0] = 0; /* the sample need not have the least value */
    for (uint32_t i = 0; i < n; ++i)
        if (kept == 0 || m->least[i] > m->least[kept - 1])
            m->least[kept++] = m->least[i];
    m->n_bins = kept;
    return GX_OK;
}

/* The last bin that begins at the value or below; the first begins below all values. */
static uint32_t bin_of(const maker *m, uint64_t value)
{
    uint32_t low = 0, n = m->n_bins;
    if (!m->least)
        return (uint32_t)value;
    const uint64_t key = gx_sort_key(m->source->type, value);
    while (n > 1) {
        const uint32_t half = n / 2;
        low = m->least[low + half] <= key ? low + half : low;
        n -= half;
    }
    return low;
}

/* ---- how large the columns will be ---- */

/* Borders of the runs of bins, one document after another. *before: the bin of the last one, or n_bins. */
static void tally_range(maker *m, uint32_t bin, uint32_t *before)
{
    const uint32_t low = bin < *before ? bin : *before, high = bin < *before ? *before : bin;
    if (low == high)
        return;
    ++m->borders[low]; /* differences, summed up at the end */
    if (high < m->n_bins)
        --m->borders[high];
    *before = bin;
}

static void tally_equality(maker *m, uint32_t docid, uint32_t bin)
{
    m->borders[bin] += m->docs[bin] && m->last[bin] == docid ? 0 : 2;
    m->last[bin] = docid + 1;
}

static void tally_bounds(maker *m, uint32_t bin, uint64_t value)
{
    const uint64_t key = gx_sort_key(m->source->type, value);
    if (!m->docs[bin] || key < m->found[bin])
        m->found[bin] = key;
    if (!m->docs[bin] || key > m->greatest[bin])
        m->greatest[bin] = key;
}

/* Bins without documents go, which sampled and equal ones can be. */
static void leave_out_empty(maker *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_bins; ++i) {
        if (!m->docs[i])
            continue;
        m->docs[n] = m->docs[i];
        m->borders[n] = m->borders[i];
        m->least[n] = m->found[i];
        m->greatest[n++] = m->greatest[i];
    }
    m->n_bins = n;
}

/* Count each column's documents and the borders of its runs, and find the bounds of bins. */
static gx_status tally(maker *m, gx_error *err)
{
    const gx_bitmap_source *s = m->source;
    const bool range = m->encoding == GX_BITMAPS_RANGE;
    uint32_t before = m->n_bins;
    gx_bitmap_row row;
    m->docs = calloc(m->n_bins + 1ull, sizeof *m->docs);
    m->borders = calloc(m->n_bins + 1ull, sizeof *m->borders);
    m->last = calloc(m->n_bins + 1ull, sizeof *m->last);
    if (!m->docs || !m->borders || !m->last)
        return no_memory(err);
    gx_status st = s->rewind(s->user, err);
    for (uint32_t d = 0; d < s->n_docs && st == GX_OK; ++d) {
        st = s->next(s->user, &row, err);
        for (uint32_t i = 0; st == GX_OK && i < row.n; ++i) {
            const uint64_t value = value_of(&row, i);
            const uint32_t bin = bin_of(m, value);
            if (m->least)
                tally_bounds(m, bin, value);
            if (!range && m->docs[bin] && m->last[bin] == d + 1) /* with an earlier value */
                continue;
            if (!range)
                tally_equality(m, d, bin);
            ++m->docs[bin];
        }
        if (st == GX_OK && range && row.n)
            tally_range(m, bin_of(m, row.value), &before);
        else if (st == GX_OK && range && before < m->n_bins)
            ++m->docs[before]; /* as the document before it */
    }
    if (range)
        tally_range(m, m->n_bins, &before);
    for (uint32_t i = 1; range && i < m->n_bins; ++i)
        m->borders[i] += m->borders[i - 1];
    if (m->least)
        leave_out_empty(m);
    for (uint32_t i = 1; range && i < m->n_bins; ++i)
        m->docs[i] += m->docs[i - 1];
    return st;
}

/* About the bits of n numbers up to n_docs. */
static double bits_of(uint32_t n, uint32_t n_docs)
{
    return n ? n * (2.0 + gx_bit_width(n_docs / n)) + 64.0 * (n / BLOCK) + 32 : 0;
}

/* A column's form, and about its bits. A bitmap is read so much faster than numbers that it may be
 * half as large again. */
static gx_bitmap_form choose_form(const maker *m, uint32_t column, double *bits)
{
    const uint32_t n_docs = m->source->n_docs, docs = m->docs[column], borders = m->borders[column];
    const bool runs = m->encoding == GX_BITMAPS_RANGE || borders < docs;
    *bits = bits_of(runs ? borders : docs, n_docs);
    if (n_docs <= 1.5 * *bits) {
        *bits = n_docs;
        return GX_BITMAP_WORDS;
    }
    return runs ? GX_BITMAP_RUNS : GX_BITMAP_LIST;
}

/* Choose the forms of all columns. false: there are to be no columns. */
static bool choose_forms(maker *m, gx_error *err)
{
    const gx_bitmap_source *s = m->source;
    double all = 8.0 * sizeof(gx_bitmaps_entry) + (m->least ? 16.0 * m->n_bins * s->width : 0), bits;
    m->n_columns = gx_bitmaps_n_columns(m->encoding, m->n_bins);
    for (uint32_t i = 0; i < m->n_columns; ++i) {
        const gx_bitmap_form form = choose_form(m, i, &bits);
        const bool runs = form == GX_BITMAP_RUNS;
        m->directory[i].n = (runs ? m->borders[i] : m->docs[i]) | (uint32_t)form << 30;
        all += bits + 8 * sizeof *m->directory;
    }
    if (all >= 0x1p37 && m->asked.encoding != GX_BITMAPS_AUTO)
        gx_fail(err, GX_EINPUT, "the bitmap columns of an attribute take 16 GB or more");
    const double most = m->least && !s->several ? 2.0 * s->width * s->n_docs : 12.0 * (double)s->n_values;
    return m->n_bins && all < 0x1p37 && (m->asked.encoding != GX_BITMAPS_AUTO || all <= most);
}

/* ---- the columns ---- */

static uint32_t *numbers_of(const maker *m, uint32_t column)
{
    return m->group + m->from[column];
}

static void add_number(maker *m, uint32_t column, uint32_t number)
{
    numbers_of(m, column)[m->last[column]++] = number;
}

static void set_bit(maker *m, uint32_t column, uint32_t docid)
{
    numbers_of(m, column)[docid / 32] |= UINT32_C(1) << docid % 32;
}

static void add_to_bin(maker *m, uint32_t column, uint32_t docid)
{
    const gx_bitmap_form form = gx_bitmap_form_of(m->directory[column]);
    const uint32_t n = m->last[column];
    if (form == GX_BITMAP_WORDS) {
        set_bit(m, column, docid);
    } else if (form == GX_BITMAP_LIST) {
        add_number(m, column, docid);
    } else if (n && numbers_of(m, column)[n - 1] == docid) {
        ++numbers_of(m, column)[n - 1];
    } else {
        add_number(m, column, docid);
        add_number(m, column, docid + 1);
    }
}

/* Of a range encoding, columns [begin, end): the document's bin is `bin`, and that of the document
 * before it `before`; n_bins: none yet. Bitmaps get each document in the first column that has it. */
static void add_to_range(maker *m, uint32_t begin, uint32_t end, uint32_t docid, uint32_t bin, uint32_t before,
                         const uint32_t *next_bitmap)
{
    uint32_t low = bin < before ? bin : before, high = bin < before ? before : bin;
    low = low > begin ? low : begin;
    high = high < end ? high : end;
    for (uint32_t i = low; i < high; ++i)
        if (gx_bitmap_form_of(m->directory[i]) == GX_BITMAP_RUNS)
            add_number(m, i, docid);
    if (docid < m->source->n_docs && bin < end) {
        const uint32_t bitmap = next_bitmap[bin > begin ? bin : begin];
        if (bitmap < end)
            set_bit(m, bitmap, docid);
    }
}

/* Bitmaps of a range encoding have the documents of those before them, too. */
static void add_lower_bitmaps(maker *m, uint32_t begin, uint32_t end)
{
    const uint32_t n_words = gx_div_up(m->source->n_docs, 32);
    const uint32_t *before = NULL;
    for (uint32_t i = begin; i < end; ++i) {
        if (gx_bitmap_form_of(m->directory[i]) != GX_BITMAP_WORDS)
            continue;
        uint32_t *const words = numbers_of(m, i);
        for (uint32_t w = 0; before && w < n_words; ++w)
            words[w] |= before[w];
        before = words;
    }
}

/* The numbers of columns [begin, end). */
static gx_status collect(maker *m, uint32_t begin, uint32_t end, gx_error *err)
{
    const gx_bitmap_source *s = m->source;
    const bool range = m->encoding == GX_BITMAPS_RANGE;
    uint32_t *const next_bitmap = malloc((end + 1ull) * sizeof *next_bitmap), before = m->n_bins;
    gx_bitmap_row row;
    if (!next_bitmap)
        return no_memory(err);
    next_bitmap[end] = end;
    for (uint32_t i = end; i-- > begin;) {
        m->last[i] = 0;
        next_bitmap[i] = gx_bitmap_form_of(m->directory[i]) == GX_BITMAP_WORDS ? i : next_bitmap[i + 1];
    }
    gx_status st = s->rewind(s->user, err);
    for (uint32_t d = 0; d < s->n_docs && st == GX_OK; ++d) {
        st = s->next(s->user, &row, err);
        if (st == GX_OK && range) {
            const uint32_t bin = row.n ? bin_of(m, row.value) : before;
            add_to_range(m, begin, end, d, bin, before, next_bitmap);
            before = bin;
            continue;
        }
        for (uint32_t i = 0, last = UINT32_MAX; st == GX_OK && i < row.n; ++i) {
            const uint32_t bin = bin_of(m, value_of(&row, i));
            if (bin >= begin && bin < end && bin != last)
                add_to_bin(m, bin, d);
            last = bin;
        }
    }
    if (range) {
        add_to_range(m, begin, end, s->n_docs, m->n_bins, before, next_bitmap);
        add_lower_bitmaps(m, begin, end);
    }
    free(next_bitmap);
    return st;
}

/* Write a column's words. */
static gx_status write_column(maker *m, uint32_t column, uint32_t *end, gx_spool *out, gx_error *err)
{
    const gx_codec *codec = &gx_codec_gpubp128;
    const uint32_t n = gx_bitmap_n(m->directory[column]), n_blocks = gx_div_up(n, BLOCK), *numbers;
    numbers = numbers_of(m, column);
    if (gx_bitmap_form_of(m->directory[column]) == GX_BITMAP_WORDS) {
        const uint32_t n_words = gx_div_up(m->source->n_docs, 32);
        *end += n_words;
        return gx_spool_add(out, numbers, (size_t)n_words * sizeof *numbers, err);
    }
    const size_t head_words = 2ull * n_blocks - (n_blocks != 0), most = gx_pack_list_words(codec, n);
    if (n == 0)
        return GX_OK;
    if (gx_grow(&m->packed, &m->max_packed, head_words + 1 + most, sizeof *m->packed, err) != GX_OK ||
        gx_grow(&m->coded, &m->max_coded, n, sizeof *m->coded, err) != GX_OK)
        return no_memory(err);
    gx_docids_to_gaps(numbers, n, BLOCK, m->coded, m->packed);
    uint32_t *const words = m->packed + head_words + 1, *const ends = m->packed + n_blocks;
    const size_t used = gx_pack_list(codec, 0, m->coded, n, words, ends); /* the last end is not stored */
    *end += (uint32_t)(head_words + used);
    const gx_status st = gx_spool_add(out, m->packed, head_words * sizeof *words, err);
    return st == GX_OK ? gx_spool_add(out, words, used * sizeof *words, err) : st;
}

/* Where the numbers of the next columns go, as many as fit; returns the end of the columns. */
static uint32_t plan_group(maker *m, uint32_t begin, uint64_t *n_words)
{
    uint32_t end = begin;
    *n_words = 0;
    for (; end < m->n_columns; ++end) {
        const gx_bitmap_entry e = m->directory[end];
        const uint64_t own =
            gx_bitmap_form_of(e) == GX_BITMAP_WORDS ? gx_div_up(m->source->n_docs, 32) : gx_bitmap_n(e);
        if (end > begin && *n_words + own > GROUP_WORDS)
            break;
        m->from[end] = *n_words;
        *n_words += own;
    }
    return end;
}

static gx_status write_columns(maker *m, gx_spool *words, gx_error *err)
{
    gx_status st = GX_OK;
    uint64_t n_words;
    uint32_t at = 0;
    for (uint32_t begin = 0, end; begin < m->n_columns && st == GX_OK; begin = end) {
        end = plan_group(m, begin, &n_words);
        free(m->group);
        if (!(m->group = calloc(n_words + 1, sizeof *m->group)))
            return no_memory(err);
        st = collect(m, begin, end, err);
        for (uint32_t i = begin; i < end && st == GX_OK; ++i) {
            st = write_column(m, i, &at, words, err);
            m->directory[i].end = at;
        }
    }
    return st;
}

static gx_status add_padding(gx_spool *out, gx_error *err)
{
    static const uint8_t zeros[8];
    const uint64_t bytes = gx_spool_bytes(out);
    return gx_spool_add(out, zeros, (size_t)(gx_column_padded(bytes) - bytes), err);
}

static gx_status add_spool(gx_spool *out, const gx_spool *from, gx_error *err)
{
    uint8_t buffer[1 << 14];
    gx_status st = GX_OK;
    for (uint64_t at = 0; at < gx_spool_bytes(from) && st == GX_OK;) {
        const uint64_t left = gx_spool_bytes(from) - at;
        const size_t n = left < sizeof buffer ? (size_t)left : sizeof buffer;
        st = gx_spool_read(from, at, buffer, n, err);
        if (st == GX_OK)
            st = gx_spool_add(out, buffer, n, err);
        at += n;
    }
    return st;
}

/* Sort keys as values of the column, little-endian. */
static gx_status add_bounds(const maker *m, const uint64_t *keys, gx_spool *out, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < m->n_bins && st == GX_OK; ++i) {
        const uint64_t raw = gx_raw_of_sort_key(m->source->type, keys[i]);
        st = gx_spool_add(out, &raw, m->source->width, err);
    }
    return st;
}

static gx_status make(maker *m, gx_spool *out, gx_bitmaps_entry *entry, gx_error *err)
{
    gx_spool words = gx_spool_make(out->dir);
    gx_status st = write_columns(m, &words, err);
    *entry = (gx_bitmaps_entry){.encoding = (uint8_t)m->encoding, .n_bins = m->n_bins, .begin = gx_spool_bytes(out)};
    if (st == GX_OK && m->least)
        st = add_bounds(m, m->least, out, err);
    if (st == GX_OK && m->least)
        st = add_bounds(m, m->greatest, out, err);
    if (st == GX_OK)
        st = add_padding(out, err);
    if (st == GX_OK)
        st = gx_spool_add(out, m->directory, m->n_columns * sizeof *m->directory, err);
    if (st == GX_OK)
        st = add_spool(out, &words, err);
    if (st == GX_OK)
        st = add_padding(out, err);
    entry->bytes = gx_spool_bytes(out) - entry->begin;
    gx_spool_free(&words);
    return st;
}

/* Whether columns can be worth their while, before the values are read. */
static bool may_pay(const maker *m)
{
    const gx_bitmap_source *s = m->source;
    if (m->asked.encoding != GX_BITMAPS_AUTO)
        return m->asked.encoding != GX_BITMAPS_NONE;
    /* a column of few documents takes 12 bytes and more */
    return s->n_docs >= AUTO_DOCS && (!gx_is_keyword(s->type) || s->n_values / 8 >= s->n_strings);
}

gx_status gx_bitmaps_make(const gx_bitmap_source *s, const gx_bitmap_options *o, gx_spool *out, gx_bitmaps_entry *entry,
                          gx_error *err)
{
    maker m = {.source = s, .asked = *o, .n_bins = s->n_strings, .encoding = o->encoding};
    const bool keyword = gx_is_keyword(s->type);
    gx_error words = {0};
    gx_status st = GX_OK;
    *entry = (gx_bitmaps_entry){.encoding = GX_BITMAPS_NONE};
    if (m.encoding == GX_BITMAPS_AUTO)
        m.encoding = keyword ? GX_BITMAPS_EQUALITY : GX_BITMAPS_RANGE;
    if (m.encoding == GX_BITMAPS_RANGE && s->several)
        m.encoding = GX_BITMAPS_EQUALITY;
    if (s->n_values && may_pay(&m)) {
        st = keyword ? GX_OK : survey(&m, err);
        if (st == GX_OK && !keyword)
            st = draw_bins(&m, err);
        if (st == GX_OK)
            st = tally(&m, err);
        m.directory = calloc(m.n_bins + 1ull, sizeof *m.directory);
        m.from = calloc(m.n_bins + 1ull, sizeof *m.from);
        if (st == GX_OK && (!m.directory || !m.from))
            st = no_memory(err);
        if (st == GX_OK && choose_forms(&m, &words))
            st = make(&m, out, entry, err);
        else if (st == GX_OK && words.status != GX_OK)
            st = gx_fail(err, words.status, "%s", words.text);
    }
    entry->asked_encoding = (uint8_t)o->encoding;
    entry->asked_binning = (uint8_t)o->binning;
    entry->asked_bins = o->bins;
    close_maker(&m);
    return st;
}
