/* writes.h: documents are added, replaced and deleted: one writer a collection, on a thread of its own.
 *
 *   parse: writes_open, writes_add ...  --> queue --> applied in the order of arrival --> commit --> route->answer
 *                                                     '-------- gathered for --commit-every at most --------'
 *
 * A request is answered once its changes are in a commit, which is on disk: all that are gathered for one commit are
 * kept, or none. The collection's lock is held while there is something to write, and given back soon after, so that
 * other processes can change the collection, too. */
#ifndef GX_SERVE_WRITES_H
#define GX_SERVE_WRITES_H

#include "tools/cli/cli.h"
#include "tools/serve/serve.h"

typedef enum write_kind {
    WRITE_PUT,    /* add the document, or replace the one of its id */
    WRITE_CREATE, /* add it; one of its id is a conflict */
    WRITE_UPDATE, /* replace the parts that are given of the one of its id */
    WRITE_DELETE
} write_kind;

typedef enum write_result { WRITE_FAILED, WRITE_CREATED, WRITE_REPLACED, WRITE_DELETED, WRITE_ABSENT } write_result;

typedef struct write_op {
    write_kind kind;
    bool upsert; /* WRITE_UPDATE: where there is no document of the id, this one is added */
    bool has_title, has_text, has_vector;
    uint64_t has_values; /* bit i: attribute i is given */
    gx_document doc;     /* its strings live as long as the exchange */
    gx_attribute_value *values;
    uint32_t max_values;
    void **owned; /* [n_owned] what else is freed with it */
    size_t n_owned;
    unsigned line; /* of a body of lines; 0: it is no such body */
    /* what came of it */
    write_result result;
    fault fault; /* of WRITE_FAILED; one that is set before has it not applied */
} write_op;

/* The changes of a request: its exchange's `extra`. */
typedef struct writing {
    exchange *x;
    write_op *ops; /* [n] */
    size_t n, max;
    bool now;     /* commit without waiting for others */
    bool visible; /* answer once searches see the commit */
    bool single;  /* the fault of the one op is the fault of the request */
    uint64_t commit;
    void *of_protocol; /* freed by free() */
    void *writer;
    exchange *next; /* of those that wait */
} writing;

/* Changes of the index of the name, which must be writable, as the parameter `refresh` says (false, true, wait_for);
 * NULL: the fault is set. The exchange is handed to the writer once it is parsed. */
writing *writes_open(exchange *x, const char *index);
/* NULL: the fault is set. What is returned stays where it is until the next one is added. */
write_op *writes_add(writing *w);
/* Read the members of a document: title, text or contents, of a collection of vectors the vector, which it must have,
 * and the attributes by name. false: the fault is set. */
bool writes_read_document(reader *r, const json_t *value, exchange *x, write_op *op);
/* Put the id of a document that has none: 20 characters. */
bool writes_make_id(write_op *op);

typedef struct write_counts {
    uint64_t ops, failed, commits, merges;
    unsigned waiting; /* requests */
} write_counts;

typedef struct writers writers;
/* The writers of the collections that --writable names. 0, or the exit code with the message printed. */
int writers_open(writers **out, server *sv, const cli_args *a);
void writers_close(writers *w); /* after the last request */
/* Commit what is gathered, for requests that end now. */
void writers_drain(writers *w);
/* false: the index is not writable. */
bool writers_count(writers *w, const char *index, write_counts *out);

#endif
