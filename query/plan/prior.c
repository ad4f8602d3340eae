#include "query/plan/prior.h"

#include <math.h>
#include <string.h>

#include "engine/status.h"
#include "engine/text/c_locale.h"
#include "index/read/collection.h"

#define FORMS "log|sat|linear"

/* ---- text ---- */

static bool take_key(const char **text, size_t *len, const char *key)
{
    const size_t n = strlen(key);
    if (*len < n || memcmp(*text, key, n) != 0)
        return false;
    *text += n;
    *len -= n;
    return true;
}

static gx_status read_option(gx_prior *p, const char *text, size_t len, gx_error *err)
{
    const char *value = text;
    size_t n = len;
    const int shown = (int)(len < 60 ? len : 60);
    if (take_key(&value, &n, "form=")) {
        const int form = gx_word_index(FORMS, value, n);
        p->form = (gx_prior_form)(form < 0 ? 0 : form);
        return form >= 0 ? GX_OK : gx_fail(err, GX_EUSAGE, "'%.*s' is none of form=log, sat, linear", shown, text);
    }
    const bool weight = take_key(&value, &n, "w=");
    if (!weight && !take_key(&value, &n, "half="))
        return gx_fail(err, GX_EUSAGE, "'%.*s' is none of w=, form=, half=", shown, text);
    double *const to = weight ? &p->weight : &p->half;
    if (gx_parse_float(value, n, to) || !(*to > 0))
        return gx_fail(err, GX_EUSAGE, "'%.*s' is no number above 0", shown, text);
    return GX_OK;
}

gx_status gx_prior_read(gx_prior *out, const char *text, gx_error *err)
{
    gx_prior p = {"", GX_PRIOR_LOG, 1, 1};
    const size_t name = strcspn(text, ":");
    gx_clear_error(err);
    if (name == 0 || name >= sizeof p.name)
        return gx_fail(err, GX_EUSAGE, "'%.60s' begins with no name of an attribute", text);
    memcpy(p.name, text, name);
    for (const char *at = text + name; *at;) {
        const size_t n = strcspn(++at, ",");
        const gx_status st = read_option(&p, at, n, err);
        if (st != GX_OK)
            return st;
        at += n;
    }
    *out = p;
    return GX_OK;
}

void gx_prior_write(const gx_prior *prior, char *text)
{
    static const char *const forms[] = {"log", "sat", "linear"};
    char weight[GX_VALUE_TEXT], half[GX_VALUE_TEXT];
    gx_print_float(prior->weight, weight);
    gx_print_float(prior->half, half);
    if (prior->weight == 0)
        strcpy(text, "off");
    else if (prior->form == GX_PRIOR_SAT)
        gx_print(text, GX_PRIOR_BYTES, "%s:w=%s,form=sat,half=%s", prior->name, weight, half);
    else
        gx_print(text, GX_PRIOR_BYTES, "%s:w=%s,form=%s", prior->name, weight, forms[prior->form]);
}

gx_status gx_prior_find(uint32_t *column, const gx_prior *prior, const gx_index *ix, gx_error *err)
{
    char why[GX_NO_ATTRIBUTE_TEXT];
    const size_t len = strnlen(prior->name, sizeof prior->name);
    if ((*column = gx_column_find(ix, prior->name, len, why)) == UINT32_MAX)
        return gx_fail(err, GX_EUSAGE, "prior: %s", why);
    const gx_column *c = &ix->columns[*column];
    if (c->type != GX_ATTRIBUTE_INT && c->type != GX_ATTRIBUTE_FLOAT)
        return gx_fail(err, GX_EUSAGE, "prior: %.*s is of type %s; a prior is of an int or a float", (int)c->name_len,
                       c->name, gx_attribute_type_name(c->type));
    if (!(prior->weight > 0) || !isfinite(prior->weight))
        return gx_fail(err, GX_EUSAGE, "prior: the weight is %g; it must be above 0", prior->weight);
    if ((unsigned)prior->form > GX_PRIOR_LINEAR)
        return gx_fail(err, GX_EUSAGE, "prior: form %d does not exist", (int)prior->form);
    if (prior->form == GX_PRIOR_SAT && (!(prior->half > 0) || !isfinite(prior->half)))
        return gx_fail(err, GX_EUSAGE, "prior: half is %g; it must be above 0", prior->half);
    return GX_OK;
}

gx_status gx_prior_check(const gx_prior *prior, const gx_index *ix, gx_error *err)
{
    uint32_t column;
    gx_clear_error(err);
    return gx_prior_find(&column, prior, ix, err);
}

/* ---- values ---- */

uint64_t gx_prior_units(const gx_prior *prior, double x, int exponent)
{
    if (!(x > 0))
        return 0;
    const double f = prior->form == GX_PRIOR_LOG ? log1p(x)
                     : prior->form == GX_PRIOR_SAT
                         ? (x > prior->half ? 1 / (1 + prior->half / x) : x / (x + prior->half))
                         : x;
    const double units = nearbyint(ldexp(prior->weight * f, exponent));
    return units < (double)GX_MAX_PRIOR_UNITS ? (uint64_t)units : GX_MAX_PRIOR_UNITS;
}

static double number_of(const gx_column *c, uint64_t i)
{
    const uint64_t raw = gx_column_raw(c, i);
    double x;
    memcpy(&x, &raw, sizeof x);
    return c->type == GX_ATTRIBUTE_FLOAT ? x : (double)(int64_t)((uint64_t)c->base + raw);
}

bool gx_prior_value(const gx_index *ix, uint32_t column, uint64_t docid, double *x)
{
    uint32_t local = (uint32_t)docid;
    const gx_index *file = ix->parts ? gx_parts_find(ix->parts, docid, &local)->ix : ix;
    const gx_column *c = &file->columns[column];
    if (!gx_column_has(c, local))
        return false;
    *x = number_of(c, gx_column_values(c, local).end - 1); /* values rise */
    return true;
}

uint64_t gx_document_prior_units(const gx_document_prior *p, const gx_index *ix, uint64_t docid, int exponent)
{
    double x;
    return p->prior && gx_prior_value(ix, p->column, docid, &x) ? gx_prior_units(p->prior, x, exponent) : 0;
}

/* At least 0, of which the bits are kept, one more of them. */
static double greatest_of(const gx_column *c)
{
    uint64_t known = __atomic_load_n(&c->greatest, __ATOMIC_RELAXED);
    double x = 0;
    if (known) {
        --known;
        memcpy(&x, &known, sizeof x);
        return x;
    }
    for (uint64_t i = 0; i < c->n_values; ++i) { /* a document without a value has 0, or the least value of all */
        const double y = number_of(c, i);
        x = y > x ? y : x;
    }
    memcpy(&known, &x, sizeof known);
    __atomic_store_n((uint64_t *)&c->greatest, known + 1, __ATOMIC_RELAXED);
    return x;
}

double gx_prior_greatest(const gx_index *ix, uint32_t column)
{
    double x = 0;
    for (uint32_t i = 0; i < (ix->parts ? ix->parts->n : 1); ++i)
        x = fmax(x, greatest_of(&(ix->parts ? ix->parts->parts[i].ix : ix)->columns[column]));
    return x;
}
