#include "index/corpus/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/lower_bound.h"
#include "engine/memory/grow.h"
#include "engine/status.h"

#define READ_BYTES GX_INPUT_READ
#define ZIP_MEMBER "PK\3\4"

enum {
    BLOCK = 512,     /* of a tar */
    MOST_PASSES = 16 /* over an archive with hard links: each gives one link to a file */
};

/* A hard link whose file is looked for in a further pass. */
typedef struct hard_link {
    char *name, *target;
    bool given;
} hard_link;

struct gx_archive {
    struct archive *reader;
    locale_t utf8;       /* in which names are read; 0: there is none */
    bool seekable;       /* the file is regular and not compressed */
    bool again;          /* the file is regular: it can be read again */
    uint64_t size;       /* of the regular file */
    uint64_t start, fed; /* where in the stream the reader began, and how much it has got since */
    /* [4 * READ_BYTES]: what the next reader begins with, in the first half; the chunks that it gets in turn in the
     * other two quarters. The last two of all these are kept: a reader may end before what it has got. */
    char *room;
    struct chunk {
        const char *p;
        size_t n;
    } next, last[2];
    unsigned turn;
    hard_link *links; /* [n_links], by targets from the second pass on */
    size_t n_links, max_links, n_given;
    unsigned pass;       /* from 0 */
    size_t given_before; /* links given before this pass */
};

/* ---- reading ---- */

/* A tar header has its own checksum. */
static bool is_tar(const unsigned char *p, size_t n)
{
    unsigned sum = 0, said = 0, digits = 0;
    if (n < BLOCK)
        return false;
    for (unsigned i = 0; i < BLOCK; ++i)
        sum += i >= 148 && i < 156 ? ' ' : p[i];
    for (unsigned i = 148; i < 156 && (p[i] == ' ' || (p[i] >= '0' && p[i] < '8')); ++i)
        if (p[i] != ' ')
            said = said * 8 + (p[i] - '0'), ++digits;
    return digits > 0 && said == sum && p[0];
}

const char *gx_archive_recognize(const char *p, size_t n)
{
    if (n >= 4 && (!memcmp(p, ZIP_MEMBER, 4) || !memcmp(p, "PK\5\6", 4)))
        return "zip";
    return is_tar((const unsigned char *)p, n) ? "tar" : NULL;
}

static la_ssize_t feed(struct archive *reader, void *user, const void **block)
{
    gx_input *in = user;
    gx_archive *a = in->archive;
    struct chunk c = a->next;
    gx_error err = {0};
    a->next.n = 0;
    if (!c.n) {
        char *to = a->room + (2 + a->turn) * READ_BYTES;
        a->turn ^= 1;
        c.p = to;
        if (gx_input_read_file(in, to, READ_BYTES, &c.n, &err)) {
            archive_set_error(reader,
                              err.status == GX_ECANCELLED ? EINTR
                              : err.status == GX_ENOMEM   ? ENOMEM
                              : err.status == GX_EINPUT   ? EILSEQ
                                                          : EIO,
                              "%s", err.text);
            return -1;
        }
    }
    *block = c.p;
    if (c.n) {
        a->last[0] = a->last[1];
        a->last[1] = c;
        a->fed += c.n;
    }
    return (la_ssize_t)c.n;
}

static la_int64_t seek(struct archive *reader, void *user, la_int64_t to, int from)
{
    const gx_input *in = user;
    const off_t at = lseek(in->fd, to, from);
    if (at < 0)
        archive_set_error(reader, EIO, "cannot read %s: %s", in->path, strerror(errno));
    return at < 0 ? ARCHIVE_FATAL : at;
}

static gx_status fail(gx_input *in, gx_error *err)
{
    struct archive *reader = in->archive->reader;
    const int code = archive_errno(reader);
    const char *why = archive_error_string(reader);
    if (code == ENOMEM)
        return gx_input_no_memory(in, err);
    const bool fed = code == EILSEQ && why && strstr(why, "damaged or truncated"); /* feed's words, not EILSEQ's */
    if (code == EIO || code == EINTR || fed)
        return gx_fail(err,
                       code == EIO     ? GX_EIO
                       : code == EINTR ? GX_ECANCELLED
                                       : GX_EINPUT,
                       "%s", why ? why : "read error");
    return gx_input_damaged(in, "archive", why ? why : "unknown error", err);
}

gx_status gx_archive_read(gx_input *in, char *to, size_t max, size_t *n, gx_error *err)
{
    gx_status st = gx_input_ask_cancel(in, err);
    la_ssize_t got;
    if (st)
        return st;
    do
        got = archive_read_data(in->archive->reader, to, max);
    while (got == ARCHIVE_RETRY);
    *n = got < 0 ? 0 : (size_t)got;
    return got < 0 ? fail(in, err) : GX_OK;
}

/* ---- opening and closing ---- */

/* Begin to read an archive at `start` of the stream; a->next is what is known of its bytes. */
static gx_status open_reader(gx_input *in, uint64_t start, bool with_zip, gx_error *err)
{
    gx_archive *a = in->archive;
    archive_read_free(a->reader);
    a->start = start;
    a->fed = 0;
    a->last[0] = a->last[1] = (struct chunk){0};
    if (!(a->reader = archive_read_new()))
        return gx_input_no_memory(in, err);
    if (a->seekable) /* zip's list of members is at its end */
        archive_read_set_seek_callback(a->reader, seek);
    archive_read_support_format_tar(a->reader);
    if (with_zip)
        archive_read_support_format_zip(a->reader);
    archive_read_set_read_callback(a->reader, feed);
    archive_read_set_callback_data(a->reader, in);
    return archive_read_open1(a->reader) == ARCHIVE_OK ? GX_OK : fail(in, err);
}

gx_status gx_archive_open(gx_input *in, gx_error *err)
{
    struct stat st;
    gx_archive *a = in->archive = calloc(1, sizeof *a);
    if (!a || !(a->room = malloc(4 * READ_BYTES)))
        return gx_input_no_memory(in, err);
    in->archive_path = in->path;
    a->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    a->again = fstat(in->fd, &st) == 0 && S_ISREG(st.st_mode);
    a->size = a->again ? (uint64_t)st.st_size : 0;
    a->seekable = a->again && !gx_input_is_packed(in) && lseek(in->fd, 0, SEEK_SET) == 0;
    if (a->seekable) {
        in->raw_bytes -= in->end;
    } else {
        memcpy(a->room, in->buf, in->end);
        a->next = (struct chunk){a->room, in->end};
    }
    in->begin = in->end = 0;
    in->eof = true;
    return open_reader(in, 0, true, err);
}

void gx_archive_close(gx_input *in)
{
    gx_archive *a = in->archive;
    if (!a)
        return;
    archive_read_free(a->reader);
    if (a->utf8)
        freelocale(a->utf8);
    for (size_t i = 0; i < a->n_links; ++i) {
        free(a->links[i].name);
        free(a->links[i].target);
    }
    free(a->links);
    free(a->room);
    free(a);
    in->archive = NULL;
}

/* ---- what is behind the end ---- */

/* Point a->next to what the reader has got and not used. false: that is not known. */
static bool take_rest(gx_input *in)
{
    gx_archive *a = in->archive;
    const uint64_t at = (uint64_t)archive_filter_bytes(a->reader, -1);
    if (a->seekable) {
        a->next = (struct chunk){a->room, 0};
        return lseek(in->fd, (off_t)(a->start + at), SEEK_SET) >= 0;
    }
    const struct chunk *last = a->last;
    const size_t n = (size_t)(a->fed - at);
    if (at > a->fed || n > last[0].n + last[1].n || n > 2 * READ_BYTES)
        return false;
    const size_t of_first = n > last[1].n ? n - last[1].n : 0, of_second = n - of_first;
    if (of_first)
        memmove(a->room, last[0].p + last[0].n - of_first, of_first);
    if (of_second)
        memmove(a->room + of_first, last[1].p + last[1].n - of_second, of_second);
    a->next = (struct chunk){a->room, n};
    return true;
}

/* Read more behind the bytes of a->next, the first `used` of which go. *got: bytes read; 0: the stream ends. */
static gx_status read_rest(gx_input *in, size_t used, size_t *got, gx_error *err)
{
    gx_archive *a = in->archive;
    const size_t left = a->next.n - used;
    memmove(a->room, a->next.p + used, left);
    a->next = (struct chunk){a->room, left};
    const gx_status st = gx_input_read_file(in, a->room + left, READ_BYTES, got, err);
    a->next.n += *got;
    return st;
}

static void note_archive(const gx_input *in, gx_note_kind what)
{
    if (in->archive->pass == 0)
        gx_notes_add(in->notes, what, NULL, 0, in->archive_path, 0);
}

static bool is_zero(const char *p, size_t n)
{
    return n == 0 || (*p == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Behind the end of a tar: pass over zeros. *more: another tar begins, and is open. */
static gx_status open_next_tar(gx_input *in, bool *more, gx_error *err)
{
    gx_archive *a = in->archive;
    const uint64_t at = (uint64_t)archive_filter_bytes(a->reader, -1);
    uint64_t passed = 0;
    if (!take_rest(in))
        return GX_OK;
    for (;;) {
        size_t used = 0, got;
        while (a->next.n - used >= BLOCK && is_zero(a->next.p + used, BLOCK))
            used += BLOCK;
        passed += used;
        if (a->next.n - used >= BLOCK) {
            a->next.p += used;
            a->next.n -= used;
            break;
        }
        const gx_status st = read_rest(in, used, &got, err);
        if (st)
            return st;
        if (got)
            continue;
        if (!is_zero(a->next.p, a->next.n))
            note_archive(in, GX_NOTE_BYTES_BEHIND_ARCHIVES);
        return GX_OK;
    }
    *more = is_tar((const unsigned char *)a->next.p, a->next.n);
    if (*more)
        return open_reader(in, a->start + at + passed, false, err);
    note_archive(in, GX_NOTE_BYTES_BEHIND_ARCHIVES);
    return GX_OK;
}

/* Behind the end of a zip that is read from its beginning on: look for another. */
static gx_status look_for_next_zip(gx_input *in, gx_error *err)
{
    gx_archive *a = in->archive;
    gx_status st = GX_OK;
    bool found = false;
    if (!take_rest(in))
        return GX_OK;
    for (size_t got = 1; !st && got && !found;) {
        found = memmem(a->next.p, a->next.n, ZIP_MEMBER, 4) != NULL;
        if (!found)
            st = read_rest(in, a->next.n > 3 ? a->next.n - 3 : 0, &got, err);
    }
    if (found)
        note_archive(in, GX_NOTE_BYTES_BEHIND_ARCHIVES);
    return st;
}

static uint64_t get_little(const unsigned char *p, unsigned n)
{
    uint64_t x = 0;
    while (n-- > 0)
        x = x << 8 | p[n];
    return x;
}

/* Where the zip's first byte is in its file, by the record at its end; 0 where that is not found. The reader takes the
 * members that the last list in the file names. */
static uint64_t find_zip_begin(const gx_input *in)
{
    enum { RECORD = 22, RECORD_64 = 56, LOCATOR_64 = 20, TAIL = RECORD + 0xffff + RECORD_64 + LOCATOR_64 };
    unsigned char *tail = malloc(TAIL);
    const uint64_t size = in->archive->size, n = size < TAIL ? size : TAIL;
    uint64_t begin = 0;
    const ssize_t got = tail ? pread(in->fd, tail, (size_t)n, (off_t)(size - n)) : -1;
    for (ssize_t i = got - RECORD; i >= 0 && (uint64_t)got == n; --i) {
        const unsigned char *p = tail + i;
        if (memcmp(p, "PK\5\6", 4) != 0 || (uint64_t)i + RECORD + get_little(p + 20, 2) > n)
            continue;
        uint64_t end = size - n + (uint64_t)i, list = get_little(p + 12, 4) + get_little(p + 16, 4);
        const unsigned char *wide = p - LOCATOR_64 - RECORD_64;
        if (i >= LOCATOR_64 + RECORD_64 && !memcmp(p - LOCATOR_64, "PK\6\7", 4) && !memcmp(wide, "PK\6\6", 4)) {
            end -= LOCATOR_64 + RECORD_64;
            list = get_little(wide + 40, 8) + get_little(wide + 48, 8);
        }
        begin = list < end ? end - list : 0;
        break;
    }
    free(tail);
    return begin;
}

/* The archive that is read has no further entry. *more: another has been opened behind it. */
static gx_status end_archive(gx_input *in, bool *more, gx_error *err)
{
    gx_archive *a = in->archive;
    const bool tar = (archive_format(a->reader) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
    const uint64_t end = (uint64_t)archive_read_header_position(a->reader);
    gx_status st = GX_OK;
    *more = false;
    if (tar && a->seekable && a->start + end > a->size)
        return gx_input_damaged(in, "archive", "its last member is cut off", err);
    if (tar && (uint64_t)archive_filter_bytes(a->reader, -1) <= end)
        note_archive(in, GX_NOTE_UNENDED_ARCHIVES);
    if (tar)
        st = open_next_tar(in, more, err);
    else if (!a->seekable)
        st = look_for_next_zip(in, err);
    else if (find_zip_begin(in) > 0)
        note_archive(in, GX_NOTE_BYTES_BEFORE_ARCHIVES);
    if (st || *more)
        return st;
    for (size_t n = 1; !st && n && gx_input_is_packed(in);) /* so that the compressed stream is verified to its end */
        st = gx_input_read_file(in, a->room, READ_BYTES, &n, err);
    return st;
}

/* ---- hard links ---- */

static int by_name(const void *x, const void *y)
{
    return strcmp(((const hard_link *)x)->name, ((const hard_link *)y)->name);
}

static int by_target(const void *x, const void *y)
{
    const hard_link *a = x, *b = y;
    const int order = strcmp(a->target, b->target);
    return order ? order : strcmp(a->name, b->name);
}

static void note_entry(const gx_input *in, gx_note_kind why, const char *name)
{
    char path[GX_MAX_NOTE_PATH];
    snprintf(path, sizeof path, "%s/%s", in->archive_path, name);
    gx_notes_add(in->notes, why, NULL, 0, path, 0);
}

static gx_status keep_link(gx_input *in, const char *name, const char *target, gx_error *err)
{
    gx_archive *a = in->archive;
    if (!a->again) {
        note_entry(in, GX_NOTE_HARD_LINK_ENTRIES, name);
        return GX_OK;
    }
    if (!gx_reserve(&a->links, &a->max_links, a->n_links + 1, sizeof *a->links))
        return gx_input_no_memory(in, err);
    a->links[a->n_links] = (hard_link){strdup(name), strdup(target), false};
    const hard_link *link = &a->links[a->n_links++];
    return link->name && link->target ? GX_OK : gx_input_no_memory(in, err);
}

/* A link to the file of that name which has not been given; NULL: there is none. */
static hard_link *find_link(const gx_archive *a, const char *target)
{
    GX_FIRST(size_t, i, 0, a->n_links, strcmp(a->links[i].target, target) >= 0);
    while (i < a->n_links && strcmp(a->links[i].target, target) == 0 && a->links[i].given)
        ++i;
    return i < a->n_links && strcmp(a->links[i].target, target) == 0 ? &a->links[i] : NULL;
}

/* Sort the links by targets; a link to a link becomes one to the latter's target. */
static gx_status sort_links(gx_input *in, gx_error *err)
{
    enum { MOST_LINKS = 8 }; /* from link to link; they may go round */
    gx_archive *a = in->archive;
    qsort(a->links, a->n_links, sizeof *a->links, by_name);
    for (size_t i = 0; i < a->n_links; ++i)
        for (unsigned n = 0; n < MOST_LINKS; ++n) {
            const hard_link wanted = {.name = a->links[i].target};
            const hard_link *to = bsearch(&wanted, a->links, a->n_links, sizeof *a->links, by_name);
            if (!to || to == &a->links[i])
                break;
            char *target = strdup(to->target);
            if (!target)
                return gx_input_no_memory(in, err);
            free(a->links[i].target);
            a->links[i].target = target;
        }
    qsort(a->links, a->n_links, sizeof *a->links, by_target);
    return GX_OK;
}

/* After a pass: begin another if links are left. *more: it has begun. */
static gx_status begin_pass(gx_input *in, bool *more, gx_error *err)
{
    gx_archive *a = in->archive;
    const bool some = a->pass == 0 || a->n_given > a->given_before;
    *more = false;
    if (a->n_given == a->n_links)
        return GX_OK;
    if (!some || a->pass == MOST_PASSES) {
        for (size_t i = 0; i < a->n_links; ++i)
            if (!a->links[i].given)
                note_entry(in, GX_NOTE_HARD_LINK_ENTRIES, a->links[i].name);
        return GX_OK;
    }
    gx_status st = a->pass++ == 0 ? sort_links(in, err) : GX_OK;
    a->given_before = a->n_given;
    *more = true;
    a->next.n = 0;
    if (!st)
        st = gx_input_restart_file(in, err);
    return st ? st : open_reader(in, 0, true, err);
}

/* ---- entries ---- */

typedef enum entry_kind { MEMBER, HARD_LINK, FOLDER, NAMELESS, PASSED_OVER } entry_kind;

static bool has_part(const char *name, bool (*is)(const char *part))
{
    for (; name; name = strchr(name, '/'), name = name ? name + 1 : NULL)
        if (is(name))
            return true;
    return false;
}

static bool is_hidden(const char *part)
{
    return *part == '.';
}

static bool is_parent(const char *part)
{
    return !strncmp(part, "..", 2) && (part[2] == '/' || part[2] == 0);
}

/* The name without "./" and "/" at its beginning. */
static const char *clean_name(const char *name)
{
    while (name && (!strncmp(name, "./", 2) || *name == '/'))
        name += 1 + (*name == '.');
    return name;
}

/* What the entry is; of one that is passed over, *why. */
static entry_kind classify(struct archive_entry *entry, const char *name, gx_note_kind *why)
{
    const unsigned type = archive_entry_filetype(entry);
    const bool hard = archive_entry_hardlink(entry) || archive_entry_hardlink_utf8(entry);
    if (type == AE_IFDIR)
        return FOLDER;
    if (!name)
        return NAMELESS;
    if (has_part(name, is_parent))
        *why = GX_NOTE_PARENT_ENTRIES;
    else if (has_part(name, is_hidden))
        *why = GX_NOTE_HIDDEN_ENTRIES;
    else if (type == AE_IFLNK)
        *why = GX_NOTE_LINK_ENTRIES;
    else if (type == AE_IFREG || (type == 0 && !hard && *name))
        return *name ? MEMBER : NAMELESS;
    else if (hard)
        return HARD_LINK;
    else
        *why = GX_NOTE_SPECIAL_ENTRIES;
    return PASSED_OVER;
}

/* Use the entry. *member: its bytes are to be read, as *name. */
static gx_status use_entry(gx_input *in, struct archive_entry *entry, const char **name, bool *member, gx_error *err)
{
    gx_archive *a = in->archive;
    gx_note_kind why = GX_NOTE_SPECIAL_ENTRIES;
    *name = archive_entry_pathname(entry);
    if (!*name)
        *name = archive_entry_pathname_utf8(entry);
    *name = clean_name(*name);
    const entry_kind kind = classify(entry, *name, &why);
    *member = kind == MEMBER;
    if (a->pass > 0) {
        hard_link *link = *name ? find_link(a, *name) : NULL;
        const unsigned type = archive_entry_filetype(entry);
        *member = link && (type == AE_IFREG || type == 0) && (*member || kind == PASSED_OVER);
        if (*member) {
            *name = link->name;
            link->given = true;
            ++a->n_given;
        }
        return GX_OK;
    }
    if (kind == NAMELESS)
        return gx_fail(err, GX_EINPUT, "%s:1: an entry of the archive has a name that cannot be read", in->path);
    if (kind == HARD_LINK) {
        const char *target = archive_entry_hardlink(entry);
        return keep_link(in, *name, clean_name(target ? target : archive_entry_hardlink_utf8(entry)), err);
    }
    if (kind == PASSED_OVER)
        note_entry(in, why, *name);
    return GX_OK;
}

/* Names are UTF-8 whatever the program's locale is: libarchive turns them into the locale's characters. */
gx_status gx_archive_next(gx_input *in, const char **name, bool *again, gx_error *err)
{
    gx_archive *a = in->archive;
    const locale_t before = a->utf8 ? uselocale(a->utf8) : (locale_t)0;
    gx_status st = GX_OK;
    bool member = false, more = true;
    *again = false;
    while (!st && !member && more) {
        struct archive_entry *entry;
        const int rc = archive_read_next_header(a->reader, &entry);
        if (rc == ARCHIVE_EOF) {
            st = end_archive(in, &more, err);
            if (!st && !more)
                st = begin_pass(in, &more, err);
        } else if (rc == ARCHIVE_RETRY || rc < ARCHIVE_WARN) { /* a second try skips the member with a damaged header */
            st = fail(in, err);
        } else {
            st = use_entry(in, entry, name, &member, err);
            *again = st == GX_EINPUT;
        }
    }
    if (before)
        uselocale(before);
    if (!member)
        *name = NULL;
    return st;
}
