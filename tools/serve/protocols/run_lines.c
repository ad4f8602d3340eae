/* run_lines.c: answers as the lines of a TREC run, which `gpuidx replay --run` writes, byte for byte: format=trec. */
#include <stdio.h>
#include <string.h>

#include "tools/serve/protocols.h"

bool run_lines_read(exchange *x, bool *wanted)
{
    const char *format = exchange_argument(x, "format"), *tag = exchange_argument(x, "tag");
    const int i = format ? gx_word_index("json|trec", format, strlen(format)) : 0;
    *wanted = i == 1;
    if (i < 0) {
        fault_set(&x->fault, 400, "'%.40s' is neither json nor trec", format);
        snprintf(x->fault.member, sizeof x->fault.member, "format");
    } else if (tag && (i != 1 || !*tag || tag[strcspn(tag, " \t\r\n")] || strlen(tag) > 200)) {
        fault_set(&x->fault, 400, "a tag has 1 to 200 bytes without white space, and goes with format=trec");
        snprintf(x->fault.member, sizeof x->fault.member, "tag");
    }
    return !x->fault.status;
}

void run_lines_answer(exchange *x)
{
    const char *tag = exchange_argument(x, "tag");
    gx_error err = {0};
    gx_status st = GX_OK;
    for (size_t i = 0; i < x->n_searches && st == GX_OK; ++i) {
        const search *s = &x->searches[i];
        const gx_answer a = {.ix = x->at->ix,
                             .qid = s->qid,
                             .qid_len = s->qid_len,
                             .n_hits = s->n_hits,
                             .docids = s->docids,
                             .scores = s->scores};
        st = gx_answer_write_run(&x->reply, &a, tag ? tag : "gpuidx", &err);
    }
    x->type = "text/plain; charset=utf-8";
    if (st == GX_OK)
        exchange_reply(x, 200);
    else
        fault_set(&x->fault, http_status(st), "%s", err.text);
}
