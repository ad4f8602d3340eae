/* section_writer.h: puts sections together into an index file, which appears whole or not at all.
 *
 *   open: a temporary file -> begin, add, add, ... for each section -> finish: header, sync, rename
 *   -> close
 */
#ifndef GX_INDEX_WRITE_SECTION_WRITER_H
#define GX_INDEX_WRITE_SECTION_WRITER_H

#include "engine/files/atomic_file.h"
#include "engine/files/spool.h"
#include "index/format.h"

typedef struct gx_section_writer gx_section_writer;

#define GX_MAX_SECTIONS_WRITTEN 20u

/* force: replace an existing file. most: a multiple of 4 up to GX_MAX_SECTIONS_WRITTEN; the file
 * will have most - 3 to most sections. Statuses of gx_atomic_file_open. */
gx_status gx_section_writer_open(gx_section_writer **out, const char *path, const gx_place *place, unsigned flags,
                                 uint32_t most, gx_error *err);

/* End the current section, if any, and begin the next. Its flags follow from its kind. */
gx_status gx_section_writer_begin(gx_section_writer *s, uint32_t kind, uint64_t param, gx_error *err);
gx_status gx_section_writer_add(gx_section_writer *s, const void *data, size_t n, gx_error *err);
gx_status gx_section_writer_add_spool(gx_section_writer *s, const gx_spool *from, gx_error *err);
gx_status gx_section_writer_add_spooled(gx_section_writer *s, const gx_spool *from, uint64_t offset, uint64_t n,
                                        gx_error *err);

/* Reserve n <= GX_SECTION_WRITER_RESERVE bytes at *room. The caller writes there, then counts what
 * it wrote with gx_section_writer_commit. */
#define GX_SECTION_WRITER_RESERVE (64u << 10)
gx_status gx_section_writer_reserve(gx_section_writer *s, size_t n, uint8_t **room, gx_error *err);
void gx_section_writer_commit(gx_section_writer *s, size_t n);
uint64_t gx_section_writer_section_bytes(const gx_section_writer *s); /* of the current section */

/* End the current section, if any. Begin one of exactly so many bytes, which threads put together by
 * parts: the functions above but gx_section_writer_begin write to a part, then gx_section_writer_join
 * ends it. Several parts, also of one section, may be written at once. Between
 * gx_section_writer_split and the next begin nothing is written to s itself. */
typedef enum gx_section_part {
    GX_SECTION_WHOLE, /* what is added is written, and it is the whole section */
    GX_SECTION_HASH,  /* it is the whole section, which is not written, but gets its checksum */
    GX_SECTION_SLICE, /* what is added is written */
} gx_section_part;

gx_status gx_section_writer_split(gx_section **section, gx_section_writer *s, uint32_t kind, uint64_t param,
                                  uint64_t bytes, gx_error *err);
/* A part of the section, from byte `from` on. GX_ENOMEM. */
gx_status gx_section_writer_open_part(gx_section_writer **part, const gx_section_writer *s, gx_section *section,
                                      gx_section_part kind, uint64_t from, gx_error *err);
gx_status gx_section_writer_join(gx_section_writer *part, gx_error *err);
void gx_section_writer_close_part(gx_section_writer *part); /* NULL is fine */

/* Let parts of the sections from `first` to the end of the last one that was split write to the mapped file,
 * if it is in memory (tmpfs): there they do not wait for each other, as they do in write(). The file's pages are
 * allocated first, so that memory does not get short meanwhile; where that fails, or there are few bytes, nothing
 * changes. To be called when no part is open; parts must be closed before the next gx_section_writer_begin or
 * _finish. */
void gx_section_writer_map(gx_section_writer *s, const gx_section *first);

/* Complete *h (magic, version, sizes, device range, checksum), write it and the section table,
 * sync, and give the file its name: GX_EEXISTS if there is one by then, unless force. With unnamed
 * it gets no name, and lives until gx_section_writer_close. */
gx_status gx_section_writer_finish(gx_section_writer *s, gx_header *h, bool unnamed, gx_error *err);

/* Where a file that was finished without a name can be opened; the caller frees the string. NULL:
 * no memory. */
char *gx_section_writer_unnamed_path(const gx_section_writer *s);

/* Free the writer. Unless gx_section_writer_finish has succeeded, nothing remains on disk. */
void gx_section_writer_close(gx_section_writer *s);

#endif
