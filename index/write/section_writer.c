#include "index/write/section_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "engine/files/atomic_file.h"
#include "engine/files/temporary_file.h"
#include "engine/hash.h"
#include "engine/status.h"

#define BUFFER_BYTES (256u << 10)
#define LEAST_MAPPED ((uint64_t)4 << 20) /* bytes */

/* The first section is begun before the number of sections is known. It begins at the same place
 * for any number of them in (most - 4, most]. */
static_assert(sizeof(gx_header) % GX_ALIGN == 0 && GX_ALIGN / sizeof(gx_section) == 4, "the first section is aligned");

struct gx_section_writer {
    gx_atomic_file out;
    gx_section table[GX_MAX_SECTIONS_WRITTEN];
    uint32_t n, most;
    gx_section *section;  /* the current one, or NULL */
    gx_section_part kind; /* of a part; GX_SECTION_WHOLE: of the writer itself, too */
    int fd;
    const char *path;
    uint64_t at;      /* where the next byte goes */
    uint64_t written; /* where the buffer's first byte goes */
    gx_hasher *hash;
    uint8_t *buffer;
    size_t n_buffer, n_hashed; /* of the buffer's bytes the first n_hashed are in the hash */
    uint8_t *map;              /* [map_bytes] of the file, from map_at on; NULL: bytes are written */
    uint64_t map_at;
    size_t map_bytes;
};

gx_status gx_section_writer_open(gx_section_writer **out, const char *path, const gx_place *place, unsigned flags,
                                 uint32_t most, gx_error *err)
{
    gx_status st = GX_OK;
    assert(most % 4 == 0 && most <= GX_MAX_SECTIONS_WRITTEN);
    *out = NULL;
    gx_section_writer *s = calloc(1, sizeof *s);
    if (!s)
        return gx_fail(err, GX_ENOMEM, "out of memory");
    s->out = GX_ATOMIC_FILE_INIT;
    s->most = most;
    s->hash = gx_hasher_open();
    s->buffer = malloc(BUFFER_BYTES);
    if (!s->hash || !s->buffer)
        st = gx_fail(err, GX_ENOMEM, "out of memory");
    else
        st = gx_atomic_file_open_in(&s->out, place, path, GX_ATOMIC_FILE_SEEK | flags, err);
    s->fd = s->out.fd;
    s->path = s->out.path;
    s->written = s->at = sizeof(gx_header) + most * sizeof(gx_section); /* what is before is written last, by finish */
    if (st == GX_OK)
        *out = s;
    else
        gx_section_writer_close(s);
    return st;
}

/* Write the buffer to the file. Returns 0 or an errno. */
static int write_buffer(const gx_section_writer *s)
{
    if (s->map)
        memcpy(s->map + (s->written - s->map_at), s->buffer, s->n_buffer);
    const int e = s->map ? 0 : gx_pwrite_all(s->fd, s->buffer, s->n_buffer, s->written);
    /* The disk begins with this piece now, so that little is left for the sync at the end. Whether it does so is of no
     * concern. Of a small file, whose sections share pages, it would write the same pages again and again. */
    if (s->n_buffer == BUFFER_BYTES)
        (void)sync_file_range(s->fd, (off_t)s->written, (off_t)s->n_buffer, SYNC_FILE_RANGE_WRITE);
    return e;
}

static gx_status flush_buffer(gx_section_writer *s, gx_error *err)
{
    if (s->n_buffer == 0)
        return GX_OK;
    if (s->kind != GX_SECTION_SLICE)
        gx_hasher_add(s->hash, s->buffer + s->n_hashed, s->n_buffer - s->n_hashed);
    const int e = s->kind != GX_SECTION_HASH ? write_buffer(s) : 0;
    s->written += s->n_buffer;
    s->n_buffer = s->n_hashed = 0;
    return e ? gx_fail(err, GX_EIO, "cannot write %s: %s", s->path, strerror(e)) : GX_OK;
}

gx_status gx_section_writer_add(gx_section_writer *s, const void *data, size_t n, gx_error *err)
{
    const uint8_t *p = data;
    s->at += n;
    while (n) {
        if (s->n_buffer == BUFFER_BYTES) {
            const gx_status st = flush_buffer(s, err);
            if (st != GX_OK)
                return st;
        }
        const size_t some = n < BUFFER_BYTES - s->n_buffer ? n : BUFFER_BYTES - s->n_buffer;
        memcpy(s->buffer + s->n_buffer, p, some);
        s->n_buffer += some;
        p += some;
        n -= some;
    }
    return GX_OK;
}

gx_status gx_section_writer_add_spool(gx_section_writer *s, const gx_spool *from, gx_error *err)
{
    return gx_section_writer_add_spooled(s, from, 0, gx_spool_bytes(from), err);
}

gx_status gx_section_writer_add_spooled(gx_section_writer *s, const gx_spool *from, uint64_t offset, uint64_t n,
                                        gx_error *err)
{
    const uint64_t bytes = offset + n;
    for (uint64_t at = offset; at < bytes;) {
        gx_status st = s->n_buffer == BUFFER_BYTES ? flush_buffer(s, err) : GX_OK;
        if (st != GX_OK)
            return st;
        const size_t room = BUFFER_BYTES - s->n_buffer;
        const size_t some = bytes - at < room ? (size_t)(bytes - at) : room;
        if ((st = gx_spool_read(from, at, s->buffer + s->n_buffer, some, err)) != GX_OK)
            return st;
        s->n_buffer += some;
        s->at += some;
        at += some;
    }
    return GX_OK;
}

gx_status gx_section_writer_reserve(gx_section_writer *s, size_t n, uint8_t **room, gx_error *err)
{
    assert(n <= GX_SECTION_WRITER_RESERVE);
    const gx_status st = BUFFER_BYTES - s->n_buffer < n ? flush_buffer(s, err) : GX_OK;
    *room = s->buffer + s->n_buffer;
    return st;
}

void gx_section_writer_commit(gx_section_writer *s, size_t n)
{
    s->n_buffer += n;
    s->at += n;
}

uint64_t gx_section_writer_section_bytes(const gx_section_writer *s)
{
    return s->at - s->section->offset;
}

/* A file in memory is faster by its map; on a disk, where each page that is touched first is a transaction of the file
 * system, write() is. */
static bool is_in_memory(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

void gx_section_writer_map(gx_section_writer *s, const gx_section *first)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = first->offset / page * page, n = s->at - at;
    if (!is_in_memory(s->fd) || n < LEAST_MAPPED || n > SIZE_MAX || fallocate(s->fd, 0, (off_t)at, (off_t)n) != 0)
        return;
    void *p = mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, (off_t)at);
    if (p == MAP_FAILED)
        return;
    s->map = p;
    s->map_at = at;
    s->map_bytes = (size_t)n;
}

static void unmap(gx_section_writer *s)
{
    if (s->map)
        munmap(s->map, s->map_bytes);
    s->map = NULL;
}

/* The current section is complete. */
static void end_section(gx_section_writer *s)
{
    if (!s->section)
        return;
    gx_hasher_add(s->hash, s->buffer + s->n_hashed, s->n_buffer - s->n_hashed);
    s->n_hashed = s->n_buffer;
    s->section->checksum = gx_hasher_get(s->hash);
    s->section->bytes = s->at - s->section->offset;
    s->section = NULL;
}

/* Enter a section that begins at the next byte into the table. */
static gx_status add_section(gx_section_writer *s, uint32_t kind, uint64_t param, gx_section **out, gx_error *err)
{
    if (s->n == s->most)
        return gx_fail(err, GX_EINTERNAL, "%s: more sections than announced", s->path);
    *out = &s->table[s->n++];
    **out = (gx_section){.kind = kind, .flags = gx_section_flags(kind), .offset = s->at, .param = param};
    return GX_OK;
}

gx_status gx_section_writer_begin(gx_section_writer *s, uint32_t kind, uint64_t param, gx_error *err)
{
    static const uint8_t zeros[GX_ALIGN];
    unmap(s);
    end_section(s);
    gx_status st = gx_section_writer_add(s, zeros, (size_t)(-s->at % GX_ALIGN), err);
    if (st == GX_OK)
        st = add_section(s, kind, param, &s->section, err);
    gx_hasher_start(s->hash);
    s->n_hashed = s->n_buffer;
    return st;
}

gx_status gx_section_writer_split(gx_section **section, gx_section_writer *s, uint32_t kind, uint64_t param,
                                  uint64_t bytes, gx_error *err)
{
    static const uint8_t zeros[GX_ALIGN];
    *section = NULL;
    end_section(s);
    gx_status st = gx_section_writer_add(s, zeros, (size_t)(-s->at % GX_ALIGN), err);
    if (st == GX_OK)
        st = flush_buffer(s, err);
    if (st == GX_OK)
        st = add_section(s, kind, param, section, err);
    if (st != GX_OK)
        return st;
    (*section)->bytes = bytes;
    s->at += bytes;
    s->written = s->at;
    return GX_OK;
}

gx_status gx_section_writer_open_part(gx_section_writer **out, const gx_section_writer *s, gx_section *section,
                                      gx_section_part kind, uint64_t from, gx_error *err)
{
    gx_section_writer *part = calloc(1, sizeof *part);
    *out = NULL;
    if (!part || !(part->hash = gx_hasher_open()) || !(part->buffer = malloc(BUFFER_BYTES))) {
        gx_section_writer_close_part(part);
        return gx_fail(err, GX_ENOMEM, "out of memory");
    }
    part->section = section;
    part->kind = kind;
    part->fd = s->fd;
    part->path = s->path;
    part->map = s->map;
    part->map_at = s->map_at;
    part->at = part->written = section->offset + from;
    *out = part;
    return GX_OK;
}

gx_status gx_section_writer_join(gx_section_writer *part, gx_error *err)
{
    const gx_status st = flush_buffer(part, err);
    const gx_section *section = part->section;
    if (st != GX_OK || part->kind == GX_SECTION_SLICE)
        return st;
    if (part->at != section->offset + section->bytes)
        return gx_fail(err, GX_EINTERNAL, "%s: a section is not as long as announced", part->path);
    end_section(part);
    return GX_OK;
}

void gx_section_writer_close_part(gx_section_writer *part)
{
    if (!part)
        return;
    gx_hasher_close(part->hash);
    free(part->buffer);
    free(part);
}

static gx_status write_header(gx_section_writer *s, gx_header *h, gx_error *err)
{
    memcpy(h->magic, GX_MAGIC, sizeof h->magic);
    h->version = GX_FORMAT_VERSION;
    h->header_bytes = sizeof *h;
    h->file_bytes = s->at;
    h->n_sections = s->n;
    h->device_offset = h->device_bytes = 0;
    for (uint32_t i = 0; i < s->n; ++i)
        if (s->table[i].flags & GX_SECTION_DEVICE) {
            if (h->device_offset == 0)
                h->device_offset = s->table[i].offset;
            h->device_bytes = s->table[i].offset + s->table[i].bytes - h->device_offset;
        }
    h->checksum = 0;
    gx_hasher_start(s->hash);
    gx_hasher_add(s->hash, h, sizeof *h);
    gx_hasher_add(s->hash, s->table, s->n * sizeof *s->table);
    h->checksum = gx_hasher_get(s->hash);
    struct stat now;
    int e = fstat(s->fd, &now) ? errno : 0;
    if (!e && now.st_size != (off_t)s->at) /* the last section may be empty */
        e = ftruncate(s->fd, (off_t)s->at) ? errno : 0;
    if (!e)
        e = gx_pwrite_all(s->fd, h, sizeof *h, 0);
    if (!e)
        e = gx_pwrite_all(s->fd, s->table, s->n * sizeof *s->table, sizeof *h);
    if (e)
        return gx_fail(err, GX_EIO, "cannot write %s: %s", s->out.path, strerror(e));
    return GX_OK;
}

gx_status gx_section_writer_finish(gx_section_writer *s, gx_header *h, bool unnamed, gx_error *err)
{
    gx_status st;
    unmap(s);
    end_section(s);
    if (s->n + 4 <= s->most)
        return gx_fail(err, GX_EINTERNAL, "%s: too few sections", s->out.path);
    if ((st = flush_buffer(s, err)) != GX_OK || (st = write_header(s, h, err)) != GX_OK || unnamed)
        return st; /* nobody finds a file without a name after a crash */
    if ((st = gx_atomic_file_sync(&s->out, err)) != GX_OK)
        return st;
    return gx_atomic_file_commit(&s->out, err);
}

char *gx_section_writer_unnamed_path(const gx_section_writer *s)
{
    char *path;
    if (s->out.temporary)
        return strdup(s->out.temporary);
    return asprintf(&path, "/proc/self/fd/%d", s->out.fd) < 0 ? NULL : path;
}

void gx_section_writer_close(gx_section_writer *s)
{
    if (!s)
        return;
    unmap(s);
    gx_atomic_file_close(&s->out);
    gx_hasher_close(s->hash);
    free(s->buffer);
    free(s);
}
