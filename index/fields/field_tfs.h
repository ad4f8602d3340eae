/* field_tfs.h: the tfs of a list's postings in all fields but the last, as FLDS has them (FORMAT.md).
 *
 *   tf of the posting        = sum over fields of the tf in the field
 *   tf in the last field     = tf - the sum of the others, not stored
 *   a list's bytes           the postings that each field has, those without the last field | field 0 | field 1 | ..
 *   field f                  its postings alone: the gap to the one before (Rice), its tf (gamma)
 *
 * A list whose postings are all in the last field alone has no bytes.
 */
#ifndef GX_INDEX_FIELDS_FIELD_TFS_H
#define GX_INDEX_FIELDS_FIELD_TFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GX_MAX_FIELDS 32u
#define GX_FIELD_TFS_SLACK 64u /* readable bytes behind a list's bytes */

/* A growing array of bytes. Its last bytes may be read 8 at a time. */
typedef struct gx_field_bytes {
    uint8_t *bytes;
    size_t n, max;
} gx_field_bytes;

/* Append the list's bytes. tfs[df]; field_tfs[df * (n_fields - 1)], posting by posting, whose sums are at most the tfs.
 * false: no memory. */
bool gx_field_tfs_encode(gx_field_bytes *out, const uint32_t *tfs, const uint32_t *field_tfs, uint32_t df,
                         uint32_t n_fields);

/* How many postings have a tf in each field, dfs[n_fields]. false: damaged. */
bool gx_field_tfs_count(const uint8_t *bytes, size_t n, uint32_t df, uint32_t n_fields, uint32_t *dfs);

/* Add the tfs to field_tfs[(n_fields - 1) * df], field by field, which is 0. false: damaged; nothing is written or
 * read outside. */
bool gx_field_tfs_decode(const uint8_t *bytes, size_t n, uint32_t df, uint32_t n_fields, uint32_t *field_tfs);

#endif
