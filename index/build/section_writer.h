/* section_writer.h: sections put together into an index file that appears whole or not at all.
 *
 *   open: a temporary file -> (begin, add, add, ...) a section -> ... -> seal: header, sync, rename
 *   -> close
 */
#ifndef GX_INDEX_BUILD_SECTION_WRITER_H
#define GX_INDEX_BUILD_SECTION_WRITER_H

#include "engine/spool.h"
#include "index/format.h"

typedef struct gx_sealer gx_sealer;

#define GX_MAX_SEALED 12u /* most sections; there must be more than GX_MAX_SEALED - 4 of them */

/* path lies in dir; both must outlive the sealer. */
gx_status gx_sealer_open(gx_sealer **out, const char *path, const char *dir, gx_error *err);

/* End the section before, begin the next, whose flags follow from its kind. */
gx_status gx_sealer_begin(gx_sealer *s, uint32_t kind, uint64_t param, gx_error *err);
gx_status gx_sealer_add(gx_sealer *s, const void *data, size_t n, gx_error *err);
gx_status gx_sealer_add_spool(gx_sealer *s, const gx_spool *from, gx_error *err);

/* Room for n <= GX_SEALER_ROOM more bytes, to be written by the caller and then counted by
 * gx_sealer_take. */
#define GX_SEALER_ROOM (64u << 10)
gx_status gx_sealer_room(gx_sealer *s, size_t n, uint8_t **room, gx_error *err);
void gx_sealer_take(gx_sealer *s, size_t n);
uint64_t gx_sealer_section_bytes(const gx_sealer *s); /* of the section so far */

/* Complete *h (magic, version, sizes, device range, checksum), write it and the section table,
 * sync, and give the file its name: GX_EEXISTS if there is one by then, unless force. */
gx_status gx_sealer_seal(gx_sealer *s, gx_header *h, bool force, gx_error *err);

/* Without a seal nothing remains on disk. */
void gx_sealer_close(gx_sealer *s);

#endif
