#include "index/analysis/stop_words.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#include <zlib.h>

#include "engine/status.h"

#define MAX_FILE_BYTES ((size_t)64 << 20)

/* ---- a sorted list ---- */

static int compare(const void *pa, const void *pb)
{
    const gx_stop_word *a = pa, *b = pb;
    const int c = memcmp(a->bytes, b->bytes, a->len < b->len ? a->len : b->len);
    return c ? c : (a->len > b->len) - (a->len < b->len);
}

bool gx_stop_words_add(gx_stop_words *s, const char *word, size_t len)
{
    if (s->n == s->max) {
        const size_t max = s->max ? 2 * s->max : 64;
        gx_stop_word *p = realloc(s->words, max * sizeof *p);
        if (!p)
            return false;
        s->words = p;
        s->max = max;
    }
    char *copy = malloc(len + 1);
    if (!copy)
        return false;
    memcpy(copy, word, len);
    copy[len] = 0;
    s->words[s->n++] = (gx_stop_word){copy, len};
    s->longest = len > s->longest ? len : s->longest;
    return true;
}

void gx_stop_words_sort(gx_stop_words *s)
{
    if (s->n == 0)
        return;
    qsort(s->words, s->n, sizeof *s->words, compare);
    size_t n = 1;
    for (size_t i = 1; i < s->n; ++i) {
        if (compare(&s->words[i], &s->words[n - 1]) == 0)
            free(s->words[i].bytes);
        else
            s->words[n++] = s->words[i];
    }
    s->n = n;
}

bool gx_stop_words_has(const gx_stop_words *s, const char *word, size_t len)
{
    const gx_stop_word key = {(char *)(uintptr_t)word, len};
    return len <= s->longest && s->n && bsearch(&key, s->words, s->n, sizeof key, compare);
}

void gx_stop_words_free(gx_stop_words *s)
{
    for (size_t i = 0; i < s->n; ++i)
        free(s->words[i].bytes);
    free(s->words);
    *s = (gx_stop_words){0};
}

/* ---- files ---- */

static gx_status no_memory(const char *path, gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "out of memory while reading the stop word file %s", path);
}

/* The file's bytes, which the caller frees. */
static gx_status read_bytes(const char *path, char **bytes, size_t *n, gx_error *err)
{
    size_t max = 0;
    gx_status st = GX_OK;
    *bytes = NULL;
    *n = 0;
    errno = 0;
    gzFile f = gzopen(path, "rbe"); /* a file that is not compressed is read as it is */
    if (!f && errno == 0)
        return no_memory(path, err);
    if (!f)
        return gx_fail(err, gx_status_of_errno(errno),
                       "cannot open the stop word file %s: %s; stop words are \"none\", \"lucene\" or a file with a "
                       "word a line",
                       path, strerror(errno));
    for (int got = 1; got > 0 && st == GX_OK;) {
        if (*n + (64u << 10) > max) {
            char *p = realloc(*bytes, max = 2 * max + (128u << 10));
            st = p ? GX_OK : no_memory(path, err);
            *bytes = p ? p : *bytes;
        }
        got = st == GX_OK ? gzread(f, *bytes + *n, 64u << 10) : 0;
        *n += got > 0 ? (size_t)got : 0;
        if (*n > MAX_FILE_BYTES)
            st = gx_fail(err, GX_EINPUT, "%s: a stop word file of more than %zu bytes", path, MAX_FILE_BYTES);
    }
    int code = Z_OK;
    const int system = errno;
    const char *const why = gzerror(f, &code);
    if (st == GX_OK && code == Z_ERRNO)
        st = gx_fail(err, GX_EIO, "cannot read the stop word file %s: %s", path, strerror(system));
    else if (st == GX_OK && code == Z_MEM_ERROR)
        st = no_memory(path, err);
    else if (st == GX_OK && code != Z_OK && code != Z_STREAM_END)
        st = gx_fail(err, GX_EINPUT, "%s: its compressed bytes are damaged: %s", path, why);
    gzclose_r(f);
    return st;
}

/* The code point at p, of n bytes, and its length; -1: it is not UTF-8. */
static utf8proc_int32_t character(const char *p, size_t n, size_t *len)
{
    utf8proc_int32_t c = -1;
    const utf8proc_ssize_t taken = utf8proc_iterate((const utf8proc_uint8_t *)p, (utf8proc_ssize_t)n, &c);
    *len = taken > 0 ? (size_t)taken : 1;
    return taken > 0 ? c : -1;
}

static bool is_space(utf8proc_int32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xFEFF || c == 0x200B ||
           (c >= 0xA0 && (utf8proc_category(c) == UTF8PROC_CATEGORY_ZS || c == 0x2028 || c == 0x2029));
}

/* Take white space, and marks of byte order, off both ends of the line; all of it, where nothing in it is visible.
 * false: it is not UTF-8. */
static bool trim(const char **line, size_t *len)
{
    const char *p = *line, *const end = p + *len, *first = NULL, *last = p;
    bool visible = false;
    while (p < end) {
        size_t n;
        const utf8proc_int32_t c = character(p, (size_t)(end - p), &n);
        if (c < 0)
            return false;
        if (!is_space(c)) {
            first = first ? first : p;
            last = p + n;
            visible |= utf8proc_category(c) != UTF8PROC_CATEGORY_CF;
        }
        p += n;
    }
    *line = first ? first : end;
    *len = visible ? (size_t)(last - first) : 0;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The length of the line without its comment. */
static size_t without_comment(const char *p, size_t n, bool spaces)
{
    if (n && *p == '#' && (!spaces || (n > 1 && is_blank(p[1]))))
        return 0;
    for (size_t i = 0; i < n; ++i)
        if (p[i] == '|' && (!spaces || (n > 1 && (i == 0 || is_blank(p[i - 1])) && (i + 1 == n || is_blank(p[i + 1])))))
            return i;
    return n;
}

/* What the lines of a file add. */
typedef struct reading {
    gx_stop_words *to;
    const char *path;
    bool spaces;
    gx_stop_word_fn *make;
    void *user;
    gx_stop_words cut;  /* words that analysis cuts others to, */
    uint64_t *lines;    /* [cut.n] the lines that hold these, */
    const char **texts; /* and the lines' bytes, in the file's */
    size_t *lens, max_lines;
    uint64_t bad, bad_line;
    gx_error why; /* of the first bad line */
} reading;

static void refuse(reading *r, uint64_t line, const char *text, size_t len, const char *word, size_t n)
{
    if (r->bad++ && line > r->bad_line)
        return;
    r->bad_line = line;
    const int shown = (int)(len < 80 ? len : 80);
    if (word)
        gx_fail(&r->why, GX_EINPUT, "%s:%llu: no term can equal \"%.*s\": analysis makes \"%.*s\" of it", r->path,
                (unsigned long long)line, shown, text, (int)(n < 80 ? n : 80), word);
    else
        gx_fail(&r->why, GX_EINPUT, "%s:%llu: no term can equal \"%.*s\", which is not one word", r->path,
                (unsigned long long)line, shown, text);
}

/* Remember a word that a line is cut to: it must be in the list as well. */
static bool keep_cut(reading *r, uint64_t line, const char *text, size_t len, const char *word, size_t n)
{
    if (r->cut.n == r->max_lines) {
        const size_t max = 2 * r->max_lines + 64;
        uint64_t *lines = realloc(r->lines, max * sizeof *lines);
        r->lines = lines ? lines : r->lines;
        const char **texts = realloc(r->texts, max * sizeof *texts);
        r->texts = texts ? texts : r->texts;
        size_t *lens = realloc(r->lens, max * sizeof *lens);
        r->lens = lens ? lens : r->lens;
        if (!lines || !texts || !lens)
            return false;
        r->max_lines = max;
    }
    r->lines[r->cut.n] = line;
    r->texts[r->cut.n] = text;
    r->lens[r->cut.n] = len;
    return gx_stop_words_add(&r->cut, word, n);
}

static gx_status read_line(reading *r, uint64_t number, const char *line, size_t len, gx_error *err)
{
    const char *word;
    size_t n;
    gx_stop_word_kind kind;
    if (memchr(line, 0, len))
        return gx_fail(err, GX_EINPUT, "%s:%llu: the line holds a NUL byte, which no term does; it must be UTF-8 text",
                       r->path, (unsigned long long)number);
    if (!trim(&line, &len))
        return gx_fail(err, GX_EINPUT, "%s:%llu: the stop word is not UTF-8; convert the file, with iconv for example",
                       r->path, (unsigned long long)number);
    len = without_comment(line, len, r->spaces);
    trim(&line, &len);
    if (len == 0)
        return GX_OK;
    if (r->make(r->user, line, len, &word, &n, &kind) != GX_OK)
        return no_memory(r->path, err);
    if (!word || n == 0)
        refuse(r, number, line, len, NULL, 0);
    else if (kind == GX_STOP_WORD_OTHER)
        refuse(r, number, line, len, word, n);
    else if (!(kind == GX_STOP_WORD_CUT ? keep_cut(r, number, line, len, word, n) : gx_stop_words_add(r->to, word, n)))
        return no_memory(r->path, err);
    return GX_OK;
}

/* Lines end with LF, CR LF or CR. */
static gx_status read_lines(reading *r, const char *p, size_t n, gx_error *err)
{
    const char *const end = p + n;
    gx_status st = GX_OK;
    for (uint64_t number = 1; p < end && st == GX_OK; ++number) {
        const char *stop = p;
        while (stop < end && *stop != '\n' && *stop != '\r')
            ++stop;
        st = read_line(r, number, p, (size_t)(stop - p), err);
        p = stop + 1 + (stop + 1 < end && stop[0] == '\r' && stop[1] == '\n');
    }
    return st;
}

static gx_status finish(reading *r, gx_error *err)
{
    gx_stop_words_sort(r->to);
    for (size_t i = 0; i < r->cut.n; ++i) {
        const gx_stop_word *w = &r->cut.words[i];
        if (!gx_stop_words_has(r->to, w->bytes, w->len))
            refuse(r, r->lines[i], r->texts[i], r->lens[i], w->bytes, w->len);
    }
    if (r->bad == 0)
        return GX_OK;
    if (r->bad == 1)
        return gx_fail(err, GX_EINPUT, "%s", r->why.text);
    return gx_fail(err, GX_EINPUT, "%s (and %llu line%s more)", r->why.text, (unsigned long long)r->bad - 1,
                   r->bad == 2 ? "" : "s");
}

gx_status gx_stop_words_read(gx_stop_words *s, const char *path, bool spaces, gx_stop_word_fn *make, void *user,
                             gx_error *err)
{
    reading r = {.to = s, .path = path, .spaces = spaces, .make = make, .user = user};
    char *bytes;
    size_t n;
    gx_status st = read_bytes(path, &bytes, &n, err);
    if (st == GX_OK && n >= 2 && (!memcmp(bytes, "\xFF\xFE", 2) || !memcmp(bytes, "\xFE\xFF", 2)))
        st = gx_fail(err, GX_EINPUT, "%s is UTF-16; convert it: iconv -f UTF-16 -t UTF-8", path);
    if (st == GX_OK)
        st = read_lines(&r, bytes, n, err);
    if (st == GX_OK)
        st = finish(&r, err);
    gx_stop_words_free(&r.cut);
    free(r.lines);
    free(r.texts);
    free(r.lens);
    free(bytes);
    return st;
}
