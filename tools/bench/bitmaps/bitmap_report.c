#include "tools/bench/bitmaps/bitmap_report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/common.h"
#include "tools/bench/query_draw.h"
#include "tools/cli/cli.h"

bitmap_table *bitmap_add_table(bitmap_report *r, const char *name, const char *columns, const char *format, ...)
{
    bitmap_table *const t = calloc(1, sizeof *t);
    va_list args;
    if (!t || r->n_tables == BITMAP_MAX_TABLES)
        exit(cli_fail(GX_ENOMEM, "no memory for a table"));
    r->tables[r->n_tables++] = t;
    t->name = name;
    va_start(args, format);
    vsnprintf(t->title, sizeof t->title, format, args);
    va_end(args);
    while (*columns) {
        const size_t len = strcspn(columns, "|");
        bitmap_add_column(t, "%.*s", (int)len, columns);
        columns += len + (columns[len] == '|');
    }
    return t;
}

void bitmap_add_column(bitmap_table *t, const char *format, ...)
{
    va_list args;
    if (t->n_columns == BITMAP_MAX_COLUMNS)
        return;
    va_start(args, format);
    vsnprintf(t->columns[t->n_columns++], sizeof *t->columns, format, args);
    va_end(args);
}

double *bitmap_add_row(bitmap_table *t, const char *format, ...)
{
    const uint32_t row = t->n_rows < BITMAP_MAX_ROWS ? t->n_rows++ : BITMAP_MAX_ROWS - 1;
    va_list args;
    va_start(args, format);
    vsnprintf(t->rows[row], sizeof *t->rows, format, args);
    va_end(args);
    for (uint32_t i = 0; i < BITMAP_MAX_COLUMNS; ++i)
        t->values[row][i] = -1;
    return t->values[row];
}

/* ---- printing ---- */

/* Four digits, or all of a whole number; a gap is empty. */
static const char *number_text(double x, char text[32])
{
    if (x < 0)
        return "";
    const int decimals = x == (double)(int64_t)x ? 0 : x < 1 ? 4 : x < 10 ? 3 : x < 100 ? 2 : x < 1000 ? 1 : 0;
    snprintf(text, 32, "%.*f", decimals, x);
    return text;
}

static void print_table(const bitmap_table *t)
{
    char text[32];
    int first = 0, widths[BITMAP_MAX_COLUMNS];
    for (uint32_t i = 0; i < t->n_rows; ++i)
        first = (int)strlen(t->rows[i]) > first ? (int)strlen(t->rows[i]) : first;
    printf("\n%s\n%*s", t->title, first, "");
    for (uint32_t k = 0; k < t->n_columns; ++k) {
        widths[k] = (int)strlen(t->columns[k]);
        for (uint32_t i = 0; i < t->n_rows; ++i) {
            const int len = (int)strlen(number_text(t->values[i][k], text));
            widths[k] = len > widths[k] ? len : widths[k];
        }
        printf("  %*s", widths[k], t->columns[k]);
    }
    puts("");
    for (uint32_t i = 0; i < t->n_rows; ++i) {
        printf("%-*s", first, t->rows[i]);
        for (uint32_t k = 0; k < t->n_columns; ++k)
            printf("  %*s", widths[k], number_text(t->values[i][k], text));
        puts("");
    }
}

static void print_csv(const bitmap_table *t)
{
    for (uint32_t i = 0; i < t->n_rows; ++i)
        for (uint32_t k = 0; k < t->n_columns; ++k)
            if (t->values[i][k] >= 0)
                printf("%s,\"%s\",\"%s\",\"%s\",%.9g\n", t->name, t->title, t->rows[i], t->columns[k], t->values[i][k]);
}

static int print_json(const bitmap_report *r)
{
    json_t *const tables = json_array(), *const root = json_object();
    json_object_set_new(root, "schema", json_integer(1));
    bench_put_machine(root, r->seed);
    json_object_set_new(root, "gpu", *r->gpu ? json_string(r->gpu) : json_null());
    json_object_set_new(root, "tables", tables);
    for (uint32_t n = 0; n < r->n_tables; ++n) {
        const bitmap_table *const t = r->tables[n];
        json_t *const rows = json_array();
        for (uint32_t i = 0; i < t->n_rows; ++i) {
            json_t *const values = json_object();
            for (uint32_t k = 0; k < t->n_columns; ++k)
                if (t->values[i][k] >= 0)
                    json_object_set_new(values, t->columns[k], json_real(t->values[i][k]));
            json_array_append_new(rows, json_pack("{s:s, s:o}", "row", t->rows[i], "values", values));
        }
        json_array_append_new(tables, json_pack("{s:s, s:s, s:o}", "name", t->name, "title", t->title, "rows", rows));
    }
    return bench_print_json(root);
}

int bitmap_print(const bitmap_report *r, bitmap_format format)
{
    if (format == BITMAP_JSON)
        return print_json(r);
    if (format == BITMAP_CSV)
        puts("table,title,row,column,value");
    else
        bench_print_machine(r->seed);
    if (format == BITMAP_TABLE && *r->gpu)
        printf("GPU: %s\n", r->gpu);
    for (uint32_t i = 0; i < r->n_tables; ++i)
        (format == BITMAP_CSV ? print_csv : print_table)(r->tables[i]);
    return 0;
}

/* ---- plots ---- */

/* Bars: a group a row of the table, a colour a column; the axis is logarithmic, as the paper's are. */
static int plot_table(const bitmap_report *r, const bitmap_table *t, const char *dir)
{
    int code = 0;
    FILE *const f = draw_begin(dir, t->name, &code);
    if (!f)
        return code;
    bench_put_title(f, t->title, &(bench_subject){NULL, NULL, r->gpu});
    fprintf(f,
            "set format y '%%g'\nset style data histograms\nset style fill solid 0.7\nset logscale y\nset grid y\n"
            "set key outside right\nset xtics rotate by -30\nset ylabel '%s'\n$bars << END\nrow",
            t->axis);
    for (uint32_t k = 0; k < t->n_columns; ++k)
        fprintf(f, " \"%s\"", t->columns[k]);
    for (uint32_t i = 0; i < t->n_rows; ++i) {
        fprintf(f, "\n\"%s\"", t->rows[i]);
        for (uint32_t k = 0; k < t->n_columns; ++k)
            if (t->values[i][k] > 0)
                fprintf(f, " %.9g", t->values[i][k]);
            else
                fputs(" NaN", f);
    }
    fputs("\nEND\n", f);
    for (int form = 0; form < DRAW_FORMATS; ++form) {
        draw_format(f, t->name, form);
        for (uint32_t k = 0; k < t->n_columns; ++k)
            fprintf(f, "%s$bars using %u:xtic(1) title columnheader", k ? ", " : "", k + 2);
        fputs("\nunset output\n", f);
    }
    return draw_end(f, dir, t->name);
}

int bitmap_plot(const bitmap_report *r, const char *dir)
{
    int code = 0;
    for (uint32_t i = 0; i < r->n_tables && !code; ++i)
        if (r->tables[i]->axis)
            code = plot_table(r, r->tables[i], dir);
    return code;
}

void bitmap_free_report(bitmap_report *r)
{
    for (uint32_t i = 0; i < r->n_tables; ++i)
        free(r->tables[i]);
    r->n_tables = 0;
}
