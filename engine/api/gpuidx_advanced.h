/* gpuidx_advanced.h: what libgpuidx offers beyond gpuidx.h, and what may still change.
 *
 *   gpuidx_collections.h   several index files as one index, to which documents are added
 *   gpuidx_corpora.h       documents from files
 *   gpuidx_files.h         index files checked, measured, written anew, imported and exported
 *   gpuidx_searching.h     filters, facets, snippets, explanations, relevance feedback, statistics of searches
 *   gpuidx_options.h       options of a search by name and text
 *   gpuidx_answers.h       answers as JSON
 *   gpuidx_values.h        the values of documents' attributes
 *   gpuidx_pages.h         answers in an order by attributes, and page by page
 *   gpuidx_sums.h          figures of the matches: sums, averages, percentiles; facets in facets
 *   gpuidx_expansion.h     words that a pattern stands for, and suggestions
 *   gpuidx_logs.h          query logs, histograms of latencies
 *   gpuidx_service.h       a service of both engines, and its model of what queries cost
 *   gpuidx_evaluation.h    replay, measures of effectiveness, comparisons, sweeps
 *
 * The rules of gpuidx.h hold here and in these headers too, but for one: any version may change or take
 * away what stands here, structs without a size among it. A program that uses it is compiled anew for
 * each version of the library. Programs include this header: what stands in which of the others may
 * change, too.
 */
#ifndef GPUIDX_ADVANCED_H
#define GPUIDX_ADVANCED_H

#include "gpuidx.h"
#include "gpuidx_answers.h"
#include "gpuidx_values.h"
#include "gpuidx_pages.h"
#include "gpuidx_collections.h"
#include "gpuidx_corpora.h"
#include "gpuidx_evaluation.h"
#include "gpuidx_expansion.h"
#include "gpuidx_files.h"
#include "gpuidx_logs.h"
#include "gpuidx_options.h"
#include "gpuidx_searching.h"
#include "gpuidx_service.h"
#include "gpuidx_sums.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the GPUs of this machine ---- */

typedef struct gx_device {
    int number;                   /* CUDA's */
    char name[256];               /* "NVIDIA H100 80GB HBM3" */
    uint64_t memory, free_memory; /* bytes; free_memory 0 where the device cannot be asked */
    int major, minor;             /* compute capability */
    uint32_t multiprocessors;
    uint64_t l2_bytes;
    bool usable;
    char why[512]; /* why it is not usable, "" if it is */
} gx_device;

/* The GPUs seen, [*n] at *out, to be freed by the caller with free(). GX_OK with *n >= 1; GX_ENOGPU
 * with the reason in err when there is none to list (no driver, too old a driver, no device, built
 * without CUDA); GX_ENOMEM. */
GX_API gx_status gx_devices(gx_device **out, uint32_t *n, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
