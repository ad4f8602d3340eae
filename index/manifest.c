#include "index/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "engine/files/atomic_file.h"
#include "engine/files/temporary_file.h"
#include "engine/status.h"
#include "engine/text/ascii.h"
#include "engine/text/json_text.h"

#define HEAD "gpuidx collection 1 "
#define HEAD_BYTES (sizeof HEAD - 1 + 16 + 1) /* the checksum in 16 hexadecimal digits, and a line feed */
#define MAX_BYTES ((off_t)64 << 20)

char *gx_path_in(const char *dir, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

void gx_manifest_free(gx_manifest *m)
{
    free(m->parts);
    *m = (gx_manifest){0};
}

/* ---- reading ---- */

/* A place in the manifest, for messages. */
typedef struct reading {
    const char *path;
    gx_error *err;
    gx_status st;
} reading;

static void refuse(reading *r, const char *what)
{
    if (r->st == GX_OK)
        r->st = gx_fail(r->err, GX_ECORRUPT, "%s: %s", r->path, what);
}

static uint64_t read_number(reading *r, const json_t *o, const char *key, uint64_t most)
{
    const json_t *v = json_object_get(o, key);
    const json_int_t n = json_integer_value(v);
    char what[96];
    if (json_is_integer(v) && n >= 0 && (uint64_t)n <= most)
        return (uint64_t)n;
    snprintf(what, sizeof what, "'%s' is missing, or no number up to %" PRIu64, key, most);
    refuse(r, what);
    return 0;
}

/* n_bytes bytes in hexadecimal digits. */
static void read_hex(reading *r, const json_t *o, const char *key, uint8_t *to, size_t n_bytes)
{
    const char *s = json_string_value(json_object_get(o, key));
    char what[96];
    bool good = s && strlen(s) == 2 * n_bytes;
    for (size_t i = 0; good && i < 2 * n_bytes; ++i)
        good = gx_is_hex(s[i]);
    for (size_t i = 0; good && i < n_bytes; ++i) {
        const char pair[3] = {s[2 * i], s[2 * i + 1], 0};
        to[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    snprintf(what, sizeof what, "'%s' is missing, or not %zu hexadecimal digits", key, 2 * n_bytes);
    if (!good)
        refuse(r, what);
}

/* A name of a file in the folder: it leads nowhere else. */
static void read_file_name(reading *r, const json_t *o, char to[GX_MAX_PART_NAME + 1])
{
    const char *s = json_string_value(json_object_get(o, "file"));
    bool good = s && *s && *s != '.' && strlen(s) <= GX_MAX_PART_NAME;
    for (const char *p = s; good && *p; ++p)
        good = gx_is_letter_or_digit(*p) || *p == '-' || *p == '.' || *p == '_';
    if (good)
        strcpy(to, s);
    else
        refuse(r, "the name of a file is missing, or is none of this folder's");
}

static uint64_t read_checksum(reading *r, const json_t *o)
{
    uint8_t bytes[8] = {0};
    uint64_t sum = 0;
    read_hex(r, o, "checksum", bytes, sizeof bytes);
    for (int i = 0; i < 8; ++i)
        sum = sum << 8 | bytes[i];
    return sum;
}

static void read_part(reading *r, const json_t *o, gx_manifest_part *p)
{
    const json_t *d = json_object_get(o, "deletes");
    read_file_name(r, o, p->file);
    read_hex(r, o, "uuid", p->uuid, sizeof p->uuid);
    p->bytes = read_number(r, o, "bytes", INT64_MAX);
    p->n_docs = (uint32_t)read_number(r, o, "documents", UINT32_MAX - 1);
    p->n_tokens = read_number(r, o, "tokens", INT64_MAX);
    if (!d)
        return;
    read_file_name(r, d, p->deletes.file);
    p->deletes.bytes = read_number(r, d, "bytes", INT64_MAX);
    p->deletes.checksum = read_checksum(r, d);
    p->deletes.n_docs = (uint32_t)read_number(r, d, "documents", p->n_docs);
    p->deletes.n_tokens = read_number(r, d, "tokens", p->n_tokens);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each part has a file of its own. */
static void check_names(reading *r, const gx_manifest *m)
{
    const char **names = malloc((m->n_parts + 1ull) * sizeof *names);
    char what[GX_MAX_PART_NAME + 64];
    if (!names) {
        r->st = gx_fail(r->err, GX_ENOMEM, "%s: no memory for %u names", r->path, m->n_parts);
        return;
    }
    for (uint32_t i = 0; i < m->n_parts; ++i)
        names[i] = m->parts[i].file;
    qsort(names, m->n_parts, sizeof *names, by_name);
    for (uint32_t i = 1; i < m->n_parts; ++i)
        if (strcmp(names[i - 1], names[i]) == 0) {
            snprintf(what, sizeof what, "it names the part %s twice", names[i]);
            refuse(r, what);
        }
    free(names);
}

static void read_object(reading *r, const json_t *root, gx_manifest *m)
{
    const json_t *parts = json_object_get(root, "parts");
    const size_t n = json_array_size(parts);
    m->commit = read_number(r, root, "commit", INT64_MAX);
    m->next = read_number(r, root, "next", INT64_MAX);
    read_hex(r, root, "uuid", m->uuid, sizeof m->uuid);
    if (n == 0 || n > GX_MAX_PARTS) {
        refuse(r, "'parts' is missing, or not a list of 1 to 4096");
        return;
    }
    if (!(m->parts = calloc(n, sizeof *m->parts))) {
        r->st = gx_fail(r->err, GX_ENOMEM, "%s: no memory for %zu parts", r->path, n);
        return;
    }
    for (m->n_parts = 0; r->st == GX_OK && m->n_parts < n; ++m->n_parts)
        read_part(r, json_array_get(parts, m->n_parts), &m->parts[m->n_parts]);
    if (r->st == GX_OK)
        check_names(r, m);
}

static gx_status parse(gx_manifest *out, const char *path, const char *text, size_t n, gx_error *err)
{
    reading r = {path, err, GX_OK};
    gx_manifest m = {0};
    char sum[17];
    if (n <= HEAD_BYTES || memcmp(text, HEAD, sizeof HEAD - 1) != 0 || text[HEAD_BYTES - 1] != '\n')
        return gx_fail(err, GX_ECORRUPT,
                       "%s: this is no manifest of a collection, or one of a newer gpuidx, or it is cut short", path);
    snprintf(sum, sizeof sum, "%016" PRIx64, (uint64_t)XXH3_64bits(text + HEAD_BYTES, n - HEAD_BYTES));
    if (memcmp(sum, text + sizeof HEAD - 1, 16) != 0)
        return gx_fail(err, GX_ECORRUPT, "%s: its checksum is %s, not %.16s: the file is damaged or cut short", path,
                       sum, text + sizeof HEAD - 1);
    json_error_t why;
    json_t *root = gx_json_load(text + HEAD_BYTES, n - HEAD_BYTES, 0, &why);
    if (!root)
        return json_error_code(&why) == json_error_out_of_memory
                   ? gx_fail(err, GX_ENOMEM, "%s: no memory to read it", path)
                   : gx_fail(err, GX_ECORRUPT, "%s: it is no JSON: %s", path, why.text);
    read_object(&r, root, &m);
    m.checksum = XXH3_64bits(text + HEAD_BYTES, n - HEAD_BYTES);
    json_decref(root);
    if (r.st == GX_OK)
        *out = m;
    else
        gx_manifest_free(&m);
    return r.st;
}

static gx_status open_failed(const char *dir, const char *path, int e, gx_error *err)
{
    struct stat s;
    if (e != ENOENT && e != ENOTDIR)
        return gx_fail(err, GX_EIO, "cannot open %s: %s", path, strerror(e));
    if (stat(dir, &s) != 0)
        return gx_fail(err, gx_status_of_errno(errno), "cannot open %s: %s", dir, strerror(errno));
    return gx_fail(err, GX_ENOTFOUND,
                   S_ISDIR(s.st_mode) ? "%s is a folder without a %s: it is no collection (gpuidx collect makes one)"
                                      : "%s is a file, and no collection with a %s (gpuidx collect makes one)",
                   dir, GX_MANIFEST_NAME);
}

gx_status gx_manifest_read(gx_manifest *out, int dir_fd, const char *dir, gx_error *err)
{
    *out = (gx_manifest){0};
    char *path = gx_path_in(dir, GX_MANIFEST_NAME), *text = NULL;
    if (!path)
        return gx_fail(err, GX_ENOMEM, "out of memory");
    struct stat s;
    gx_status st = GX_OK;
    const int fd = openat(dir_fd, gx_name_in(dir_fd, path), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        st = open_failed(dir, path, errno, err);
    else if (fstat(fd, &s) != 0)
        st = gx_fail(err, GX_EIO, "cannot look at %s: %s", path, strerror(errno));
    else if (!S_ISREG(s.st_mode) || s.st_size > MAX_BYTES)
        st = gx_fail(err, GX_ECORRUPT, "%s: this is no manifest of a collection", path);
    else if (!(text = malloc((size_t)s.st_size + 1)))
        st = gx_fail(err, GX_ENOMEM, "%s: no memory to read it", path);
    else if ((errno = gx_pread_all(fd, text, (size_t)s.st_size, 0)))
        st = gx_fail(err, GX_EIO, "cannot read %s: %s", path, strerror(errno));
    else
        st = parse(out, path, text, (size_t)s.st_size, err);
    if (fd >= 0)
        close(fd);
    free(text);
    free(path);
    return st;
}

bool gx_manifest_is_last(const gx_manifest *m, int dir_fd)
{
    char head[HEAD_BYTES], want[HEAD_BYTES + 1];
    const int fd = openat(dir_fd, GX_MANIFEST_NAME, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const bool read = fd >= 0 && gx_pread_all(fd, head, sizeof head, 0) == 0;
    if (fd >= 0)
        close(fd);
    snprintf(want, sizeof want, HEAD "%016" PRIx64 "\n", m->checksum);
    return read && memcmp(head, want, sizeof head) == 0;
}

/* ---- writing ---- */

static void put_hex(json_t *o, const char *key, const uint8_t *bytes, size_t n)
{
    char text[64] = "";
    for (size_t i = 0; i < n && 2 * i + 3 <= sizeof text; ++i)
        sprintf(text + 2 * i, "%02x", bytes[i]);
    json_object_set_new(o, key, json_string(text));
}

static json_t *json_of_part(const gx_manifest_part *p)
{
    json_t *o = json_pack("{s:s, s:I, s:I, s:I}", "file", p->file, "bytes", (json_int_t)p->bytes, "documents",
                          (json_int_t)p->n_docs, "tokens", (json_int_t)p->n_tokens);
    put_hex(o, "uuid", p->uuid, sizeof p->uuid);
    if (!p->deletes.file[0])
        return o;
    char sum[17];
    snprintf(sum, sizeof sum, "%016" PRIx64, p->deletes.checksum);
    json_object_set_new(o, "deletes",
                        json_pack("{s:s, s:I, s:s, s:I, s:I}", "file", p->deletes.file, "bytes",
                                  (json_int_t)p->deletes.bytes, "checksum", sum, "documents",
                                  (json_int_t)p->deletes.n_docs, "tokens", (json_int_t)p->deletes.n_tokens));
    return o;
}

/* The text behind the head, with a line feed; the caller frees. NULL: no memory. */
static char *make_text(const gx_manifest *m)
{
    json_t *parts = json_array();
    char *text = NULL, *json;
    for (uint32_t i = 0; i < m->n_parts; ++i)
        json_array_append_new(parts, json_of_part(&m->parts[i]));
    json_t *root =
        json_pack("{s:I, s:I, s:o}", "commit", (json_int_t)m->commit, "next", (json_int_t)m->next, "parts", parts);
    put_hex(root, "uuid", m->uuid, sizeof m->uuid);
    json = root && json_array_size(parts) == m->n_parts ? gx_json_dump(root, JSON_INDENT(1)) : NULL;
    json_decref(root);
    if (json && asprintf(&text, "%s\n", json) < 0)
        text = NULL;
    free(json);
    return text;
}

/* What the manifest names is on disk before it has its name. */
static gx_status sync_files(const gx_place *place, const char *dir, gx_error *err)
{
    int e = place->unsynced ? gx_unsynced_sync(place->unsynced) : 0;
    if (!e && place->unsynced)
        e = gx_fsync(place->dir_fd);
    return e ? gx_fail(err, GX_EIO, "cannot write the files of %s to disk: %s", dir, strerror(e)) : GX_OK;
}

gx_status gx_manifest_write(gx_manifest *m, const gx_place *place, const char *dir, bool replace, bool *placed,
                            gx_error *err)
{
    const gx_place own = {place->dir_fd, place->like, NULL};
    char *path = gx_path_in(dir, GX_MANIFEST_NAME), *text = make_text(m);
    gx_atomic_file f = GX_ATOMIC_FILE_INIT;
    gx_status st = path && text ? gx_atomic_file_open_in(&f, &own, path, replace ? GX_ATOMIC_FILE_FORCE : 0, err)
                                : gx_fail(err, GX_ENOMEM, "no memory for the manifest of %s", dir);
    if (st == GX_OK)
        st = gx_atomic_file_stream(&f, err);
    if (st == GX_OK) {
        m->checksum = XXH3_64bits(text, strlen(text));
        fprintf(f.file, HEAD "%016" PRIx64 "\n%s", m->checksum, text);
        fflush(f.file); /* now, so that one step of the file system's journal has it and what sync_files syncs */
        (void)sync_file_range(f.fd, 0, 0, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
        st = sync_files(place, dir, err);
    }
    if (st == GX_OK)
        st = gx_atomic_file_sync(&f, err);
    if (st == GX_OK)
        st = gx_atomic_file_commit(&f, err);
    *placed = f.committed;
    gx_atomic_file_close(&f);
    free(text);
    free(path);
    return st;
}
