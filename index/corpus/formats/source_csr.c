/* source_csr.c: a sparse matrix as Big-ANN's track of sparse vectors stores it, a row a document:
 *
 *   i64 n_rows, n_columns, n_values | i64 row_ends[n_rows + 1] | i32 columns[n_values] | f32 values[n_values]
 *
 * Row r has the values [row_ends[r], row_ends[r + 1]); row_ends[0] is 0. Its id is r, and its terms
 * are the numbers of its columns, from 0, in decimal. A value that is 0 says what no value says, and
 * is left out. Columns and values lie apart, so the file is mapped: it cannot be a pipe, nor
 * compressed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "index/corpus/doc_batch.h"
#include "index/corpus/source_reader.h"

#define HEAD_BYTES (3 * sizeof(int64_t))
#define MAX_DIGITS 11 /* of a column's number */

struct gx_csr {
    const uint8_t *file; /* [bytes] */
    size_t bytes;
    uint64_t n_rows, n_columns, n_values, row;
    const int64_t *row_ends;
    const int32_t *columns;
    const float *values;
    char id[24], *digits; /* digits: of a row's columns */
    size_t max_digits;
};

bool gx_csr_is_matrix(const char *path)
{
    struct stat st;
    int64_t head[3];
    if (stat(path, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < HEAD_BYTES + 8)
        return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool read_all = fd >= 0 && read(fd, head, sizeof head) == (ssize_t)sizeof head;
    if (fd >= 0)
        close(fd);
    const uint64_t words = ((uint64_t)st.st_size - HEAD_BYTES) / 8;
    return read_all && st.st_size % 8 == 0 && head[0] >= 0 && head[1] >= 0 && head[2] >= 0 &&
           (uint64_t)head[0] < words && (uint64_t)head[2] == words - 1 - (uint64_t)head[0];
}

static gx_status bad_matrix(const gx_source *s, const char *why, gx_error *err)
{
    return gx_fail(err, GX_EINPUT, "%s: %s", s->in.path, why);
}

/* The arrays of the mapped file, whose sizes are those that its first numbers say. */
static gx_status bind(gx_source *s, struct gx_csr *m, gx_error *err)
{
    int64_t head[3];
    if (m->bytes < HEAD_BYTES)
        return bad_matrix(s, "it is no CSR matrix: it has fewer than the 24 bytes of its head", err);
    memcpy(head, m->file, sizeof head);
    if (head[0] < 0 || head[1] < 0 || head[2] < 0 || head[0] > UINT32_MAX || head[1] > INT32_MAX)
        return gx_fail(err, GX_EINPUT, "%s: it is no CSR matrix: its head says %lld rows, %lld columns, %lld values",
                       s->in.path, (long long)head[0], (long long)head[1], (long long)head[2]);
    m->n_rows = (uint64_t)head[0];
    m->n_columns = (uint64_t)head[1];
    m->n_values = (uint64_t)head[2];
    const uint64_t ends = HEAD_BYTES + 8 * (m->n_rows + 1);
    if (m->bytes < ends || m->n_values > (m->bytes - ends) / 8 || m->bytes != ends + 8 * m->n_values)
        return gx_fail(err, GX_EINPUT, "%s: it is no CSR matrix: %zu bytes are not those of %lld rows and %lld values",
                       s->in.path, m->bytes, (long long)head[0], (long long)head[2]);
    m->row_ends = (const int64_t *)(const void *)(m->file + HEAD_BYTES);
    m->columns = (const int32_t *)(const void *)(m->file + ends);
    m->values = (const float *)(const void *)(m->file + ends + 4 * m->n_values);
    if (m->row_ends[0] != 0 || (uint64_t)m->row_ends[m->n_rows] != m->n_values)
        return gx_fail(err, GX_EINPUT, "%s: the rows' offsets go from %lld to %lld, not from 0 to %lld", s->in.path,
                       (long long)m->row_ends[0], (long long)m->row_ends[m->n_rows], (long long)head[2]);
    return GX_OK;
}

static gx_status map_file(struct gx_csr *m, const char *path, gx_error *err)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return gx_fail(err, errno == ENOENT ? GX_ENOTFOUND : GX_EIO, "cannot open %s: %s", path, strerror(errno));
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        close(fd);
        return gx_fail(err, GX_EIO, "%s: a CSR matrix is read from a regular file, not from a pipe", path);
    }
    m->bytes = (size_t)st.st_size;
    void *p = m->bytes ? mmap(NULL, m->bytes, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    const int why = errno;
    close(fd);
    if (p == MAP_FAILED)
        return gx_fail(err, GX_EIO, "cannot map %s: %s", path, strerror(why));
    m->file = p;
    return GX_OK;
}

gx_status gx_csr_open(gx_source *s, const char *path, gx_error *err)
{
    s->in.path = path;
    if (strcmp(path, "-") == 0)
        return gx_fail(err, GX_EIO, "stdin: a CSR matrix is read from a regular file, not from a pipe");
    struct gx_csr *m = s->csr = calloc(1, sizeof *m);
    if (!m)
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", path);
    gx_status st = map_file(m, path, err);
    if (st == GX_OK)
        st = bind(s, m, err);
    if (st != GX_OK)
        gx_csr_close(s);
    return st;
}

void gx_csr_close(gx_source *s)
{
    if (!s->csr)
        return;
    if (s->csr->file)
        munmap((void *)(uintptr_t)s->csr->file, s->csr->bytes);
    free(s->csr->digits);
    free(s->csr);
    s->csr = NULL;
}

static gx_status read_row(gx_source *s, struct gx_csr *m, uint64_t row, gx_error *err)
{
    const int64_t begin = m->row_ends[row], end = m->row_ends[row + 1];
    if (begin < 0 || begin > end || (uint64_t)end > m->n_values)
        return gx_fail_record(s, s->rec.line, err, "row %" PRIu64 " has the values %lld to %lld of %" PRIu64, row,
                              (long long)begin, (long long)end, m->n_values);
    const uint64_t n = (uint64_t)(end - begin);
    if (n > UINT32_MAX)
        return gx_fail_record(s, s->rec.line, err, "row %" PRIu64 " has %" PRIu64 " values", row, n);
    if (n * MAX_DIGITS > m->max_digits) {
        char *p = realloc(m->digits, 2 * n * MAX_DIGITS);
        if (!p)
            return gx_fail(err, GX_ENOMEM, "no memory for a row of %" PRIu64 " values", n);
        m->digits = p;
        m->max_digits = 2 * n * MAX_DIGITS;
    }
    gx_status st = GX_OK;
    char *to = m->digits;
    for (uint64_t i = (uint64_t)begin; i < (uint64_t)end && st == GX_OK; ++i) {
        if (m->columns[i] < 0 || (uint64_t)m->columns[i] >= m->n_columns)
            return gx_fail_record(s, s->rec.line, err, "row %" PRIu64 " has a value in column %d of %" PRIu64, row,
                                  m->columns[i], m->n_columns);
        if (m->values[i] == 0)
            continue;
        char digits[GX_NUMBER_DIGITS];
        const size_t at = gx_write_number(digits, (uint64_t)m->columns[i]), len = sizeof digits - at;
        memcpy(to, digits + at, len);
        st = gx_source_add_weight(s, to, len, m->values[i], err);
        to += len;
    }
    return st;
}

gx_status gx_read_csr(gx_source *s, bool *found, gx_error *err)
{
    struct gx_csr *m = s->csr;
    *found = m->row < m->n_rows;
    if (!*found) {
        gx_csr_close(s);
        return GX_OK;
    }
    if (s->opt.cancel && m->row % 1024 == 0 && s->opt.cancel(s->opt.user))
        return gx_fail(err, GX_ECANCELLED, "cancelled");
    const uint64_t row = m->row++;
    s->rec.line = row + 1;
    s->rec.has_vector = true;
    s->rec.id = (gx_span){m->id, (size_t)snprintf(m->id, sizeof m->id, "%" PRIu64, row)};
    const gx_status st = read_row(s, m, row, err);
    s->in.bytes = s->in.raw_bytes += 8 + 8ull * s->n_vector;
    return st;
}
