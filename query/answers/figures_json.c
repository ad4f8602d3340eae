/* figures_json.c: figures of the matches as JSON. */
#include <math.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"

void gx_text_add_wide(gx_text *t, int64_t high, uint64_t low)
{
    char digits[48], *p = digits + sizeof digits;
    unsigned __int128 n = (unsigned __int128)(uint64_t)high << 64 | low;
    if (high < 0)
        n = -n;
    do {
        *--p = (char)('0' + (int)(n % 10));
        n /= 10;
    } while (n);
    if (high < 0)
        *--p = '-';
    gx_text_add(t, p, (size_t)(digits + sizeof digits - p));
}

/* A double as a filter reads it, with a point, or null. */
static void put_real(gx_text *t, double x)
{
    const gx_value v = {.real = x};
    if (isfinite(x))
        gx_text_add_json_value(t, GX_ATTRIBUTE_FLOAT, &v);
    else
        gx_text_add_string(t, "null");
}

static void put_value(gx_text *t, const gx_figures *f, const gx_value *v)
{
    if (f->n)
        gx_text_add_json_value(t, f->type, v);
    else
        gx_text_add_string(t, "null");
}

/* The average of dates is shown as the second that it lies in. */
static void put_average(gx_text *t, const gx_figures *f)
{
    const gx_value second = {.number = f->type == GX_ATTRIBUTE_DATE ? (int64_t)floor(f->average) : 0};
    if (f->type == GX_ATTRIBUTE_DATE || !f->n)
        put_value(t, f, &second);
    else
        put_real(t, f->average);
}

void gx_text_add_json_figures(gx_text *t, const gx_figures *f)
{
    gx_text_add_format(t, "{\"n\":%llu", (unsigned long long)f->n);
    if (f->figures & GX_FIGURE_MIN) {
        gx_text_add_string(t, ",\"min\":");
        put_value(t, f, &f->least);
    }
    if (f->figures & GX_FIGURE_MAX) {
        gx_text_add_string(t, ",\"max\":");
        put_value(t, f, &f->greatest);
    }
    if (f->figures & GX_FIGURE_SUM) {
        gx_text_add_string(t, ",\"sum\":");
        if (f->type == GX_ATTRIBUTE_INT)
            gx_text_add_wide(t, f->sum_high, f->sum_low);
        else
            put_real(t, f->sum);
    }
    if (f->figures & GX_FIGURE_AVERAGE) {
        gx_text_add_string(t, ",\"avg\":");
        put_average(t, f);
    }
    if (f->figures & GX_FIGURE_DISTINCT)
        gx_text_add_format(t, ",\"distinct\":%llu", (unsigned long long)f->distinct);
    for (uint32_t i = 0; i < f->n_percentiles; ++i) {
        gx_text_add_format(t, "%s\"%.9g\":", i ? "," : ",\"percentiles\":{", f->asked[i]);
        put_value(t, f, &f->percentiles[i]);
    }
    gx_text_add_string(t, f->n_percentiles ? "}}" : "}");
}
