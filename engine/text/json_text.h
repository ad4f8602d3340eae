/* json_text.h: JSON from text and to text. Jansson reads and writes numbers by the program's locale; these do not. */
#ifndef GX_ENGINE_JSON_TEXT_H
#define GX_ENGINE_JSON_TEXT_H

#include <jansson.h>
#include <stdio.h>

/* As json_loadb, json_loadf and json_dumps. why may be NULL. */
json_t *gx_json_load(const char *text, size_t n, size_t flags, json_error_t *why);
json_t *gx_json_load_file(FILE *f, size_t flags, json_error_t *why);
char *gx_json_dump(const json_t *json, size_t flags);

#endif
