/* options.c: the defaults of the public options. */
#include "engine/api/gpuidx_advanced.h"
#include "engine/sized.h"

void gx_index_options_init(gx_index_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_index_options)GX_INDEX_OPTIONS, sizeof *o);
}

void gx_builder_options_init(gx_builder_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_builder_options)GX_BUILDER_OPTIONS, sizeof *o);
}

void gx_engine_options_init(gx_engine_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_engine_options)GX_ENGINE_OPTIONS, sizeof *o);
}

void gx_query_options_init(gx_query_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_query_options)GX_QUERY_OPTIONS, sizeof *o);
}

void gx_query_init(gx_query *q, size_t size, const char *text, size_t len)
{
    gx_sized_init(q, size, &(gx_query)GX_TEXT_QUERY(text, len), sizeof *q);
}

void gx_order_options_init(gx_order_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_order_options)GX_ORDER_OPTIONS, sizeof *o);
}

void gx_rewrite_options_init(gx_rewrite_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_rewrite_options)GX_REWRITE_OPTIONS, sizeof *o);
}

void gx_import_options_init(gx_import_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_import_options)GX_IMPORT_OPTIONS, sizeof *o);
}

void gx_export_options_init(gx_export_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_export_options)GX_EXPORT_OPTIONS, sizeof *o);
}

void gx_filter_options_init(gx_filter_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_filter_options)GX_FILTER_OPTIONS, sizeof *o);
}

void gx_feed_options_init(gx_feed_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_feed_options)GX_FEED_OPTIONS, sizeof *o);
}

void gx_source_options_init(gx_source_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_source_options)GX_SOURCE_OPTIONS, sizeof *o);
}

void gx_sweep_options_init(gx_sweep_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_sweep_options)GX_SWEEP_OPTIONS, sizeof *o);
}

void gx_replay_options_init(gx_replay_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_replay_options)GX_REPLAY_OPTIONS, sizeof *o);
}

void gx_collection_options_init(gx_collection_options *o, size_t size)
{
    gx_sized_init(o, size, &(gx_collection_options)GX_COLLECTION_OPTIONS, sizeof *o);
}
