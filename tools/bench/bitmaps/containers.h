/* containers.h: columns of a bitmap index in containers of 65,536 rows, each in the smallest of
 * three forms, as Roaring bitmaps have them (Chambi, Lemire, Kaser and Godin, "Better bitmap
 * performance with Roaring bitmaps", 2016).
 *
 *   list     2 bytes a row: its number within the container, rising
 *   bitmap   8,192 bytes: bit r % 32 of word r / 32 is row r of the container
 *   runs     4 bytes a run of rows: first | last << 16
 *
 * Unlike the atoms of a WAH column, whose places are sums of the lengths before them, each row or
 * run says where it lies. The containers of one place in all columns lie side by side, in the
 * order of the columns: a thread block, or a core, that works on some rows reads one stretch of
 * memory.
 */
#ifndef GX_TOOLS_BENCH_BITMAPS_CONTAINERS_H
#define GX_TOOLS_BENCH_BITMAPS_CONTAINERS_H

#include "tools/bench/bitmaps/wah.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GX_CONTAINER_ROWS 65536u
#define GX_CONTAINER_WORDS 2048u /* of 32 rows */

typedef enum gx_container_form { GX_CONTAINER_LIST, GX_CONTAINER_BITMAP, GX_CONTAINER_RUNS } gx_container_form;

/* Where a container lies. An empty one is a list of no rows. */
typedef struct gx_container {
    uint32_t begin; /* of its data, which begin at a multiple of 16 bytes, in units of 16 bytes */
    uint32_t n;     /* rows of a list, or runs; | form << 30 */
} gx_container;

/* Columns of equal numbers of rows. */
typedef struct gx_containers {
    uint64_t n_rows;
    uint32_t n_columns, n_places; /* containers of a column */
    gx_container *table;          /* [n_places][n_columns] */
    uint32_t *data;               /* [data_bytes / 4] the last bytes of a unit of 16 are 0 where unused */
    uint64_t data_bytes;          /* a multiple of 16 */
} gx_containers;

static inline gx_container_form gx_container_form_of(gx_container c)
{
    return (gx_container_form)(c.n >> 30);
}

static inline uint32_t gx_container_n(gx_container c)
{
    return c.n & 0x3fffffffu;
}

/* Bytes of its data that are used. */
uint32_t gx_container_bytes(gx_container c);

/* Make containers of WAH columns, all of as many rows, by up to n_threads threads. GX_ENOMEM;
 * GX_EUSAGE: the data take 64 GiB or more. Free them by gx_containers_close. */
gx_status gx_containers_open(gx_containers **out, const gx_wah *columns, uint32_t n_columns, uint32_t n_threads,
                             gx_error *err);
void gx_containers_close(gx_containers *c);

/* OR the containers at a place of columns [first, first + n) into words[GX_CONTAINER_WORDS]. */
void gx_containers_or(const gx_containers *c, uint32_t place, uint32_t first, uint32_t n, uint32_t *words);

#ifdef __cplusplus
}
#endif
#endif
