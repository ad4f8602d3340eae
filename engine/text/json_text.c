#include "engine/text/json_text.h"

#include "engine/text/c_locale.h"

json_t *gx_json_load(const char *text, size_t n, size_t flags, json_error_t *why)
{
    const gx_c_locale l = gx_c_locale_begin();
    json_t *json = json_loadb(text, n, flags, why);
    gx_c_locale_end(l);
    return json;
}

json_t *gx_json_load_file(FILE *f, size_t flags, json_error_t *why)
{
    const gx_c_locale l = gx_c_locale_begin();
    json_t *json = json_loadf(f, flags, why);
    gx_c_locale_end(l);
    return json;
}

char *gx_json_dump(const json_t *json, size_t flags)
{
    const gx_c_locale l = gx_c_locale_begin();
    char *text = json_dumps(json, flags);
    gx_c_locale_end(l);
    return text;
}
