/* protocols.h: what the table of routes names: each protocol's functions, a file a protocol. */
#ifndef GX_SERVE_PROTOCOLS_H
#define GX_SERVE_PROTOCOLS_H

#include "tools/serve/serve.h"

/* The table, and who serves a path. NULL: none; `allowed` receives the methods that the path has. */
const route *routes_find(exchange *x, char allowed[64]);
const route *routes_all(size_t *n);
void routes_openapi(exchange *x);

/* native.c: our own, and documents and counts. */
fault_writer native_fault;
void native_search(exchange *x);
void native_answer(exchange *x);
/* Add the properties of a search's body, of the table that reads it, to an object of a JSON schema. */
void native_put_schema(gx_text *t);
void native_count(exchange *x);
void native_count_answer(exchange *x);
void native_indexes(exchange *x);
void native_index(exchange *x);
/* Add the document's members to an object: "id", "title", and the text under `text_name`. */
gx_status native_put_document(gx_text *t, const gx_index *ix, uint64_t docid, const char *text_name, gx_error *err);
/* The docid of the external id in the exchange's index for who asks; false: there is none, or the fault is set. */
bool native_find_document(exchange *x, const char *id, size_t len, uint64_t *docid);
/* The plan of a protocol's searches with the server's defaults; what `read` adds must be settled before it is used. */
plan *native_new_plan(exchange *x);
bool native_settle(exchange *x, plan *p, uint64_t k);
/* Let the plan, whose scorer, k1 and b are read, search by fields, as gx_view_options names them. */
gx_status native_view(exchange *x, plan *p, const char *fields, gx_field_scoring scoring, gx_error *err);
/* The index that a plan's queries are read for: the view, where it searches by fields. */
const gx_index *plan_index(const exchange *x, const plan *p);
/* The filter of a request, an expression that may be NULL, with that of the token. The error names the column. */
gx_status native_open_filter(exchange *x, const char *text, size_t len, gx_filter **out, gx_error *err);

/* run_lines.c: format=trec. Read the arguments; false: the fault is set. */
bool run_lines_read(exchange *x, bool *wanted);
void run_lines_answer(exchange *x);

/* suggest.c: words of the index. Whether who asks may have some; else the fault is set. */
void suggest_words(exchange *x);
bool suggest_is_allowed(exchange *x);

/* native_write.c: documents are written. */
void native_put(exchange *x);
void native_update(exchange *x);
void native_delete(exchange *x);
void native_write_answer(exchange *x);
void native_write(exchange *x);
void native_writes_answer(exchange *x);

/* anserini.c */
fault_writer anserini_fault;
void anserini_search(exchange *x);
void anserini_answer(exchange *x);
void anserini_document(exchange *x);

/* retrieve.c: Search-R1's. */
void retrieve_search(exchange *x);
void retrieve_answer(exchange *x);

/* paging.c: the http-json backend of agent frameworks. */
void paging_search(exchange *x);
void paging_answer(exchange *x);
void paging_read(exchange *x);

/* windows.c: results kept for their pages: at most max, each for that many seconds after its last use. NULL: no memory.
 * See windows.h. */
typedef struct windows windows;
windows *windows_open(uint32_t max, double seconds);
void windows_close(windows *w);

/* openai.c: OpenAI's vector stores. */
fault_writer openai_fault;
void openai_search(exchange *x);
void openai_answer(exchange *x);

/* mcp.c: the Model Context Protocol. */
fault_writer mcp_fault;
void mcp_message(exchange *x);
void mcp_answer(exchange *x);
void mcp_no_stream(exchange *x);

/* page/page.c: the page for people. */
void page_reply(exchange *x);
void page_script(exchange *x);
void page_style(exchange *x);

/* elastic/: Elasticsearch's subset. */
fault_writer elastic_fault;
void elastic_root(exchange *x);
void elastic_search(exchange *x);
void elastic_search_answer(exchange *x);
void elastic_msearch(exchange *x);
void elastic_msearch_answer(exchange *x);
void elastic_count(exchange *x);
void elastic_count_answer(exchange *x);
void elastic_document(exchange *x);
void elastic_source(exchange *x);
void elastic_mget(exchange *x);
void elastic_index(exchange *x);
void elastic_mapping(exchange *x);
void elastic_health(exchange *x);
void elastic_cat(exchange *x);
void elastic_refresh(exchange *x);
void elastic_refresh_answer(exchange *x);
void elastic_put(exchange *x);
void elastic_create(exchange *x);
void elastic_update(exchange *x);
void elastic_delete(exchange *x);
void elastic_write_answer(exchange *x);
void elastic_bulk(exchange *x);
void elastic_bulk_answer(exchange *x);

#endif
