/* searches.h: what the service calls with each answer. */
#ifndef GX_SERVE_SEARCHES_H
#define GX_SERVE_SEARCHES_H

#include "tools/serve/serve.h"

/* gx_service_options.answer; answer->user is a search. */
void searches_answered(void *user, const gx_service_answer *answer);

/* Write the reply from the answers, which are all there; exchange_complete follows. */
void searches_finish(exchange *x);

/* The answer to a search, to be written; marks, which the caller closes, where words are marked. */
gx_status searches_open_marks(const search *s, gx_highlighter **out, gx_error *err);

/* The query of a search, before feedback. */
gx_query searches_query(const search *s);

/* Free what a search holds. */
void search_free(search *s);

#endif
