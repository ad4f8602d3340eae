/* access.h: who may ask for what: tokens, and the names by which the server is called.
 *
 * The file of tokens is JSON:
 *
 *   {"tokens": [{"name": "tenant7", "token": "s3cret...", "indexes": ["papers"], "access": "read",
 *                "filter": "tenant:7"}, ...]}
 *
 * "indexes" absent: all; "access" is read (the default) or write, which a token with a filter cannot have; "filter"
 * holds for every route. Statistics that scores are made of are those of all documents. */
#ifndef GX_SERVE_ACCESS_H
#define GX_SERVE_ACCESS_H

#include "tools/serve/serve.h"

typedef struct tokens tokens;

/* Read the file; NULL: there is none, and all may read. GX_EINPUT, with place; GX_EIO, ... */
gx_status tokens_open(tokens **out, const char *path, gx_error *err);
/* Read it again; where that fails, the old ones stay. */
gx_status tokens_reload(tokens *t, gx_error *err);
void tokens_close(tokens *t);

/* Set x->who, or the fault: a wrong Host or Origin, no token where one is needed, one that may not do this. */
void access_check(exchange *x);
/* Whether the identity may use the index. */
bool access_to(const identity *who, const char *index);

#endif
