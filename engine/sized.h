/* sized.h: reading and writing public structs that begin with their size.
 *
 * The one rule: a size below that of the struct's first version is GX_EUSAGE. Members beyond the
 * caller's size keep the library's defaults; members beyond the library's size are ignored. */
#ifndef GX_ENGINE_SIZED_H
#define GX_ENGINE_SIZED_H

#include "engine/gpuidx.h"

/* The bytes of a struct up to the end of one member: the size of the version that ended there. */
#define GX_SIZE_THROUGH(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))

/* Copy the caller's struct over own, which holds own_size bytes of defaults; own's size member
 * becomes own_size. given NULL: own stays as it is. least: the first version's size; name: the
 * struct's, for the message. */
gx_status gx_sized_read(void *own, size_t own_size, const void *given, size_t least, const char *name, gx_error *err);

/* Copy own into the caller's struct, whose size member the caller has set and keeps. GX_EUSAGE
 * where it is below least: nothing is written. */
gx_status gx_sized_write(void *to, const void *own, size_t own_size, size_t least);

/* Write a struct's defaults into `size` bytes at `to` and set its size member. A size that does not
 * hold the size member itself writes nothing. */
void gx_sized_init(void *to, size_t size, const void *defaults, size_t defaults_size);

#endif
