/* info.c: what clients ask before and beside searches: /, HEAD, _mapping, _cat/indices, _cluster/health. */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/access.h"
#include "tools/serve/protocols/elastic/elastic.h"

void elastic_root(exchange *x)
{
    if (!elastic_check_arguments(x, NULL))
        return;
    gx_text_add_format(&x->reply,
                       "{\"name\":\"gpuidx\",\"cluster_name\":\"gpuidx\",\"cluster_uuid\":\"gpuidx\",\"version\":{"
                       "\"number\":\"8.15.0\",\"build_flavor\":\"gpuidx\",\"build_type\":\"gpuidx %s\",\"build_hash\":"
                       "\"gpuidx\",\"build_date\":\"2024-01-01T00:00:00Z\",\"build_snapshot\":false,"
                       "\"lucene_version\":\"9.11.1\",\"minimum_wire_compatibility_version\":\"7.17.0\","
                       "\"minimum_index_compatibility_version\":\"7.0.0\"},\"tagline\":\"You Know, for Search\"}",
                       gx_version());
    elastic_reply(x, 200);
}

static void put_mapping(gx_text *t, const gx_index *ix)
{
    static const char *const types[] = {"", "long", "double", "date", "keyword", "keyword", "boolean"};
    gx_text_add_string(t, "\"mappings\":{\"properties\":{\"title\":{\"type\":\"text\"},\"text\":{\"type\":\"text\"}");
    const char *field;
    for (uint32_t i = 0; (field = gx_index_field(ix, i, NULL)); ++i) {
        if (elastic_is_text(field) && gx_word_index("title|text", field, strlen(field)) >= 0)
            continue;
        gx_text_add_string(t, ",");
        gx_text_add_json(t, field, strlen(field));
        gx_text_add_string(t, ":{\"type\":\"text\"}");
    }
    for (uint32_t i = 0; i < gx_index_n_attributes(ix); ++i) {
        gx_attribute_info info = {.size = sizeof info};
        if (gx_index_get_attribute(ix, i, &info))
            break;
        gx_text_add_string(t, ",");
        gx_text_add_json(t, info.name, info.name_len);
        gx_text_add_format(t, ":{\"type\":\"%s\"}", types[info.type]);
    }
    gx_text_add_string(t, "}}");
}

void elastic_mapping(exchange *x)
{
    if (!elastic_check_arguments(x, NULL) || !exchange_open_index(x, x->index))
        return;
    gx_text_add_string(&x->reply, "{");
    gx_text_add_json(&x->reply, x->index, strlen(x->index));
    gx_text_add_string(&x->reply, ":{");
    put_mapping(&x->reply, x->at->ix);
    gx_text_add_string(&x->reply, "}}");
    elastic_reply(x, 200);
}

void elastic_index(exchange *x)
{
    if (!elastic_check_arguments(x, NULL) || !exchange_open_index(x, x->index))
        return;
    gx_text_add_string(&x->reply, "{");
    gx_text_add_json(&x->reply, x->index, strlen(x->index));
    gx_text_add_string(&x->reply, ":{\"aliases\":{},");
    put_mapping(&x->reply, x->at->ix);
    gx_text_add_string(&x->reply,
                       ",\"settings\":{\"index\":{\"number_of_shards\":\"1\",\"number_of_replicas\":\"0\"}}}}");
    elastic_reply(x, 200);
}

void elastic_health(exchange *x)
{
    static const char *const names[] = {"wait_for_status", "level", "wait_for_nodes", "wait_for_no_relocating_shards",
                                        NULL};
    uint32_t n = 0;
    if (!elastic_check_arguments(x, names))
        return;
    while (catalog_name(x->sv->catalog, n))
        ++n;
    gx_text_add_format(&x->reply,
                       "{\"cluster_name\":\"gpuidx\",\"status\":\"green\",\"timed_out\":false,\"number_of_nodes\":1,"
                       "\"number_of_data_nodes\":1,\"active_primary_shards\":%u,\"active_shards\":%u,"
                       "\"relocating_shards\":0,\"initializing_shards\":0,\"unassigned_shards\":0,"
                       "\"delayed_unassigned_shards\":0,\"number_of_pending_tasks\":0,\"number_of_in_flight_fetch\":0,"
                       "\"task_max_waiting_in_queue_millis\":0,\"active_shards_percent_as_number\":100.0}",
                       n, n);
    elastic_reply(x, 200);
}

/* ---- _cat/indices ---- */

static void put_row(gx_text *t, const char *name, const snapshot *s, bool json)
{
    char uuid[33];
    gx_index_stats stats = {.size = sizeof stats};
    gx_index_get_quick_stats(s->ix, &stats);
    for (int i = 0; i < 16; ++i)
        snprintf(uuid + 2 * i, 3, "%02x", stats.uuid[i]);
    gx_text_add_format(t,
                       json
                           ? "{\"health\":\"green\",\"status\":\"open\",\"index\":\"%s\",\"uuid\":\"%s\",\"pri\":\"1\","
                             "\"rep\":\"0\",\"docs.count\":\"%llu\",\"docs.deleted\":\"0\",\"store.size\":\"%llub\","
                             "\"pri.store.size\":\"%llub\"}"
                           : "green open %s %s 1 0 %llu 0 %llub %llub\n",
                       name, uuid, (unsigned long long)s->n_docs, (unsigned long long)stats.file_bytes,
                       (unsigned long long)stats.file_bytes);
}

void elastic_cat(exchange *x)
{
    static const char *const names[] = {"v", "format", "bytes", "h", "s", NULL};
    const char *format = exchange_argument(x, "format"), *name, *accept = exchange_header(x, "Accept");
    const bool json = format ? strcmp(format, "json") == 0 : accept && strstr(accept, "json");
    uint32_t n = 0;
    if (!elastic_check_arguments(x, names))
        return;
    if (exchange_argument(x, "h") || exchange_argument(x, "s")) {
        fault_set(&x->fault, 400, "the parameters h and s are not available in this version of gpuidx");
        return;
    }
    gx_text_add_string(&x->reply, json ? "["
                                  : exchange_argument(x, "v")
                                      ? "health status index uuid pri rep docs.count docs.deleted "
                                        "store.size pri.store.size\n"
                                      : "");
    for (uint32_t i = 0; (name = catalog_name(x->sv->catalog, i)); ++i) {
        if (!access_to(x->who, name))
            continue;
        snapshot *s = catalog_get(x->sv->catalog, name);
        gx_text_add_string(&x->reply, json && n++ ? "," : "");
        put_row(&x->reply, name, s, json);
        snapshot_release(s);
    }
    gx_text_add_string(&x->reply, json ? "]" : "");
    x->type = json ? "application/json" : "text/plain; charset=utf-8";
    elastic_reply(x, 200);
}
