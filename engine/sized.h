/* sized.h: read and write public structs whose first member is their size.
 *
 * The caller and the library may have been compiled with different versions of a struct. A size
 * below that of the struct's first version is GX_EUSAGE, and so is one above GX_MAX_SIZE, which
 * only memory that nobody set holds. If the caller's struct is shorter, the missing members have
 * the library's defaults. If it is longer, the library ignores the members that it does not
 * know. */
#ifndef GX_ENGINE_SIZED_H
#define GX_ENGINE_SIZED_H

#include "engine/api/gpuidx.h"

/* The bytes of a struct up to the end of one member: the size of the version whose last member it
 * was. */
#define GX_SIZE_THROUGH(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))

/* The most bytes that any version of a public struct will have. */
#define GX_MAX_SIZE 4096u

/* GX_EUSAGE if size, the first member of the caller's struct `name`, is below least, the size of
 * the struct's first version, or above GX_MAX_SIZE. */
gx_status gx_sized_check(size_t size, size_t least, const char *name, gx_error *err);

/* Copy the caller's struct `given` over `own`, which holds own_size bytes of defaults, and set
 * own's size member to own_size. If given is NULL, own keeps its defaults. GX_EUSAGE: as
 * gx_sized_check says of given's size. */
gx_status gx_sized_read(void *own, size_t own_size, const void *given, size_t least, const char *name, gx_error *err);

/* Copy own into the caller's struct, up to the size that the caller has set in it. The size member
 * keeps the caller's value. GX_EUSAGE, and nothing is written: to is NULL, or as gx_sized_check
 * says of its size. */
gx_status gx_sized_write(void *to, const void *own, size_t own_size, size_t least);

/* Write a struct's defaults into `size` bytes at `to`, zeros behind them, and `size` into its size
 * member. If size is too small for the size member itself, nothing is written. */
void gx_sized_init(void *to, size_t size, const void *defaults, size_t defaults_size);

#endif
