/* bitmap_report.h: tables of numbers, printed as text, JSON or CSV, and drawn as bars. */
#ifndef GX_TOOLS_BENCH_BITMAPS_BITMAP_REPORT_H
#define GX_TOOLS_BENCH_BITMAPS_BITMAP_REPORT_H

#include "engine/api/gpuidx.h"

typedef enum bitmap_format { BITMAP_TABLE, BITMAP_JSON, BITMAP_CSV } bitmap_format;

enum { BITMAP_MAX_COLUMNS = 14, BITMAP_MAX_ROWS = 48, BITMAP_MAX_TABLES = 48 };

/* Numbers below 0 are gaps: nothing was measured. */
typedef struct bitmap_table {
    const char *name; /* in JSON and CSV, and of the plot's file */
    char title[200];
    uint32_t n_columns, n_rows;
    char columns[BITMAP_MAX_COLUMNS][32]; /* with the unit */
    char rows[BITMAP_MAX_ROWS][48];
    double values[BITMAP_MAX_ROWS][BITMAP_MAX_COLUMNS];
    const char *axis; /* of a plot; NULL: none is drawn */
} bitmap_table;

typedef struct bitmap_report {
    bitmap_table *tables[BITMAP_MAX_TABLES];
    uint32_t n_tables;
    uint64_t seed;
    char gpu[128]; /* empty: none was measured */
} bitmap_report;

/* A table without rows, which the report owns. The columns are separated by '|'. Ends the program
 * where there is no memory. */
bitmap_table *bitmap_add_table(bitmap_report *r, const char *name, const char *columns, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void bitmap_add_column(bitmap_table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A row of gaps; its values. */
double *bitmap_add_row(bitmap_table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

int bitmap_print(const bitmap_report *r, bitmap_format format); /* the exit code */
int bitmap_plot(const bitmap_report *r, const char *dir);       /* the exit code */
void bitmap_free_report(bitmap_report *r);

#endif
