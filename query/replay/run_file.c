#include "query/replay/run_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/files/atomic_file.h"
#include "engine/files/temporary_file.h"
#include "engine/memory/grow.h"
#include "engine/status.h"
#include "engine/text/c_locale.h"
#include "query/exec/wide_hits.h"

/* ---- numbers ---- */

static const uint64_t powers_of_10[] = {
    /* up to 10^17 */
    1,
    10,
    100,
    1000,
    10000,
    100000,
    1000000,
    10000000,
    100000000,
    1000000000,
    10000000000,
    100000000000,
    1000000000000,
    10000000000000,
    100000000000000,
    1000000000000000,
    10000000000000000,
    100000000000000000,
    1000000000000000000,
};

/* Write n in decimal, with leading zeros up to `width` digits. */
static char *put_digits(char *p, uint64_t n, int width)
{
    char digits[20];
    int i = 0;
    do
        digits[i++] = (char)('0' + n % 10);
    while ((n /= 10) || i < width);
    while (i)
        *p++ = digits[--i];
    return p;
}

/* The score is rounded to an integer n of units 10^-decimals, where decimals is chosen so that n
 * has ten or eleven digits. Neighbouring sums, at least 2^-31 of the score apart, differ in
 * them. */
size_t gx_run_score(char *p, uint32_t sum, int exponent)
{
    const int magnitude = sum ? 32 - __builtin_clz(sum) - exponent : 0; /* score is in [.5, 1) * 2^magnitude */
    if (sum == 0 || magnitude < -26 || magnitude > 30)
        return (size_t)gx_print(p, 24, "%.11g", ldexp(sum, -exponent));
    int decimals = 10 - (magnitude * 1233 >> 12); /* 1233 / 4096: log10(2); 1 .. 18 */
    unsigned __int128 scaled = (unsigned __int128)sum * powers_of_10[decimals];
    if (exponent > 0) {
        scaled += (unsigned __int128)1 << (exponent - 1);
        scaled >>= exponent;
    } else {
        scaled <<= -exponent;
    }
    uint64_t n = (uint64_t)scaled;
    while (decimals > 1 && n % 10 == 0) { /* 2.500000000 becomes 2.5, and 2.000000000 becomes 2.0 */
        n /= 10;
        --decimals;
    }
    char *q = put_digits(p, n / powers_of_10[decimals], 1);
    if (decimals) {
        *q++ = '.';
        q = put_digits(q, n % powers_of_10[decimals], decimals);
    }
    return (size_t)(q - p);
}

/* ---- lines ---- */

static char *put_word(char *p, const char *word, size_t len)
{
    for (size_t i = 0; i < len; ++i)
        *p++ = (unsigned char)word[i] <= ' ' ? '_' : word[i];
    return p;
}

static gx_status reserve_text(gx_run_text *text, size_t more, gx_error *err)
{
    return gx_reserve(&text->bytes, &text->cap, text->n + more, 1)
               ? GX_OK
               : gx_fail(err, GX_ENOMEM, "no memory for %zu bytes of a run", text->n + more);
}

gx_status gx_run_append(gx_run_text *text, const gx_index *ix, const gx_run_answer *answer, const char *tag,
                        gx_error *err)
{
    const uint64_t *const keys = answer->keys;
    const size_t tag_len = strlen(tag);
    for (uint32_t i = 0; i < answer->n; ++i) {
        size_t len;
        const char *docno = gx_index_doc_id(ix, gx_wide_docid(keys, answer->highs, i), &len);
        const gx_status st = reserve_text(text, answer->qid_len + len + tag_len + 64, err);
        if (st != GX_OK)
            return st;
        char *p = put_word(text->bytes + text->n, answer->qid, answer->qid_len);
        p = stpcpy(p, " Q0 ");
        p = put_word(p, docno, len);
        *p++ = ' ';
        p = put_digits(p, i + 1, 1);
        *p++ = ' ';
        p += answer->scores ? (size_t)gx_print(p, 24, "%.11g", answer->scores[i])
                            : gx_run_score(p, gx_key_score(keys[i]), answer->exponent);
        *p++ = ' ';
        p = put_word(p, tag, tag_len);
        *p++ = '\n';
        text->n = (size_t)(p - text->bytes);
    }
    return GX_OK;
}

/* The keys of an answer's hits. A score is a whole number of at most 31 bits times a power of two, the same one for
 * all: the power that takes the greatest to 31 bits serves. */
static int make_keys(const gx_answer *a, uint64_t *keys, uint32_t *highs)
{
    int e = 0;
    double greatest = 0; /* the first, unless attributes order the hits */
    for (uint32_t i = 0; i < a->n_hits; ++i)
        greatest = a->scores[i] > greatest ? a->scores[i] : greatest;
    if (greatest > 0)
        frexp(greatest, &e);
    const int exponent = greatest > 0 ? 31 - e : 0;
    for (uint32_t i = 0; i < a->n_hits; ++i) {
        keys[i] = gx_key((uint32_t)ldexp(a->scores[i], exponent), (uint32_t)a->docids[i]);
        highs[i] = (uint32_t)(a->docids[i] >> 32);
    }
    return exponent;
}

gx_status gx_answer_write_run(gx_text *t, const gx_answer *a, const char *tag, gx_error *err)
{
    gx_run_text lines = {0};
    uint64_t *keys = malloc((a->n_hits + 1) * (sizeof *keys + sizeof(uint32_t)));
    if (!keys)
        return gx_fail(err, GX_ENOMEM, "no memory for %u lines of a run", a->n_hits);
    uint32_t *highs = (uint32_t *)(keys + a->n_hits);
    gx_run_answer answer = {.qid = a->qid, .qid_len = a->qid_len, .keys = keys, .n = a->n_hits, .highs = highs};
    answer.exponent = make_keys(a, keys, highs);
    const gx_status st = gx_run_append(&lines, a->ix, &answer, tag, err);
    if (st == GX_OK && lines.n)
        gx_text_add(t, lines.bytes, lines.n);
    free(lines.bytes);
    free(keys);
    return st;
}

/* ---- the file ---- */

#define BUFFER_BYTES ((size_t)256 << 10)

struct gx_run {
    gx_atomic_file out;
    size_t n; /* bytes in buffer */
    char buffer[BUFFER_BYTES];
};

gx_status gx_run_open(gx_run **out, const char *path, bool force, gx_error *err)
{
    *out = NULL;
    gx_run *run = malloc(sizeof *run);
    if (!run)
        return gx_fail(err, GX_ENOMEM, "no memory to write %s", path);
    run->n = 0;
    const gx_status st = gx_atomic_file_open(&run->out, path, force ? GX_ATOMIC_FILE_FORCE : 0, err);
    if (st == GX_OK)
        *out = run;
    else
        gx_run_close(run);
    return st;
}

static gx_status write_all(gx_run *run, const char *bytes, size_t n, gx_error *err)
{
    const int e = gx_write_all(run->out.fd, bytes, n);
    return e ? gx_fail(err, GX_EIO, "cannot write %s: %s", run->out.path, strerror(e)) : GX_OK;
}

static gx_status flush(gx_run *run, gx_error *err)
{
    const size_t n = run->n;
    run->n = 0;
    return write_all(run, run->buffer, n, err);
}

gx_status gx_run_write(gx_run *run, const gx_run_text *text, gx_error *err)
{
    if (run->n + text->n > BUFFER_BYTES) {
        const gx_status st = flush(run, err);
        if (st != GX_OK)
            return st;
        if (text->n > BUFFER_BYTES)
            return write_all(run, text->bytes, text->n, err);
    }
    if (text->n)
        memcpy(run->buffer + run->n, text->bytes, text->n);
    run->n += text->n;
    return GX_OK;
}

gx_status gx_run_commit(gx_run *run, gx_error *err)
{
    gx_status st = flush(run, err);
    if (st == GX_OK)
        st = gx_atomic_file_sync(&run->out, err);
    return st == GX_OK ? gx_atomic_file_commit(&run->out, err) : st;
}

void gx_run_close(gx_run *run)
{
    if (!run)
        return;
    gx_atomic_file_close(&run->out);
    free(run);
}
